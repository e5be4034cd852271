#!/usr/bin/env bash
# The shared library exports what the public headers declare, all of it and nothing else.
set -euo pipefail

library=$1 headers=$2
command -v nm >/dev/null || { echo "skipped: no nm"; exit 77; }

# A declaration: REDLOCK_API, a type, the name, an opening parenthesis, perhaps over several lines.
declared=$(cat "$headers"/*.h "$headers"/adapters/*.h | tr '\n' ' ' | grep -oE 'REDLOCK_API [^(;{]*\(' |
    grep -oE 'redlock_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u)
# What the linker and the sanitizers add for themselves is not ours to judge.
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $NF}' | sed 's/@.*//' |
    grep -vE '^(_init|_fini|_edata|_end|__bss_start|__(odr_)?asan.*|__gcov_.*|mangle_path)$' | sort -u)

count=$(wc -l <<<"$declared")
((count >= 30)) || { echo "only $count declarations were found in $headers: the test reads them wrong"; exit 1; }
if ! difference=$(diff <(echo "$declared") <(echo "$exported")); then
    echo "declared in $headers (<) against exported by $library (>):"
    echo "$difference"
    exit 1
fi
echo "$count functions are declared and exported"
