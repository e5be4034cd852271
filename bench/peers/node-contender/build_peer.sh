#!/usr/bin/env bash
# Builds a contender in Node: build_peer.sh PEER_DIR OUT_DIR makes OUT_DIR/run; 77 where Node, npm
# or the registry is missing.
set -euo pipefail

peer=$1
shared=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$2"
out=$(cd -- "$2" && pwd)

skip() {
    echo "$(basename "$peer"): $1" >&2
    exit 77
}

command -v node >/dev/null || skip 'needs node (20 or later)'
command -v npm >/dev/null || skip 'needs npm'
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' ||
    skip "needs node 20 or later; this is $(node --version)"

cp "$shared"/*.mjs "$peer"/main.mjs "$out"

# npm writes into its directory: into a copy, and only where the versions have changed.
if ! cmp -s "$peer/package-lock.json" "$out/installed.json"; then
    rm -f "$out/installed.json"
    cp "$peer"/package{,-lock}.json "$out"
    log=$out/npm.log
    (cd "$out" && npm ci --loglevel=error --no-audit --no-fund --no-update-notifier) >"$log" 2>&1 ||
        skip "npm cannot install its packages: $(grep -m 1 -i 'error' "$log" || echo "see $log")"
    cp "$peer/package-lock.json" "$out/installed.json"
fi

cat >"$out/run" <<'END'
#!/bin/sh
exec node "${0%/*}/main.mjs"
END
chmod +x "$out/run"
