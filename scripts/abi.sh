#!/usr/bin/env bash
# Compares the interface of libredlock.so with the kept baseline, abi/libredlock.abi.
set -euo pipefail

# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    cat <<'END'
usage: scripts/abi.sh --check|--record LIBRARY

Needs abidiff and abidw (Debian: abigail-tools), and a LIBRARY with debug information.

  --check    fails if a function, a type or an enumerator of the public headers differs from the
             baseline in any way, also in a way that breaks nobody
  --record   makes the interface of LIBRARY the baseline. Do this with each change that is meant:
             then the change is seen in review. docs/architecture.md, "Growing without breaking
             programs", says which changes are allowed
END
}

way=${1-} library=${2-}
[[ $way != --help && $way != -h ]] || { usage && exit 0; }
[[ ($way == --check || $way == --record) && -n $library && $# == 2 ]] || { usage >&2 && exit 64; }
[[ -e $library ]] || redlock_die "there is no $library: build it first"
{ command -v abidiff && command -v abidw; } >/dev/null ||
    redlock_die "abidiff and abidw are missing; Debian has them in the package abigail-tools"

baseline=$REDLOCK_ROOT/abi/libredlock.abi
now=$(mktemp)
trap 'rm -f "$now"' EXIT
# Only what the public headers define counts, and no path or line of the machine that built it.
abidw --headers-dir "$REDLOCK_ROOT/include/redlock" --drop-private-types --no-corpus-path --no-comp-dir-path \
    --no-show-locs --no-elf-needed --exported-interfaces-only --out-file "$now" "$library"
functions=$(grep -c '<elf-symbol ' "$now" || true)
((functions >= 30)) || redlock_die "only $functions exported functions were read from $library"

if [[ $way == --record ]]; then
    mkdir -p "${baseline%/*}"
    cp "$now" "$baseline"
    echo "$functions functions are recorded in ${baseline#"$REDLOCK_ROOT"/}"
    exit 0
fi
abidiff --no-show-locs "$baseline" "$now" || {
    echo "The interface differs (abidiff's status: $?). If that is meant and breaks no program, run:"
    echo "  scripts/abi.sh --record $library"
    exit 1
}
echo "the interface of $functions functions is that of the baseline"
