#!/usr/bin/env bash
# Builds a contender in Python: build_peer.sh PEER_DIR OUT_DIR makes OUT_DIR/run; 77 where Python,
# its venv module or the registry is missing.
set -euo pipefail

peer=$1
mkdir -p "$2"
out=$(cd -- "$2" && pwd)

skip() {
    echo "$(basename "$peer"): $1" >&2
    exit 77
}

command -v python3 >/dev/null || skip 'needs python3 (3.10 or later)'
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    skip "needs Python 3.10 or later; this is $(python3 --version)"

cp "$peer"/*.py "$out"

if ! cmp -s "$peer/requirements.txt" "$out/installed.txt"; then
    rm -rf "$out/installed.txt" "$out/venv"
    log=$out/pip.log
    python3 -m venv "$out/venv" >"$log" 2>&1 ||
        skip "python3 -m venv fails: $(grep -m 1 . "$log" || echo 'without a word')"
    "$out/venv/bin/pip" install --disable-pip-version-check --quiet -r "$peer/requirements.txt" >"$log" 2>&1 ||
        skip "pip cannot install its packages: $(grep -m 1 ERROR "$log" || echo "see $log")"
    cp "$peer/requirements.txt" "$out/installed.txt"
fi

cat >"$out/run" <<'END'
#!/bin/sh
exec "${0%/*}/venv/bin/python" "${0%/*}/main.py"
END
chmod +x "$out/run"
