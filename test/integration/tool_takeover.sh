#!/usr/bin/env bash
# redlock run and elect: the command of an old holder, which ignores SIGTERM, is dead before the
# next holder's begins. TAKEOVERS, LANES (at a time) and LOAD (busy processes) make it larger.
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
IFS=,
python3 "$(dirname "${BASH_SOURCE[0]}")/takeover_check.py" "$REDLOCK_TOOL" "${REDLOCK_PROXY:?}" "${BEAT:?}" \
    "${ports[*]}" "$work" "${TAKEOVERS:-40}" "${LANES:-10}" "${LOAD:-1}"
is 'the status of the check' $? 0
finish
