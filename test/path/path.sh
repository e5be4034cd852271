#!/usr/bin/env bash
# usage: path.sh PROGRAM WAY FILES RETURNS : the .c files that lie on a way (see path.c), in their
# order, and how often a function returns on it. Fails if there are more than FILES, or more than
# RETURNS: whoever follows the way has to open each of them.
set -euo pipefail

program=$1 way=$2 files_max=$3 returns_max=$4
command -v addr2line >/dev/null || { echo "addr2line is not installed (Debian: binutils)" && exit 77; }
calls=$("$program" "$way")
files=$(tail -n +2 <<<"$calls" | addr2line -e "$program" | sed 's/:.*//' | grep '\.c$' | awk '!seen[$0]++' |
    sed 's,^.*src/,,')
returns=$(sed -n '1s/returns //p' <<<"$calls")
count=$(wc -l <<<"$files")
echo "$files"
echo "$way: $count files, $returns returns"
((count <= files_max && returns <= returns_max)) ||
    { echo "more than $files_max files, or more than $returns_max returns" && exit 1; }
