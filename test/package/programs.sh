#!/usr/bin/env bash
# Every block of a document in one language (c or cpp) is a program that does what the document
# says, on three servers in place of 127.0.0.1:7001 to 7003: it ends with 0, and prints its words
# among its lines, in this order. As a control, it does not where there are no servers.
#
# programs.sh DOCUMENT LANGUAGE WORDS… : those of each program
set -euo pipefail

document=$1 language=$2
shift 2
work=$(mktemp -d)
# shellcheck source-path=SCRIPTDIR source=example_lib.sh
source "$(dirname "$0")/example_lib.sh"
build=("$CC" -std=c11)
if [[ $language == cpp ]]; then
    [[ -n ${CXX:-} && $CXX != *NOTFOUND ]] || { echo "skipped: no C++ compiler"; exit 77; }
    build=("$CXX" -std=c++17)
fi
awk -v dir="$work" -v language="$language" '
    $0 == "```" language { file = dir "/" ++n "." language; print "#line " NR + 1 " \"" FILENAME "\"" >file; next }
    /^```/ { file = "" }
    file { print >file }
' "$document"
shopt -s nullglob
programs=("$work"/*."$language")
((${#programs[@]} == $#)) || { echo "$document: there are ${#programs[@]} programs, and words for $#"; exit 1; }
start_nodes

# runs PROGRAM WORD… : it does what it should.
runs() {
    local said line
    said=$(timeout "${limit:-60}" "$1" 2>&1) || return 1
    shift
    while IFS= read -r line; do
        [[ $# == 0 || $line != *"$1"* ]] || shift
    done <<<"$said"
    [[ $# == 0 ]] || { echo "it did not say $1, but: $said"; return 1; }
}

for program in "${programs[@]}"; do
    read -ra words <<<"$1"
    shift
    for n in 1 2 3; do sed -i "s/127\.0\.0\.1:700$n/${nodes[n - 1]}/" "$program"; done
    "${build[@]}" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "${flags[@]}" -I"$REDLOCK_SOURCE/include" \
        -o "${program%.*}" "$program" -L"$REDLOCK_BUILD/src" -lredlock -lev -Wl,-rpath,"$REDLOCK_BUILD/src"
    runs "${program%.*}" "${words[@]}" || { echo "failed: $(head -n 1 "$program")"; exit 1; }
done
for pid in "${pids[@]}"; do kill -KILL "$pid"; done
limit=2
! runs "${programs[0]%.*}" >/dev/null || { echo "control failed: it runs without servers"; exit 1; }
echo "${#programs[@]} programs of $document do what they should"
