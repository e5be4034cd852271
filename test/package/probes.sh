#!/usr/bin/env bash
# The library has every static probe of docs/telemetry.md, with that many arguments and with its
# semaphore, and no other one. As a control, a page that differs is found.
set -euo pipefail

library=$1 page=$2 with=$3
command -v readelf >/dev/null || { echo "skipped: no readelf"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints each probe of a library: its name, the number of its arguments, whether it has a semaphore.
probes() {
    readelf -nW "$1" | awk '
        function tell() { if (name != "") print name, arguments, semaphore; name = "" }
        /Provider: / { tell(); redlock = $NF == "redlock" }
        /Name: / && redlock { name = $2; arguments = 0 }
        /Semaphore: / { semaphore = $NF ~ /^0x0+$/ ? "no" : "yes" }
        /Arguments: / { arguments = NF - 1 }
        END { tell() }' | sort -u
}

# Prints the same of the page: the rows of its table of probes.
listed() {
    awk -F'|' '/^## Probes/ { here = 1 } here && /^\| `/ {
        name = $2; gsub(/[ `]/, "", name)
        print name, split($3, parts, ","), name == "vote" ? "no" : "yes" }' "$1" | sort -u
}

found=$(probes "$library")
if [[ $with != ON ]]; then
    [[ -z $found ]] || { echo "REDLOCK_PROBES is off, but there are probes: $found"; exit 1; }
    echo "skipped: the library is built without probes: there was no sys/sdt.h (Debian: systemtap-sdt-dev)"
    exit 77
fi
if ! difference=$(diff <(listed "$page") <(echo "$found")); then
    echo "on the page (<), against the library's (>):"
    echo "$difference"
    exit 1
fi
count=$(wc -l <<<"$found")
((count >= 13)) || { echo "only $count probes were found"; exit 1; }

# shellcheck disable=SC2016 # Markdown
sed '/^| `lost`/d; s/^\(| `started`.*\) |$/\1, more |/' "$page" >"$work/page"
difference=$(diff <(listed "$work/page") <(echo "$found")) && { echo "control failed: a wrong page was taken"; exit 1; }
[[ $difference == *'< started 4 yes'* && $difference == *'> lost 4 yes'* ]] ||
    { echo "control failed: $difference"; exit 1; }
echo "$count probes"
