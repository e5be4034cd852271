#!/usr/bin/env bash
# Builds the contender for rslock: build.sh OUT_DIR makes OUT_DIR/run; 77 where cargo or the
# registry is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

skip() {
    echo "rslock: $1" >&2
    exit 77
}

command -v cargo >/dev/null || skip 'needs cargo (Rust 1.88 or later)'

# Cargo writes its lock file beside Cargo.toml: built from a copy, and copied only where it differs,
# lest cargo builds again.
mkdir -p "$out/source/src"
for file in Cargo.toml src/main.rs src/cycles.rs src/contend.rs; do
    cmp -s "$here/$file" "$out/source/$file" || cp "$here/$file" "$out/source/$file"
done
cd "$out/source"
export CARGO_TARGET_DIR=$out/target

log=$out/build.log
cargo fetch --quiet >"$log" 2>&1 || skip "cargo cannot fetch the crates: $(grep -m 1 . "$log")"
cargo build --quiet --release --offline >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
ln -sf target/release/contender "$out/run"
