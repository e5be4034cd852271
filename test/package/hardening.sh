#!/usr/bin/env bash
# The library and the tool are hardened: full RELRO, position independent, no executable stack,
# stack protector, FORTIFY.
set -euo pipefail

library=$1 tool=$2
command -v readelf >/dev/null || { echo "skipped: no readelf"; exit 77; }

# has FILE OPTION WORDS : what readelf says of it.
has() {
    [[ $(readelf -W "$2" "$1") =~ $3 ]] || { echo "$1: readelf $2 says nothing of $3"; exit 1; }
}

for file in "$library" "$tool"; do
    has "$file" -d 'FLAGS.*(BIND_)?NOW'
    has "$file" -l 'GNU_RELRO'
    has "$file" -h 'Type: *DYN'
    has "$file" -l 'GNU_STACK .* RW '
    has "$file" --dyn-syms '__stack_chk_fail'
    has "$file" --dyn-syms '__[a-z]+_chk@'
done
# Each exported name has a version.
! nm -D --defined-only "$library" | grep ' T ' | grep -vE '@@REDLOCK_|__(asan|gcov)' || {
    echo "names without a version"
    exit 1
}
