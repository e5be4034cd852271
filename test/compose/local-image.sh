#!/usr/bin/env bash
# Makes images of the installed redis-server, and of a built tool, with the libraries they load,
# where none can be pulled.
set -euo pipefail

usage() {
    cat <<'END'
usage: test/compose/local-image.sh [--server PROGRAM] [--cli PROGRAM] [--name NAME:TAG]
       test/compose/local-image.sh --tool PROGRAM [--name NAME:TAG]

The first makes the image of a node, redlock-node:local, from redis-server and redis-cli (or
valkey-server and valkey-cli) of PATH; the second makes the image of the tool, redlock-tool:latest.
docker-compose.yml takes them by its variables:

  test/compose/local-image.sh
  test/compose/local-image.sh --tool build/release/tools/redlock/redlock
  export REDLOCK_NODE_IMAGE=redlock-node REDLOCK_NODE_VERSION=local
  docker compose up -d

Exit status: 0 if the image was made, 1 if not, 64 for bad usage.
END
}

die() {
    echo "local-image.sh: $*" >&2
    exit 1
}

server='' cli='' tool='' name=''
while (($#)); do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --server | --cli | --tool | --name)
        [[ -n ${2-} ]] || { echo "local-image.sh: $1 needs a value (see --help)" >&2 && exit 64; }
        declare "${1#--}=$2"
        shift
        ;;
    *) echo "local-image.sh: unknown argument $1 (see --help)" >&2 && exit 64 ;;
    esac
    shift
done

command -v docker >/dev/null || die 'there is no program docker; on Debian: apt-get install docker.io docker-compose'
root=$(mktemp -d "${TMPDIR:-/tmp}/redlock-image.XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root" # it becomes the image's /
mkdir -p "$root"/{bin,dev,etc,proc,sys,usr/local/bin,data}
mkdir -m 1777 "$root/tmp"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"

# find_program NAME… : the first that there is.
find_program() {
    local candidate
    for candidate in "$@"; do
        command -v "$candidate" && return 0
    done
    die "none of these programs is here: $*; on Debian: apt-get install redis-server"
}

# add PROGRAM PATH : the program at this path of the image, and each library where the loader finds
# it here.
add() {
    local libraries library
    [[ -x $1 ]] || die "there is no program $1"
    cp -L "$1" "$root$2"
    libraries=$(ldd "$1") || return 0 # a static one
    [[ $libraries != *'not found'* ]] || die "$1 misses a library: ${libraries%%not found*}not found"
    while read -r library; do
        mkdir -p "$root${library%/*}"
        cp -L "$library" "$root$library"
    done < <(grep -o '/[^ ]*' <<<"$libraries")
}

if [[ -n $tool ]]; then
    name=${name:-redlock-tool:latest}
    add "$tool" /usr/local/bin/redlock
    changes=(--change 'ENTRYPOINT ["redlock"]' --change 'CMD ["--help"]' --change 'USER 65534:65534')
else
    name=${name:-redlock-node:local}
    server=${server:-$(find_program redis-server valkey-server)}
    cli=${cli:-$(find_program redis-cli valkey-cli)}
    add "$server" "/usr/local/bin/${server##*/}"
    add "$cli" "/usr/local/bin/${cli##*/}"
    add "$(command -v sh)" /bin/sh
    # As in the images from outside: options alone are the server's.
    # shellcheck disable=SC2016 # its own variables
    printf '#!/bin/sh\ncase $1 in -*) set -- %s "$@" ;; esac\nexec "$@"\n' "${server##*/}" \
        >"$root/usr/local/bin/entrypoint"
    chmod 755 "$root/usr/local/bin/entrypoint"
    changes=(--change 'ENTRYPOINT ["/usr/local/bin/entrypoint"]' --change "CMD [\"${server##*/}\"]"
        --change 'WORKDIR /data' --change 'EXPOSE 6379')
fi
tar -C "$root" --owner 0 --group 0 --numeric-owner -c . |
    docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' "${changes[@]}" - "$name" >/dev/null ||
    die "docker import failed (its words are above)"
echo "$name"
