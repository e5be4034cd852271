# What demo.sh and test.sh share: installing packages and building. Source it from bash; it changes no shell option.
# shellcheck shell=bash

REDLOCK_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What a build of the library and the tool needs, by the names of Debian and Ubuntu.
# shellcheck disable=SC2034 # for those who source this
REDLOCK_BUILD_PACKAGES=(gcc libc6-dev cmake ninja-build pkg-config libhiredis-dev libev-dev)

redlock_die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# redlock_install PACKAGES… : installs those that are missing, by apt-get, as root or with sudo. Silent unless it fails.
redlock_install() {
    local package missing=() as_root=() apt log
    for package in "$@"; do
        # pkg-config is a virtual name on newer systems: ask for what provides it.
        if [[ $package == pkg-config ]] && command -v pkg-config >/dev/null; then
            continue
        fi
        if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null || redlock_die "apt-get is not here; install by hand what these Debian packages hold: ${missing[*]}"
    if ((EUID != 0)); then
        command -v sudo >/dev/null || redlock_die "these packages are missing: ${missing[*]}; run it as root, or install sudo"
        as_root=(sudo)
    fi
    apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
    log=$(mktemp)
    printf 'installing %s …\n' "${missing[*]}"
    # A fresh machine has no package lists, and a stale one has wrong ones: update first. A source of packages that is none of
    # ours may fail at that: what counts is the installation.
    if ! { "${apt[@]}" update || true; "${apt[@]}" install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        redlock_die "apt-get could not install ${missing[*]} (its words are above)"
    fi
    rm -f "$log"
    # Debian starts a server as soon as its package is there; we start our own, so one that we brought does not stay.
    if [[ " ${missing[*]} " == *' redis-server '* && -d /run/systemd/system ]]; then
        "${as_root[@]}" systemctl --quiet disable --now redis-server || true
    fi
}

# redlock_build BUILD_DIR [cmake args…] : configures and builds everything that the arguments select. Silent unless it fails.
redlock_build() {
    local build=$1 log
    shift
    log=$(mktemp)
    if ! { cmake -S "$REDLOCK_ROOT" -B "$build" -G Ninja "$@" && cmake --build "$build"; } >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        redlock_die "the build in $build failed (the compiler's words are above)"
    fi
    rm -f "$log"
}
