#!/usr/bin/env bash
# Builds this contender: build.sh OUT_DIR makes OUT_DIR/run.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
exec "$here/../python-contender/build_peer.sh" "$here" "$1"
