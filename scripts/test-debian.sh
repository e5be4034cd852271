#!/usr/bin/env bash
# Runs scripts/test.sh in a fresh Debian in a temporary folder, to test with other versions of
# compilers, hiredis and Redis.
set -euo pipefail

# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    cat <<'END'
usage: scripts/test-debian.sh [--mirror URL] [--keep] [--server NAME] [12|13|sid] [PART]…
       scripts/test-debian.sh [--mirror URL] [--keep] [--server NAME] --run COMMAND [12|13|sid]

Makes a minimal Debian 13 (the default), 12 or unstable (sid) with debootstrap, copies this tree into
it and runs scripts/test.sh PART… there; the default part is release. Debian 13 has hiredis 1.2,
Redis 8.0 and Valkey 8.1; unstable has newer ones. Needs root. Leaves nothing on the machine.

  --mirror URL   the package archive; default: the Debian archive that this machine's apt uses
  --keep         keep the folder, and print its path
  --server NAME  redis (the default), or valkey: the tests then start valkey-server wherever they
                 start a redis-server. Not in Debian 12
  --run COMMAND  run another command of this tree instead, such as 'bench/run.sh --quick'
END
}

mirror='' keep=0 server=redis suite=trixie command=scripts/test.sh
while (($#)); do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --mirror) mirror=${2:?--mirror needs a URL} && shift ;;
    --keep) keep=1 ;;
    --server) server=${2:?--server needs redis or valkey} && shift ;;
    --run) command=${2:?--run needs a command} && shift ;;
    12) suite=bookworm ;;
    13) suite=trixie ;;
    sid) suite=sid ;;
    -*) usage >&2 && exit 64 ;;
    *) break ;;
    esac
    shift
done
parts=("$@")
if [[ $command == scripts/test.sh ]]; then
    ((${#parts[@]})) || parts=(release)
elif ((${#parts[@]})); then
    usage >&2 && exit 64
fi

[[ $server == redis || ($server == valkey && $suite != bookworm) ]] || { usage >&2 && exit 64; }

((EUID == 0)) || redlock_die "debootstrap and chroot need root: run this script as root"
redlock_install debootstrap
if [[ -z $mirror ]]; then
    # shellcheck disable=SC2016 # apt fills these in
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' |
        sed -n 1p)
    [[ -n $mirror ]] || redlock_die "this machine's apt has no Debian archive: give one with --mirror URL"
fi

root=$(mktemp -d)
chmod 755 "$root" # as / is: other users must get in
# Mounts are in namespaces of their own (below), also those that debootstrap makes, and end with
# them. So removing the folder removes no file of the machine. It enters no other file system.
cleanup() {
    if ((keep)); then
        printf 'kept: %s\n' "$root"
    else
        rm -rf --one-file-system "$root"
    fi
}
trap cleanup EXIT

began=$SECONDS
printf 'making a fresh Debian (%s) in %s …\n' "$suite" "$root"
unshare --mount --propagation private debootstrap --variant=minbase --include=git,ca-certificates \
    "$suite" "$root" "$mirror" >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    rm -f "$root.log"
    redlock_die "debootstrap failed (see the end of its output above)"
}
rm -f "$root.log"
printf 'made in %d s\n' $((SECONDS - began))
# Use this machine's proxies, authorities and similar settings there, too.
apt-config dump Acquire >"$root/etc/apt/apt.conf.d/99machine"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
authorities=/etc/ssl/certs/ca-certificates.crt
[[ ! -e $authorities ]] || cp -L "$authorities" "$root$authorities"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"

mkdir "$root/libredlock"
# Copy the files that git knows or would add, but no build directory.
(cd "$REDLOCK_ROOT" && git ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read -T - -cf -) |
    tar -xf - -C "$root/libredlock"

# The tests find Valkey under the names of Redis, before Redis itself.
if [[ $server == valkey ]]; then
    for name in server cli; do
        ln -s "/usr/bin/valkey-$name" "$root/usr/local/bin/redis-$name"
    done
    command="source scripts/lib.sh && redlock_install valkey-server valkey-tools && $command"
fi

# Bind devices one by one, so that root in there cannot remove the machine's devices.
# shellcheck disable=SC2016 # expanded inside
unshare --mount --pid --fork --propagation private sh -c '
    root=$1 command=$2 && shift 2 && dev=$root/dev
    mount -t proc proc "$root/proc" && mount -t tmpfs dev "$dev" && mkdir "$dev/shm" "$dev/pts" &&
    mount -t devpts -o newinstance,ptmxmode=0666 pts "$dev/pts" && ln -s pts/ptmx "$dev/ptmx" &&
    ln -s /proc/self/fd "$dev/fd" && ln -s fd/0 "$dev/stdin" && ln -s fd/1 "$dev/stdout" &&
        ln -s fd/2 "$dev/stderr" || exit
    for node in null zero full random urandom tty; do
        : >"$dev/$node" && mount --bind "/dev/$node" "$dev/$node" || exit
    done
    exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CI=true \
        DEBIAN_FRONTEND=noninteractive \
        chroot "$root" bash -c "cd /libredlock && $command \"\$@\"" bash "$@"' \
    sh "$root" "$command" "${parts[@]}" </dev/null
