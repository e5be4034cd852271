#!/usr/bin/env bash
# The example docs/examples/worker-LOOP.c compiles with the installed headers by the command in its
# first comment, its adapter compiles as C++, and two of its processes work one after the other.
set -euo pipefail

loop=$1
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
# shellcheck source-path=SCRIPTDIR source=example_lib.sh
source "$(dirname "$0")/example_lib.sh"
example=$REDLOCK_SOURCE/docs/examples/worker-$loop.c
command=$(sed -nE 's|^ \* (cc .*) \*/$|\1|p' "$example")
[[ $command == "cc worker-$loop.c \$(pkg-config --cflags --libs redlock"*") -o worker-$loop" ]] ||
    { echo "worker-$loop.c does not say how to compile it: $command"; exit 1; }
package=${command#*--libs redlock} package=${package%%)*} package=${package// /}
[[ -z $package ]] || pkg-config --exists "$package" || { echo "skipped: pkg-config does not know $package"; exit 77; }

prefix=$work/prefix
"$REDLOCK_CMAKE" --install "$REDLOCK_BUILD" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
libdir=$(dirname "$(find "$prefix" -name libredlock.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
system=()
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
# The warnings are for our headers, not for those of the loop.
[[ -z $package ]] || read -ra system <<<"$(pkg-config --cflags "$package" | sed 's/-I/-isystem /g')"
cp "$example" "$work"
(
    cd "$work"
    # libuv's header does not compile as strict C11.
    # shellcheck disable=SC2317 # the example's command calls it
    cc() { "$CC" -std=gnu11 "${warnings[@]}" "${flags[@]}" "${system[@]}" "$@"; }
    eval "$command"
)
if [[ $loop != own-loop && -n ${CXX:-} && $CXX != *NOTFOUND ]]; then
    for std in c++11 c++17; do
        printf '// C++\n#include <redlock/adapters/%s.h>\n\n#include <redlock/adapters/%s.h>\n' "$loop" "$loop" |
            "$CXX" -std=$std "${warnings[@]}" "${system[@]}" -fsyntax-only -I"$prefix/include" -x c++ -
    done
fi

# The page quotes the adapter exactly.
if [[ $loop == own-loop ]]; then
    quoted=$(awk '/^```c$/ { code = 1; next } /^```/ { code = 0 } code' "$REDLOCK_SOURCE/docs/event-loops.md")
    if (($(wc -l <<<"$quoted") < 30)) || [[ $(<"$example") != *"$quoted"* ]]; then
        echo "docs/event-loops.md quotes another adapter than $example has"
        exit 1
    fi
fi

start_nodes

workers=()
for _ in 1 2; do
    LD_LIBRARY_PATH=$libdir timeout 60 "$work/worker-$loop" job "${nodes[@]}" >>"$work/said" 2>&1 &
    workers+=($!)
done
for worker in "${workers[@]}"; do
    wait "$worker" || { echo "a worker ended with $?:"; cat "$work/said"; exit 1; }
done
# The second one may start before the first one has printed its end.
wanted=$(for step in 1 2 3 4 5 1 2 3 4 5; do echo "step $step"; done)
[[ $(grep '^step' "$work/said") == "$wanted" && $(grep -c '^released: done$' "$work/said") == 2 ]] ||
    { echo "the two workers said:"; cat "$work/said"; exit 1; }
echo "two workers, one after the other"
