#!/usr/bin/env bash
# C++ users: the installed C headers compile as C++, the C++ headers compile alone and in all modes,
# and programs outside of the tree link and run.
set -euo pipefail

[[ -n ${CXX:-} && $CXX != *NOTFOUND ]] || { echo "skipped: no C++ compiler"; exit 77; }
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
"$REDLOCK_CMAKE" --install "$REDLOCK_BUILD" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
libdir=$(dirname "$(find "$prefix" -name libredlock.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} LD_LIBRARY_PATH=$libdir
read -ra cflags <<<"$(pkg-config --cflags redlock)"
read -ra libs <<<"$(pkg-config --libs redlock)"
read -ra flags <<<"${REDLOCK_FLAGS:-}"

# strict COMPILER arguments… : with the warnings of the house as errors, against the installed tree.
strict() {
    "$1" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "${cflags[@]}" "${@:2}"
}

compilers=("$CXX")
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null && compilers+=("$compiler")
done
read -ra headers <<<"$(cd "$prefix/include" && echo redlock/redlock.hpp redlock/cpp/*.hpp)"
((${#headers[@]} >= 6)) || { echo "too few headers are installed: ${headers[*]}"; exit 1; }
for header in "${headers[@]}"; do
    echo "#include <$header>" | strict "$CXX" -std=c++17 -fsyntax-only -x c++ -
done
for compiler in "${compilers[@]:1}"; do
    strict "$compiler" -std=c++11 -fsyntax-only "$here/program.cpp"
    for mode in -std=c++17 -std=c++20 "-std=c++17 -fno-exceptions -fno-rtti"; do
        read -ra words <<<"$mode"
        strict "$compiler" "${words[@]}" -fsyntax-only "$here/modes.cpp"
    done
done
echo "${#headers[@]} C++ headers compile alone; the programs compile with ${compilers[*]:1}"
# A sanitizer's runtime belongs to its own compiler; the C++ compiler may be of another make.
if [[ -n ${REDLOCK_FLAGS// /} ]]; then
    echo "compiled; linking is for builds without sanitizers"
    exit 0
fi
"$CXX" "${flags[@]}" "${cflags[@]}" -o "$work/program" "$here/program.cpp" "${libs[@]}"
"$work/program" "$REDLOCK_VERSION"
for mode in -fexceptions "-fno-exceptions -fno-rtti"; do
    read -ra words <<<"$mode"
    "$CXX" -std=c++17 "${words[@]}" "${cflags[@]}" -o "$work/modes" "$here/modes.cpp" "${libs[@]}"
    "$work/modes" "$REDLOCK_VERSION"
done

# The example, on three servers: it works, and it says why it cannot.
# shellcheck source-path=SCRIPTDIR source=example_lib.sh
source "$(dirname "$0")/example_lib.sh"
start_nodes
strict "$CXX" -std=c++17 -o "$work/job" "$REDLOCK_SOURCE/docs/examples/job.cpp" "${libs[@]}"
"$work/job" nightly "${nodes[@]}" | tee "$work/steps"
[[ $(grep -c '^step [123] with fence [1-9]' "$work/steps") == 3 ]] || { echo "not three steps"; exit 1; }
! "$work/job" nightly 127.0.0.1:1 2>"$work/error" || { echo "a job without a node ran"; exit 1; }
cat "$work/error"
grep -q '127.0.0.1:1' "$work/error" || { echo "the error does not name the node"; exit 1; }
