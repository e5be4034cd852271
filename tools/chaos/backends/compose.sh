#!/bin/sh
# What backend_compose.c has docker do: VERB NODE PROJECT FILE DIRECTORY NODES SHIM APPENDONLY.
# Where it fails, the last line is a sentence for people; only that of `up` is compose's own.
set -u
verb=$1 node=$2 project=$3 file=$4 NODES_DIRECTORY=$5 nodes=$6 SHIM=$7 append_only=$8
name=$project-node$node
# They would steer compose.
unset COMPOSE_FILE COMPOSE_PROFILES COMPOSE_PROJECT_NAME COMPOSE_ENV_FILES

fail() {
    printf '%s\n' "$*"
    exit 1
}

# docker-compose ends with a line that says nothing; what was wrong stands above.
why() {
    printf '%s\n' "$words" | grep -m 1 -E 'ERROR|Error|annot |denied|failed' || printf '%s\n' "$words" | tail -n 1
}

# Runs it; its words, errors too, are in $words.
run() {
    words=$("$@" 2>&1)
}

look() {
    run docker inspect --type container --format '{{.State.Running}} {{.State.Paused}} {{.State.Pid}} {{.Id}}' \
        "$name" || fail "node $node: docker inspect $name: $(why)"
    read -r running paused pid id <<END
$words
END
}

tell() {
    run docker "$1" "$name" || fail "node $node: docker $1 $name: $(why)"
}

compose() {
    if docker compose version >/dev/null 2>&1; then
        exec docker compose -p "$project" -f "$file" "$@"
    fi
    exec docker-compose -p "$project" -f "$file" "$@"
}

# Whether docker works, the file is sound and has a service for each node, and its image is here.
check() {
    command -v docker >/dev/null || fail 'there is no program docker; install it (Debian: apt-get install' \
        'docker.io docker-compose), or use --backend=process'
    run docker version --format '{{.Server.Version}}' ||
        fail "the Docker daemon does not answer: $(why); start it (systemctl start docker), be root or a member of" \
            'the group docker, or say by DOCKER_HOST where it is; or use --backend=process'
    run docker compose version || run docker-compose version ||
        fail "there is docker, but neither docker compose nor docker-compose works ($(why)); install one" \
            '(Debian: apt-get install docker-compose), or use --backend=process'
    config=$(compose config 2>&1) || { words=$config && fail "the compose file $file is not sound: $(why)"; }
    known=
    for n in $(seq "$nodes"); do
        # Both versions of compose print it with two blanks a level.
        image=$(printf '%s\n' "$config" |
            sed -n "/^services:/,/^[^ ]/{/^  node$n:/,/^  [^ ]/s/^    image: //p;}")
        [ -n "$image" ] || fail "the compose file $file has no service node$n with an image: for $nodes nodes it" \
            "needs node1 to node$nodes; ask for fewer, or add them"
        [ "$image" = "$known" ] || run docker image inspect "$image" ||
            fail "the image $image is not here ($(why)): get it by \`docker pull $image\`; or make one of the" \
                "installed redis-server by \`test/compose/local-image.sh\`, and set" \
                'REDLOCK_NODE_IMAGE=redlock-node REDLOCK_NODE_VERSION=local'
        known=$image
    done
}

# Laid over the file. Compose puts variables in after it has read the YAML, so a path may have any
# character. Files must be ours: as root, the image may change to another user. We ask the nodes
# ourselves, so health checks are noise; docker-compose 1.29 cannot switch them off.
override() {
    clock='' mount=''
    # shellcheck disable=SC2016 # a variable of compose's
    [ -z "$SHIM" ] || {
        clock='environment: {LD_PRELOAD: /redlock-chaos-clock.so, REDLOCK_CHAOS_CLOCK: /redlock-chaos/clock}'
        mount='- {type: bind, source: "$SHIM", target: /redlock-chaos-clock.so, read_only: true}'
    }
    cat <<END
# Laid over docker-compose.yml by redlock-chaos for one run.
x-chaos: &chaos
  user: "$(id -u):$(id -g)"
  working_dir: /redlock-chaos/data
  command: ["--protected-mode", "no", "--save", "", "--appendonly", "$append_only", "--appendfsync", "always",
    "--maxmemory-policy", "noeviction", "--enable-debug-command", "yes",
    "--user", "default", "on", "nopass", "~*", "&*", "+@all",
    "--user", "chaos", "on", ">chaos", "~*", "&*", "+@all"]
  restart: "no"
  healthcheck: {interval: 24h}
  $clock
services:
END
    for n in $(seq "$nodes"); do
        cat <<END
  node$n:
    <<: *chaos
    container_name: $project-node$n
    volumes:
      - {type: bind, source: "\${NODES_DIRECTORY}/node-$n", target: /redlock-chaos}
      $mount
END
    done
}

# Packets are dropped by our iptables in the container's own network: the image need not have it,
# and what we set ends with that network. What a node has to do with itself, such as its health
# check, passes. Where the daemon is elsewhere, its pids are not ours, so the process must be the
# container's; a directory in /proc is that of one process or of none.
set_packets() {
    # shellcheck disable=SC2015 # as it is meant
    cd "/proc/$pid" 2>/dev/null && grep -qF "$id" cgroup 2>/dev/null ||
        fail "node $node: its process is not to be found here (pid $pid of container $id): packets can be dropped" \
            'only where the Docker daemon runs on this machine, and not in a virtual one'
    [ "$(readlink /proc/self/ns/net)" != "$(readlink ns/net)" ] ||
        fail "node $node: its container has no network of its own, so nothing is dropped there"
    words=$(printf '%s\n' '*filter' ':INPUT ACCEPT' ':OUTPUT ACCEPT' "$@" COMMIT |
        nsenter --net=ns/net iptables-restore -w 5 2>&1) ||
        fail "node $node: iptables in its network: $(why); only root can drop packets, and it needs iptables and" \
            'util-linux (Debian: apt-get install iptables util-linux)'
}

# Ends and removes all that docker has of the project; containers first, for they use the others.
# $left: a kind of thing that there was.
sweep() {
    left=
    for kind in container network volume; do
        all='' how=''
        [ $kind != container ] || { all='-a --no-trunc' && how='-f -v'; }
        # shellcheck disable=SC2086 # several words
        run docker $kind ls -q $all --filter "label=com.docker.compose.project=$project" || return
        [ -n "$words" ] || continue
        left=$kind
        # shellcheck disable=SC2086 # several words
        run docker $kind rm $how $words || return
    done
}

case $verb in
check) check ;;
up)
    override >"$NODES_DIRECTORY/compose.yml" || fail "cannot write $NODES_DIRECTORY/compose.yml"
    export NODES_DIRECTORY SHIM
    # In place of this shell: it dies with redlock-chaos.
    # shellcheck disable=SC2046 # several words
    compose -f "$NODES_DIRECTORY/compose.yml" up -d --no-build $(seq "$nodes" | sed s/^/node/)
    ;;
alive)
    look
    [ "$running" = true ] || fail "node $node ended at its start (the image must be of Redis 7.0 or Valkey 7.2, or" \
        "later); it said: $(docker logs --tail 6 "$name" 2>&1 | tr '\r\n' '  ')"
    ;;
kill)
    look
    [ "$running" = true ] || exit 0
    # A paused container does not die before it is resumed.
    [ "$paused" != true ] || tell unpause
    run docker kill "$name" || said=$(why)
    look # it may also have ended by itself
    [ "$running" != true ] || fail "node $node did not die of docker kill: ${said-}"
    ;;
restart | restart-empty)
    look
    [ "$running" != true ] || exit 0
    [ "$verb" = restart ] || run find "$NODES_DIRECTORY/node-$node/data" -mindepth 1 -delete ||
        fail "node $node: cannot remove what is in $NODES_DIRECTORY/node-$node/data: $(why)"
    tell start
    ;;
pause)
    for _ in $(seq 50); do
        look
        [ "$running" = true ] || fail "node $node is dead: it cannot be paused"
        [ "$paused" != true ] || exit 0
        run docker pause "$name" && exit 0
        # On a busy machine, runc gives up now and then.
        case $words in *'unable to freeze'*) sleep 0.1 ;; *) break ;; esac
    done
    fail "node $node: docker pause $name: $(why)"
    ;;
resume)
    look
    [ "$paused" != true ] || tell unpause
    ;;
drop)
    look
    [ "$running" = true ] || fail "node $node is dead: there are no packets to be dropped"
    set_packets '-A INPUT ! -i lo -j DROP' '-A OUTPUT ! -o lo -j DROP'
    ;;
pass)
    look
    [ "$running" != true ] || set_packets
    ;;
log) exec docker logs "$name" ;;
sweep)
    # What was being made or removed at the first look is gone or there at the next.
    for _ in 1 2 3 4 5; do
        if ! sweep; then
            sleep 0.2
        elif [ -z "$left" ]; then
            exit 0
        fi
    done
    fail "a $kind of the project $project could not be listed or removed, or they come again and again: $(why);" \
        'remove them by hand'
    ;;
guard)
    read -r _ # until redlock-chaos has died
    quiet=0
    # A command that was under way may still be making what is then there.
    for _ in $(seq 240); do
        if sweep && [ -z "$left" ]; then quiet=$((quiet + 1)); else quiet=0; fi
        [ $quiet -lt 3 ] || exit 0
        sleep 0.5
    done
    ;;
esac
