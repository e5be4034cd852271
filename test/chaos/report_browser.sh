#!/usr/bin/env bash
# report_browser.sh REPORT_PAGES: pages of runs that never were, used as a person would in headless
# Chromium. 77: there is no Chromium.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
browser=
for name in chromium chromium-browser google-chrome; do
    [[ -n $browser ]] || browser=$(command -v "$name" || true)
done
if [[ -z $browser ]]; then
    echo "skipped: neither chromium, chromium-browser nor google-chrome is installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sandbox=()
((EUID != 0)) || sandbox=(--no-sandbox)

# open PAGE WIDTH: runs the script in the page, prints what it found.
open() {
    # Without a display no frames are drawn: the page's own redraw comes by a timer.
    local script="document.documentElement.dataset.driven = '$1'; "
    script+='requestAnimationFrame = call => setTimeout(call, 10);'
    sed "0,/<\/head>/s|</head>|<script>$script</script></head>|" \
        "$work/$1.html" >"$work/driven.html"
    { echo '<script>' && cat "$here/report_drive.js" && echo '</script>'; } >>"$work/driven.html"
    timeout 100 "$browser" --headless "${sandbox[@]}" --disable-gpu --no-first-run --user-data-dir="$work/profile" \
        --window-size="$2,900" --virtual-time-budget=30000 --enable-logging=stderr --dump-dom \
        "file://$work/driven.html" >"$work/found" 2>"$work/log" || { cat "$work/log"; return 1; }
    grep CONSOLE "$work/log" >>"$work/found" || true
}

"$1" "$work" >/dev/null
status=0
for page in everything:1400 everything:500 broken:1000 nothing:1400 hostile:1000 large:1400 lanes:1200 \
    readers:1200 intervals:1200 comparison:1400 comparison:400; do
    echo "== ${page%:*}, ${page#*:} wide"
    open "${page%:*}" "${page#*:}"
    grep -E '^(ok|NOT OK)|CONSOLE' "$work/found" | cut -c1-160 || true
    if ! grep -q '^END$' "$work/found" || grep -qE '^NOT OK|CONSOLE' "$work/found"; then
        echo "FAILED: ${page%:*}, ${page#*:} wide"
        status=1
    fi
done
exit $status
