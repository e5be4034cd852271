#!/usr/bin/env bash
# The units of docs/examples/systemd: systemd accepts them, and the command lines in them and in
# docs/jobs.md are what the tool takes.
# shellcheck disable=SC2016 # programs, and the marks of code
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

docs=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../docs" && pwd)
start_nodes 3
mkdir "$work/units"
# systemd wants the programs to exist: our tool, and something for each command.
for unit in "$docs"/examples/systemd/*; do
    sed -E "s|^ExecStart=redlock |ExecStart=$REDLOCK_TOOL |; s|/usr/local/bin/[a-z]+|/bin/true|" "$unit" \
        >"$work/units/${unit##*/}"
done
is 'the units' "$(find "$work/units" -type f | wc -l)" 5

# Each ExecStart, with these nodes, in place of the command: the tool takes every option in it.
printf '%s\n' "${nodes//,/$'\n'}" >"$work/nodes"
chmod 600 "$work/nodes"
while read -r line; do
    command=${line#*ExecStart=}
    command=${command/"--output "*/"--output $work/redlock.prom"}
    read -ra words <<<"$command"
    expect 0 env REDLOCK_NODES_FILE="$work/nodes" "${words[@]}" --connect-timeout 10s
    says_nothing "$err"
done < <(grep -h '^ExecStart=.* status ' "$work"/units/*.service)
while read -r line; do
    command=${line#*ExecStart=}
    read -ra words <<<"${command%% -- *} --node-timeout 5s --connect-timeout 10s -- ${command##* -- }"
    expect 0 env REDLOCK_NODES_FILE="$work/nodes" "${words[@]}"
    says_nothing "$err"
done < <(grep -hE '^ExecStart=.* (run|elect) ' "$work"/units/*.service)
is 'the services' "$(cat "$work"/units/*.service | grep -c '^ExecStart=')" 3

# The examples of docs/jobs.md: the lock that stays, and a name with the date in UTC.
while read -r line; do
    expect 0 env REDLOCK_NODES_FILE="$work/nodes" PATH="${REDLOCK_TOOL%/*}:$PATH" bash -c "$line"
    says_nothing "$err"
done < <(sed -nE '/^```sh$/,/^```$/p' "$docs/jobs.md" | grep '^redlock run' |
    sed -E 's|/usr/local/bin/[a-z]+|/bin/true|')
is 'the lock with a date' "$(redis 0 exists "backup-$(date -u +%F)")" 1
checks=$((checks + 1))
(($(redis 0 pttl hourly-report) > 2900000)) || fail 'hourly-report is not kept'

command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; ((failures == 0)) && exit 77; finish; }
# A unit at a time: the timers name their services.
for unit in "$work"/units/*; do
    expect 0 env SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$unit"
    says_nothing "$err"
done
# A control: it does read them.
sed -i 's/^KillMode=mixed/KillMode=sometimes/' "$work/units/redlock-scheduler.service"
env SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$work/units/redlock-scheduler.service" \
    >"$out" 2>"$err"
says "$err" 'KillMode|sometimes'
finish
