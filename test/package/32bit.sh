#!/usr/bin/env bash
# The library compiles for 32 bits without a warning.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# OpenSSL's headers are those of 64 bits.
triplet=/usr/include/$("$CC" -print-multiarch)
echo '#include <stdint.h>' >"$work/probe.c"
"$CC" -m32 -c -o "$work/probe.o" "$work/probe.c" 2>/dev/null || {
    echo "skipped: $CC has no headers for 32 bits (Debian: gcc-multilib)"
    exit 77
}
flags=()
! grep -q REDLOCK_HIREDIS_ARRAY_SIZE_T "$REDLOCK_BUILD/compile_commands.json" || flags+=(-DREDLOCK_HIREDIS_ARRAY_SIZE_T)
count=0
while read -r source; do
    # -fexceptions, as in the build: without it, cancellation is made of longjmp.
    "$CC" -m32 -std=c11 -O0 -fexceptions -fvisibility=hidden -D_GNU_SOURCE -DREDLOCK_VERSION='"0"' -Wall -Wextra \
        -Wpedantic -Wshadow -Wconversion -Wno-psabi -Werror "${flags[@]}" -idirafter "$triplet" \
        -I "$REDLOCK_SOURCE/include" -I "$REDLOCK_SOURCE/src" -c -o "$work/object.o" "$source"
    count=$((count + 1))
done < <(find "$REDLOCK_SOURCE/src" "$REDLOCK_BUILD/src" -name '*.c' -not -path '*/CMakeFiles/*' | sort)
((count > 50)) || { echo "only $count files were found"; exit 1; }
echo "$count files compile for 32 bits"
