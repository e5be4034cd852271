#!/usr/bin/env bash
# Runs a command with a Docker daemon and the images that docker-compose.yml names: with what is
# there, or with its own for as long.
set -uo pipefail

usage() {
    cat <<'END'
usage: test/compose/docker.sh COMMAND…

Where a daemon answers, COMMAND runs with it. Elsewhere, as root, a daemon is started in namespaces
of its own (network, processes, mounts), with its data in a temporary folder; COMMAND runs in there,
and when it ends nothing is left. The network in there is loopback alone.

REDLOCK_NODE_IMAGE and REDLOCK_NODE_VERSION name the image of the nodes if they are set; else one is
made from the installed redis-server. If REDLOCK_TOOL names the built tool, an image of it is made
too, and REDLOCK_TOOL_IMAGE names it.

Exit status: that of COMMAND; 77 with a reason in the last line where Docker cannot run; 64 for bad usage.
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
START_TIMEOUT_S=30
folder=
daemon=
images=()

skip() {
    echo "skipped: $*"
    exit 77
}

answers() {
    timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

# try_daemon OPTIONS… : starts it and waits until it answers. False if it ends before; its words are
# in $folder/log.
try_daemon() {
    local deadline=$((SECONDS + START_TIMEOUT_S))
    dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" --host "$DOCKER_HOST" \
        --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/${folder##*/}" "$@" >"$folder/log" 2>&1 &
    daemon=$!
    while ((SECONDS < deadline)) && kill -0 "$daemon" 2>/dev/null; do
        answers && return 0
        sleep 0.1
    done
    end_daemon
    return 1
}

end_daemon() {
    local deadline=$((SECONDS + 20))
    [[ -n $daemon ]] || return 0
    kill -TERM "$daemon" 2>/dev/null
    while kill -0 "$daemon" 2>/dev/null; do
        ((SECONDS < deadline)) || kill -KILL "$daemon" 2>/dev/null
        sleep 0.05
    done
    wait "$daemon" 2>/dev/null
    daemon=
}

# Without the kernel's overlays and without iptables: docker's own proxy still publishes ports.
start_daemon() {
    export DOCKER_HOST=unix://$folder/socket
    unset DOCKER_CONTEXT
    try_daemon && return
    try_daemon --storage-driver vfs && return
    try_daemon --iptables=false --ip-masq=false && return
    try_daemon --storage-driver vfs --iptables=false --ip-masq=false && return
    skip "dockerd does not start here: $(grep -v 'level=info' "$folder/log" | tail -n 1)"
}

raise_loopback() {
    ip link set lo up 2>/dev/null ||
        python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14s", b"lo", 0x49, b""))' 2>/dev/null ||
        skip 'loopback cannot be raised in a new network namespace: neither by ip (of iproute2) nor by python3'
}

make_image() {
    local name=$1 words
    shift
    words=$("$here/local-image.sh" "$@" --name "$name" 2>&1) || skip "no image can be made: ${words##*$'\n'}"
    images+=("$name")
}

clean_up() {
    ((${#images[@]})) && docker rmi -f "${images[@]}" >/dev/null 2>&1
    end_daemon
}

run() {
    local number=$$-$RANDOM
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [[ -z ${REDLOCK_NODE_IMAGE-} ]]; then
        make_image "redlock-node-$number:local"
        export REDLOCK_NODE_IMAGE=redlock-node-$number REDLOCK_NODE_VERSION=local
    fi
    if [[ -n ${REDLOCK_TOOL-} ]]; then
        make_image "redlock-tool-$number:local" --tool "$REDLOCK_TOOL"
        export REDLOCK_TOOL_IMAGE=redlock-tool-$number:local
    fi
    "$@"
}

# The second life of this script, in the new namespaces.
if [[ ${1-} == --inside ]]; then
    folder=$2
    shift 2
    trap end_daemon EXIT
    raise_loopback
    start_daemon
    run "$@"
    exit
fi

case ${1-} in
'' | -*) usage >&2 && exit 64 ;;
esac
command -v docker >/dev/null || skip 'docker is not installed'
docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1 ||
    skip 'neither docker compose nor docker-compose is installed'
if answers; then
    run "$@"
    exit
fi
((EUID == 0)) || skip 'no Docker daemon answers, and only root can start one'
command -v dockerd >/dev/null || skip 'no Docker daemon answers, and dockerd is not installed'
namespaces=(unshare --net --pid --fork --kill-child --mount-proc)
reason=$("${namespaces[@]}" true 2>&1) ||
    skip "no Docker daemon answers, and none can be started in namespaces of its own: $reason"
folder=$(mktemp -d "${TMPDIR:-/tmp}/redlock-docker.XXXXXX") || exit 1
# The kernel ends all that is in there with its first process, this script's second life, and that
# one with us; mounts go with the namespace. What ends so leaves its control groups, which have the
# folder's name.
remove_all() {
    local try
    for ((try = 0; try < 100; try++)); do
        find /sys/fs/cgroup -depth -type d -path "*/${folder##*/}*" -exec rmdir {} + 2>/dev/null
        rm -rf "$folder" 2>/dev/null && return
        sleep 0.1
    done
    echo "docker.sh: $folder cannot be removed" >&2
}
trap remove_all EXIT
setpriv --pdeathsig KILL "${namespaces[@]}" "${BASH_SOURCE[0]}" --inside "$folder" "$@" &
inside=$!
trap 'kill -KILL "$inside"; exit 130' INT
trap 'kill -KILL "$inside"; exit 143' TERM
wait "$inside"
