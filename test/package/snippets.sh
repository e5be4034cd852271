#!/usr/bin/env bash
# Every C block of a document (```c), or every C++ block (```cpp), compiles with the warnings of the
# house as errors, and links.
set -euo pipefail

document=$1 language=${2:-c}
compile=("$CC" -std=c11)
if [[ $language == cpp ]]; then
    [[ -n ${CXX:-} && $CXX != *NOTFOUND ]] || { echo "skipped: no C++ compiler"; exit 77; }
    compile=("$CXX" -std=c++17)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v dir="$work" -v language="$language" '
    $0 == "```" language { file = dir "/" ++n "." language; print "#line " NR + 1 " \"" FILENAME "\"" >file; next }
    /^```/ { file = "" }
    file { print >file }
' "$document"
shopt -s nullglob
snippets=("$work"/*."$language")
((${#snippets[@]} >= 1)) || { echo "$document: no snippet was found"; exit 1; }
read -ra flags <<<"${REDLOCK_FLAGS:-}"
for snippet in "${snippets[@]}"; do
    "${compile[@]}" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "${flags[@]}" -I"$REDLOCK_SOURCE/include" \
        -o "$work/program" "$snippet" -L"$REDLOCK_BUILD/src" -lredlock -lev
done
echo "${#snippets[@]} snippets of $document compile and link"
