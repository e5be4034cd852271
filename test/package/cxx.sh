#!/usr/bin/env bash
# A C++ program that includes the headers compiles and links.
set -euo pipefail

[[ -n ${CXX:-} && $CXX != *NOTFOUND ]] || { echo "skipped: no C++ compiler"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -ra flags <<<"${REDLOCK_FLAGS:-}"
for std in c++11 c++17; do
    "$CXX" -std=$std -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only \
        -I"$REDLOCK_SOURCE/include" "$here/program.cpp"
done
# A sanitizer's runtime belongs to its own compiler; the C++ compiler may be of another make.
if [[ -n ${REDLOCK_FLAGS// /} ]]; then
    echo "compiled; linking is for builds without sanitizers"
    exit 0
fi
"$CXX" "${flags[@]}" -I"$REDLOCK_SOURCE/include" -o "$work/program" "$here/program.cpp" -L"$REDLOCK_BUILD/src" \
    -lredlock -Wl,-rpath,"$REDLOCK_BUILD/src"
"$work/program" "$REDLOCK_VERSION"
