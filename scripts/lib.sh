# Installs packages, builds, and starts redis-servers, for scripts and tests. Source it from bash;
# it sets no shell option.
# shellcheck shell=bash

REDLOCK_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# The packages that a build of the library and the tool needs, as Debian and Ubuntu name them.
# shellcheck disable=SC2034 # for scripts that source this file
REDLOCK_BUILD_PACKAGES=(gcc libc6-dev cmake ninja-build pkg-config libhiredis-dev libev-dev libssl-dev)
# The loops that the tests of adapters use. Nothing else needs them.
# shellcheck disable=SC2034
REDLOCK_LOOP_PACKAGES=(libuv1-dev libevent-dev libglib2.0-dev)

redlock_die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# redlock_install PACKAGES… : installs missing packages with apt-get, as root or with sudo. Prints
# their names; the rest of the output only if it fails.
redlock_install() {
    local package missing=() as_root=() apt log
    for package in "$@"; do
        # On newer systems pkg-config is a virtual package: check for the command.
        if [[ $package == pkg-config ]] && command -v pkg-config >/dev/null; then
            continue
        fi
        if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null ||
        redlock_die "there is no apt-get; install by hand what these Debian packages contain: ${missing[*]}"
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            redlock_die "these packages are missing: ${missing[*]}; run this script as root, or install sudo"
        as_root=(sudo)
    fi
    apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
    log=$(mktemp)
    printf 'installing %s …\n' "${missing[*]}"
    # A fresh machine has no package lists, and old lists are wrong: update first. Ignore an update
    # that fails, perhaps because of another package source: the installation decides.
    if ! {
        "${apt[@]}" update || true
        "${apt[@]}" install --no-install-recommends "${missing[@]}"
    } >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        redlock_die "apt-get could not install ${missing[*]} (see its output above)"
    fi
    rm -f "$log"
    # Debian starts a server when its package is installed. We start our own, so stop that one.
    if [[ " ${missing[*]} " == *' redis-server '* && -d /run/systemd/system ]]; then
        "${as_root[@]}" systemctl --quiet disable --now redis-server || true
    fi
}

# redlock_build BUILD_DIR [--only LABEL] [cmake args…] : configures and builds all targets that the
# arguments select, or only the programs of the tests with LABEL: each test has the name of its
# program. Prints output only if it fails.
redlock_build() {
    local build=$1 label='' log
    shift
    [[ ${1:-} != --only ]] || { label=$2 && shift 2; }
    log=$(mktemp)
    if ! {
        cmake -S "$REDLOCK_ROOT" -B "$build" -G Ninja "$@" && redlock_targets "$build" "$label" &&
            cmake --build "$build" --target "${targets[@]}"
    } >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        redlock_die "the build in $build failed (see the output above)"
    fi
    rm -f "$log"
}

# redlock_targets BUILD_DIR LABEL : sets targets.
redlock_targets() {
    targets=(all)
    [[ -n $2 ]] || return 0
    mapfile -t targets < <(cd "$1" && ctest -N -L "^$2\$" | sed -n 's/^ *Test *#[0-9]*: //p')
    ((${#targets[@]})) || { echo "no test has the label $2" && return 1; }
}

# redlock_start_server PORT FOLDER [redis-server arguments…] : on loopback, with its data, its log
# and its socket in FOLDER. Sets started to its pid. Fails if it ends, as when the port is taken.
# shellcheck disable=SC2034 # started is for those who source this
redlock_start_server() {
    local port=$1 folder=$2 deadline=$((SECONDS + 30))
    shift 2
    mkdir -p "$folder"
    redis-server --port "$port" --bind 127.0.0.1 --dir "$folder" --save '' --appendonly no --daemonize no \
        --unixsocket "$folder/socket" "$@" >"$folder/log" 2>&1 &
    started=$!
    disown "$started" # its death is no news for this shell
    while kill -0 "$started" 2>/dev/null && ((SECONDS <= deadline)); do
        # Ask over the socket in its own folder: another server may answer at the port. Where that
        # one has the same folder, only the log is ours.
        grep -qs 'eady to accept connections' "$folder/log" || { sleep 0.02 && continue; }
        case $(redis-cli -s "$folder/socket" ping 2>&1) in
        PONG | *NOAUTH* | *LOADING*) return 0 ;;
        esac
        sleep 0.02
    done
    kill -KILL "$started" 2>/dev/null
    return 1
}
