#!/usr/bin/env bash
# What takes too long for scripts/test.sh: all searches of the specification. spec/README.md says
# how long that is. Installs TLC if it is not there. LIMIT and the like: see spec/check.sh.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ -f ${TLA2TOOLS:-} ]] || "$top/scripts/install-tlc.sh"
LIMIT=${LIMIT:-1200} exec "$top/spec/check.sh" --all
