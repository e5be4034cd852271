#!/usr/bin/env bash
# The manifests of docs/examples/kubernetes fit together, and their commands do what
# docs/kubernetes.md says, on real nodes. No cluster is needed: the commands run here.
# shellcheck disable=SC2016 # programs for other shells
# shellcheck disable=SC2317 # functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
manifests=$here/../../docs/examples/kubernetes
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: no python3 with yaml"; exit 77; }
command -v busybox >/dev/null || { echo "skipped: no busybox"; exit 77; }

read_manifests() {
    python3 "$here/kubernetes_check.py" "$1"/*.yaml
}
# Controls: it finds what does not fit.
for fault in 's/matchLabels: {app: scheduler}/matchLabels: {app: other}/' \
    's/defaultMode: 0440/defaultMode: 0444/' 's/defaultMode: 0440/defaultMode: 0400/' 's/, fsGroup: 65534//' \
    's/secretName: redlock-nodes/secretName: none/' \
    's/name: nodes, mountPath/name: none, mountPath/' 's|/etc/redlock/nodes|/etc/redlock/none|' \
    's/timeoutSeconds: 5/timeoutSeconds: 1/' 's/, "0",/, 0,/' 's/- name: nodes$/  name: nodes/'; do
    rm -rf "$work/control" && cp -r "$manifests" "$work/control"
    sed -i "$fault" "$work"/control/*.yaml
    expect 1 read_manifests "$work/control"
done
expect 0 read_manifests "$manifests"
lines=$work/lines
cp "$out" "$lines"

# field NAME CONTAINER ROLE : that line's command, with the paths of this test.
field() {
    local text
    text=$(sed -n "s/^$1 $2 $3 //p" "$lines" | base64 -d)
    [[ -n $text ]] || { echo "the manifests have no $*"; kill $$; }
    text=${text//'/etc/redlock'/$work/etc}
    text=${text//'/metrics'/$work/metrics}
    printf '%s' "${text//'/usr/local/bin'/$work/bin}"
}

# A Secret is mounted like this.
start_nodes 3
mkdir -p "$work/etc/..data" "$work/metrics" "$work/bin" "$work/tool"
printf 'redis://%s\n' "${nodes//,/$'\n'redis://}" >"$work/etc/..data/nodes"
chmod 440 "$work/etc/..data/nodes"
ln -s ..data/nodes "$work/etc/nodes"
# Timeouts for a loaded machine.
printf '#!/bin/sh\nexec %q --node-timeout 5s --connect-timeout 10s "$@"\n' "$REDLOCK_TOOL" >"$work/tool/redlock"
chmod +x "$work/tool/redlock"
export REDLOCK_NODES_FILE=$work/etc/nodes PATH=$work/tool:$PATH

# What the Secret has is a file of nodes: it is read, and these nodes do not answer.
field redlock-nodes nodes secret >"$work/secret"
chmod 440 "$work/secret"
expect 69 "$REDLOCK_TOOL" --nodes-file "$work/secret" --connect-timeout 10ms status
says "$out" '10\.0\.0\.3'
never_says "$err" secret

# The job: once, and who comes later succeeds without it.
printf '#!/bin/sh\necho did >>%q\n' "$work/did" >"$work/bin/backup"
chmod +x "$work/bin/backup"
job=$(field backup backup command)
expect 0 bash -c "$job"
expect_no_err 0 bash -c "$job"
is 'how often the job ran' "$(wc -l <"$work/did")" 1
# SIGTERM ends a job, and the next one need not wait.
redis 0 del backup >"$out" && redis 1 del backup >"$out" && redis 2 del backup >"$out"
printf '#!/bin/sh\necho did >>%q\nexec sleep 600\n' "$work/did" >"$work/bin/backup"
bash -c "exec $job" &
pod=$!
eventually gives 2 grep -c did "$work/did"
kill -TERM $pod
wait $pod
is 'the status after SIGTERM' $? 143
no_keys_left backup || fail 'the lock is still held'

# The leader: the first pod leads. It gets one SIGTERM, ends, and then the second one leads.
cat >"$work/bin/scheduler" <<END
#!/bin/bash
trap 'echo term >>$work/terms; sleep 0.3; echo ended >>$work/terms; exit 0' TERM
echo leads >>$work/leads
sleep 600 & wait \$!
END
chmod +x "$work/bin/scheduler"
leader=$(field scheduler scheduler command)
bash -c "exec $leader" &
first=$!
eventually gives 1 grep -c leads "$work/leads"
bash -c "exec $leader" &
second=$!
eventually gives_above 0 redis 0 zcard scheduler:wait
kill -TERM $first
wait $first
is 'the status of the first pod' $? 0
is 'what the first pod was told' "$(tr '\n' ' ' <"$work/terms")" 'term ended '
eventually gives 2 grep -c leads "$work/leads"
kill -TERM $second
wait $second
is 'the status of the second pod' $? 0

# The metrics: written again and again, valid, alive, and served as text.
bash -c "exec $(field redlock-metrics status command)" >"$work/loop" 2>&1 &
loop=$!
eventually test -s "$work/metrics/redlock.txt"
expect 0 python3 "$here/metrics_check.py" "$work/metrics/redlock.txt"
says "$out" '^redlock_nodes_voting\{\} 3$'
expect 0 bash -c "$(field redlock-metrics status livenessProbe)"
touch -d '-5 minutes' "$work/metrics/old"
alive=$(field redlock-metrics status livenessProbe)
expect 1 bash -c "${alive/redlock.txt/old}"
web=$(field redlock-metrics web command)
server=
for ((try = 0; try < 50; try++)); do
    port=$((10000 + RANDOM % 20000))
    bash -c "exec busybox ${web/9121/$port}" >"$work/web" 2>&1 &
    server=$!
    disown
    eventually eval "gone $server || (exec 3<>/dev/tcp/127.0.0.1/$port)"
    gone $server || break
done
pids+=("$server")
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /redlock.txt HTTP/1.0\r\n\r\n' >&3
cat <&3 >"$out"
exec 3>&-
says "$out" '^Content-type: text/plain'
says "$out" '^redlock_nodes_quorum 2$'
kill -KILL $server
kill -TERM $loop
wait $loop
is 'the status of the loop' $? 0

# Ready: with a quorum, also while a node hangs, within the probe's time; not without a quorum.
ready=$(field scheduler scheduler readinessProbe)
expect 0 bash -c "$ready"
hang_node 0
began=$EPOCHREALTIME
expect 0 bash -c "${ready/redlock/$REDLOCK_TOOL --node-timeout 2s}"
took_ms=$(((${EPOCHREALTIME/./} - ${began/./}) / 1000))
checks=$((checks + 1))
((took_ms < 5000)) || fail "the probe took $took_ms ms"
wake_node 0
kill_node 0 1
expect 69 bash -c "${ready/redlock/$REDLOCK_TOOL --connect-timeout 1s}"

# The guide's command makes the same Secret of such a file.
command -v kubectl >/dev/null || { echo "skipped: no kubectl"; ((failures == 0)) && exit 77; finish; }
cp "$work/secret" "$work/nodes"
command=$(grep '^kubectl create secret' "$here/../../docs/kubernetes.md")
expect 0 bash -c "cd '$work' && $command --dry-run=client -o yaml"
says "$out" "^  nodes: $(base64 -w 0 "$work/secret")\$"
finish
