#!/usr/bin/env bash
# Builds the contender in Go whose sources are in SOURCE_DIR: build_peer.sh SOURCE_DIR OUT_DIR makes
# OUT_DIR/run. Exits with 77 and one line that says why where Go or the module proxy is missing.
set -euo pipefail

if [[ $# -ne 2 ]]; then
    echo "usage: build.sh OUT_DIR" >&2
    exit 2
fi
source_dir=$1
mkdir -p -- "$2"
out_dir=$(cd -- "$2" && pwd)

if ! command -v go >/dev/null; then
    echo "Go is not installed (it is needed in the version that $source_dir/go.mod names, or later)" >&2
    exit 77
fi
cd -- "$source_dir"

# Modules that are not in Go's cache yet; go.sum pins what they must be.
if ! messages=$(go mod download 2>&1); then
    if grep -q -e 'checksum mismatch' -e 'SECURITY ERROR' <<<"$messages"; then
        echo "$messages" >&2
        exit 1
    fi
    echo "the Go modules cannot be downloaded: $(head -n 1 <<<"$messages")" >&2
    exit 77
fi

# Go does nothing where the program is up to date.
go build -mod=readonly -trimpath -buildvcs=false -o "$out_dir/run" .
