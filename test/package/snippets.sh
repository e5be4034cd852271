#!/usr/bin/env bash
# Every C block of a document (```c) compiles with the warnings of the house as errors, and links.
set -euo pipefail

document=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v dir="$work" '
    /^```c$/ { file = dir "/" ++n ".c"; print "#line " NR + 1 " \"" FILENAME "\"" >file; next }
    /^```/ { file = "" }
    file { print >file }
' "$document"
shopt -s nullglob
snippets=("$work"/*.c)
((${#snippets[@]} >= 2)) || { echo "$document: fewer than two C snippets were found"; exit 1; }
read -ra flags <<<"${REDLOCK_FLAGS:-}"
for snippet in "${snippets[@]}"; do
    "$CC" -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "${flags[@]}" -I"$REDLOCK_SOURCE/include" \
        -o "$work/program" "$snippet" -L"$REDLOCK_BUILD/src" -lredlock -lev
done
echo "${#snippets[@]} snippets of $document compile and link"
