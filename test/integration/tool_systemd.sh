#!/usr/bin/env bash
# The units of docs/examples/systemd: systemd accepts them, and the command lines in them and in
# docs/jobs.md, also those for cron, are what the tool takes.
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
    expect_no_err 0 env REDLOCK_NODES_FILE="$work/nodes" "${words[@]}" --connect-timeout 10s
done < <(grep -h '^ExecStart=.* status ' "$work"/units/*.service)
while read -r line; do
    command=${line#*ExecStart=}
    read -ra words <<<"${command%% -- *} --node-timeout 5s --connect-timeout 10s -- ${command##* -- }"
    expect_no_err 0 env REDLOCK_NODES_FILE="$work/nodes" "${words[@]}"
done < <(grep -hE '^ExecStart=.* (run|elect) ' "$work"/units/*.service)
is 'the services' "$(cat "$work"/units/*.service | grep -c '^ExecStart=')" 3

# The examples of docs/jobs.md: the lock that stays, and a name with the date in UTC.
while read -r line; do
    expect_no_err 0 env REDLOCK_NODES_FILE="$work/nodes" PATH="${REDLOCK_TOOL%/*}:$PATH" bash -c "$line"
done < <(sed -nE '/^```sh$/,/^```$/p' "$docs/jobs.md" | grep '^redlock run' |
    sed -E 's|/usr/local/bin/[a-z]+|/bin/true|')
is 'the lock with a date' "$(redis 0 exists "backup-$(date -u +%F)")" 1
checks=$((checks + 1))
(($(redis 0 pttl hourly-report) > 2900000)) || fail 'hourly-report is not kept'

# Its crontab: variables, then five fields, a user and a command without a %. Two machines run it.
crontab=$(sed -nE '/^```cron$/,/^```$/p' "$docs/jobs.md" | sed '1d;$d')
is 'the lines of the crontab' "$(wc -l <<<"$crontab")" 5
grep -E '^[A-Z_]+=' <<<"$crontab" >"$work/cron.env"
is 'its variables' "$(wc -l <"$work/cron.env")" 4
job='^[0-9*]+ [0-9*]+ [0-9*]+ [0-9*]+ [0-9*]+  backup  (redlock run [^%]*)$'
[[ $(tail -n 1 <<<"$crontab") =~ $job ]] || fail 'no job in the crontab'
printf '#!/bin/sh\necho did >>%q\n' "$work/did" >"$work/backup"
chmod +x "$work/backup"
ln -s "$REDLOCK_TOOL" "$work/redlock"
mapfile -t variables < <(sed "s|/etc/redlock|$work|; s|^PATH=|PATH=$work:|" "$work/cron.env")
for i in 0 1 2; do
    redis $i del backup >/dev/null # the unit's
done
for machine in 1 2; do
    expect 0 env -i "${variables[@]}" sh -c "${BASH_REMATCH[1]/\/usr\/local\/bin/$work}"
    says_nothing "$err"
    says_nothing "$out"
    is "how often the job ran after machine $machine" "$(wc -l <"$work/did")" 1
done

command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; ((failures == 0)) && exit 77; finish; }
# A unit at a time: the timers name their services.
for unit in "$work"/units/*; do
    expect_no_err 0 env SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$unit"
done
# A control: it does read them.
sed -i 's/^KillMode=mixed/KillMode=sometimes/' "$work/units/redlock-scheduler.service"
env SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$work/units/redlock-scheduler.service" \
    >"$out" 2>"$err"
says "$err" 'KillMode|sometimes'
finish
