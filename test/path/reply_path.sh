#!/usr/bin/env bash
# usage: reply_path.sh PROGRAM : the .c files that the reply that grants a lock passes
# until the callback runs, in their order, and how often a function returns on the way. Fails if
# there are more than the limits below: whoever follows a reply has to open each of them.
set -euo pipefail
FILES_MAX=20 RETURNS_MAX=94

program=$1
command -v addr2line >/dev/null || { echo "addr2line is not installed (Debian: binutils)" && exit 77; }
calls=$("$program")
files=$(tail -n +2 <<<"$calls" | addr2line -e "$program" | sed 's/:.*//' | grep '\.c$' | awk '!seen[$0]++' |
    sed 's,^.*src/,,')
returns=$(sed -n '1s/returns //p' <<<"$calls")
count=$(wc -l <<<"$files")
echo "$files"
echo "$count files, $returns returns"
((count <= FILES_MAX && returns <= RETURNS_MAX)) ||
    { echo "more than $FILES_MAX files, or more than $RETURNS_MAX returns" && exit 1; }
