#!/usr/bin/env bash
# The project's docker-compose.yml for real: five nodes, five with an AOF, the tool. Run by
# docker.sh; for each compose that is installed.
# shellcheck disable=SC2317,SC2153 # functions that are called by name; variables of docker.sh
# shellcheck source-path=SCRIPTDIR source=../integration/tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../integration/tool_lib.sh"
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unset COMPOSE_FILE COMPOSE_PROFILES COMPOSE_PROJECT_NAME

aof_services=(aof1 aof2 aof3 aof4 aof5)
runner=() # docker compose, or docker-compose
project=

compose() {
    "${runner[@]}" -p "$project" -f "$tree/docker-compose.yml" "$@"
}

down() {
    [[ -z $project ]] || compose --profile aof --profile tool down -v --timeout 1 >/dev/null 2>&1
}
trap 'down; clean_up' EXIT

# choose_ports NAME : five free ports, into the variables NAME_1 to NAME_5 and `nodes`.
choose_ports() {
    local i port taken=
    nodes=
    for i in 1 2 3 4 5; do
        while :; do
            port=$((10000 + RANDOM % 20000))
            [[ $taken != *" $port "* ]] && ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
        done
        taken+=" $port "
        export "$1_$i=$port"
        nodes+=${nodes:+,}127.0.0.1:$port
    done
}

container() {
    docker ps -aq --filter "label=com.docker.compose.project=$project" --filter "label=com.docker.compose.service=$1"
}

# inspect SERVICE FORMAT
inspect() {
    docker inspect --format "$2" "$(container "$1")"
}

all_healthy() {
    local service
    for service in node1 node2 node3 node4 node5; do
        [[ $(inspect "$service" '{{.State.Health.Status}}') == healthy ]] || return 1
    done
}

key_of() {
    redis-cli -p "$1" get "$2"
}

five_ready() {
    tool status | grep -q '^5 of 5 nodes ready'
}

answers() {
    [[ $(redis-cli -p "$1" ping 2>/dev/null) == PONG ]]
}

check_files() {
    expect 0 compose config
    never_says "$err" WARN
    never_says "$err" warn
    expect 0 compose config --services
    is 'the services without a profile' "$(sort "$out" | grep -c '^node[1-5]$')" 5
    expect 0 compose --profile aof --profile tool config --services
    is 'all services' "$(sort "$out" | paste -sd' ')" 'aof1 aof2 aof3 aof4 aof5 node1 node2 node3 node4 node5 redlock'
    # Without what docker.sh has set: the images that users get.
    expect 0 env -u REDLOCK_NODE_IMAGE -u REDLOCK_NODE_VERSION "${runner[@]}" -p "$project" \
        -f "$tree/docker-compose.yml" config
    says "$out" 'image: redis:[78]\.[0-9]+$'
    expect 0 env -u REDLOCK_NODE_IMAGE -u REDLOCK_NODE_VERSION "${runner[@]}" -p "$project" \
        -f "$tree/docker-compose.yml" -f "$tree/test/compose/valkey.yml" --profile aof config
    is 'services of Valkey' "$(sed '/^services:/,/^[^ ]/!d' "$out" |
        grep -c '^    image: valkey/valkey:[0-9]*\.[0-9]*$')" 10
}

check_nodes() {
    local token port
    choose_ports REDLOCK_PORT
    expect 0 compose up -d
    eventually five_ready
    expect 0 tool status
    says "$out" '^5 of 5 nodes ready'
    eventually all_healthy
    is 'where a node is published' "$(docker port "$(container node3)" 6379)" "127.0.0.1:$REDLOCK_PORT_3"
    is 'its memory' "$(inspect node3 '{{.HostConfig.Memory}}')" 268435456
    is 'its processors' "$(inspect node3 '{{.HostConfig.NanoCpus}}')" 1000000000
    is 'when it is started again' "$(inspect node3 '{{.HostConfig.RestartPolicy.Name}}')" no
    is 'its volumes' "$(inspect node3 '{{range .Mounts}}{{.Type}} {{end}}')" ''
    for setting in 'save ' 'appendonly no' 'maxmemory-policy noeviction'; do
        is 'a setting' "$(redis-cli -p "$REDLOCK_PORT_2" config get "${setting%% *}" | paste -sd' ')" "$setting"
    done

    # A lock on all five; a node that was killed stays dead, and comes back with nothing.
    expect 0 tool acquire -t 5m resource
    token=$(cat "$out")
    port=$REDLOCK_PORT_1
    eventually gives "$token" key_of "$port" resource
    docker kill "$(container node1)" >/dev/null
    expect 0 tool status resource
    says "$out" '^4 of 5 nodes ready'
    is 'the state of a killed node' "$(inspect node1 '{{.State.Status}}')" exited
    docker start "$(container node1)" >/dev/null
    eventually answers "$port"
    is 'what a node remembers' "$(key_of "$port" resource)" ''

    # The tool beside them, by their names.
    expect 0 compose run --rm redlock status resource
    says "$out" '^node3:6379 +READY'
    says "$out" '^5 of 5 nodes ready'
    says "$out" "held by ${token#*@} on 4 of 5"
    expect 75 compose run --rm redlock acquire resource
    expect 0 tool release resource "$token"
}

check_aof() {
    local token port
    choose_ports REDLOCK_AOF_PORT
    expect 0 compose up -d "${aof_services[@]}" # who names them means their profile
    eventually five_ready
    expect 0 tool acquire -t 5m resource
    token=$(cat "$out")
    port=$REDLOCK_AOF_PORT_4
    eventually gives "$token" key_of "$port" resource
    docker kill "$(container aof4)" >/dev/null
    docker start "$(container aof4)" >/dev/null
    eventually answers "$port"
    is 'what a node with an AOF remembers' "$(key_of "$port" resource)" "$token"
    expect 0 tool status resource
    says "$out" "held by ${token#*@} on 5 of 5"
}

check_down() {
    local kind
    expect 0 compose --profile aof --profile tool down -v --timeout 1
    for kind in 'ps -a' 'network ls' 'volume ls'; do
        read -ra words <<<"$kind"
        is "what is left of $kind" "$(docker "${words[@]}" -q --filter "label=com.docker.compose.project=$project")" ''
    done
}

for runner_words in 'docker compose' docker-compose; do
    read -ra runner <<<"$runner_words"
    "${runner[@]}" version >/dev/null 2>&1 || continue
    project=redlock-test-$$-$RANDOM
    began=$SECONDS
    check_files
    check_nodes
    check_aof
    check_down
    echo "$("${runner[@]}" version --short): $((SECONDS - began)) s"
done
is 'whether any compose was there' "$([[ -n $project ]] && echo yes)" yes
finish
