#!/usr/bin/env bash
# The tool's help and version, and its answer to bad input of every form: one sentence and status
# 64.
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

t=$REDLOCK_TOOL
some=127.0.0.1:1

# bad PATTERN ARGUMENTS… : the tool refuses these with one line that matches.
bad() {
    local pattern=$1
    shift
    expect_no_out 64 "$t" "$@"
    says "$err" "^redlock: .*$pattern"
    is "the number of lines for $*" "$(wc -l <"$err")" 1
}

for command in run elect acquire extend downgrade release clear status; do
    expect 0 "$t" "$command" --help
    says "$out" "^usage: redlock $command"
    says "$out" "exit status:"
    says "$out" "^example: .*redlock $command"
    says_nothing "$err"
    is "lines of $command --help that are too long" "$(LC_ALL=C.UTF-8 grep -cE '.{101}' "$out" || true)" 0
    expect 0 "$t" --help "$command"
    says "$out" "^usage: redlock $command"
    expect 0 "$t" help "$command"
    is "help $command" "$(<"$out")" "$("$t" "$command" --help)"
done
# The statuses are in the order of their numbers, in the help and in the man page.
statuses_of() { # [COMMAND]
    "$t" ${1:+"$1"} --help | sed -nE '/^exit status:/,/^$/s/^ *([0-9]+)(, [0-9]+| \+ n)?  .*/\1/p'
}
for command in '' run elect acquire extend downgrade release clear status; do
    is "the statuses of $command" "$(statuses_of "$command" | xargs)" "$(statuses_of "$command" | sort -nu | xargs)"
done
is "the statuses of run" "$(statuses_of run | xargs)" "0 64 69 70 71 74 75 76 126"
is "the statuses of clear" "$(statuses_of clear | xargs)" "0 64 69 71 74 75 76 128"
in_man=$(sed -n '/^.Sh EXIT STATUS/,/^.El/p' "$(dirname "${BASH_SOURCE[0]}")/../../docs/man/redlock.1" |
    sed -nE 's/^\.It ([0-9]+).*/\1/p')
is 'the statuses of the man page' "$in_man" "$(sort -nu <<<"$in_man")"
is 'the statuses of --help' "$(statuses_of)" "$in_man"
for words in help 'help help' '-v help' 'help -v'; do
    # shellcheck disable=SC2086 # the words of a command line
    expect 0 "$t" $words
    is "$words" "$(<"$out")" "$("$t" --help)"
done
# What a user needs comes first.
is 'the first options of run' "$("$t" run --help | sed -n '/^options:$/,/^$/p' | grep -oE -- '^.{6}--[a-z-]+' |
    grep -oE -- '--.*' | tr '\n' ' ')" \
    "--nodes --ttl --wait --shared --permits --contended-status --at-least --max-time --grace --fence --lock-delay \
--holder "
expect 0 "$t" --help
says "$out" '^usage: redlock'
says "$out" 'acquire RESOURCE'
expect 0 "$t" -h
expect 0 "$t" --version
says "$out" '^redlock [0-9]+\.[0-9]+\.[0-9]+$'
says "$out" '^(TLS: [A-Z][A-Za-z]+SSL [0-9]|without TLS$)'
expect 0 "$t" -V

unset REDLOCK_NODES
bad 'no command'
bad "unknown command 'lock'" -n $some lock r
bad "unknown command 'x+'; the commands are run, " -n $some "$(printf 'x%.0s' {1..2000})" r
bad "unknown command 'nonsense'; the commands are run, .*, status and help; see redlock --help" help nonsense
bad "unknown command 'hepl' \\(did you mean help\\?\\); see" hepl
bad "unknown command 'relaese' \\(did you mean release\\?\\); see" -n $some relaese r
bad "unknown command 'stat' \\(did you mean status\\?\\); see" -n $some stat
bad "unknown command 'rum' \\(did you mean run\\?\\); see" help rum
bad "unknown option '-x'" -n $some -x status
bad "unknown option '--nope'; see" -n $some --nope status
bad "unknown option '--ttlx' \\(did you mean --ttl\\?\\); see" -n $some acquire --ttlx 1s r
bad "unknown option '--tll' \\(did you mean --ttl\\?\\); see" -n $some acquire --tll 1s r
bad "unknown option '--at-lest' \\(did you mean --at-least\\?\\); see" -n $some run --at-lest=1s r -- true
bad "unknown option '--metric' \\(did you mean --metrics\\?\\); see" -n $some status --metric
bad "unknown option '--wiat' \\(did you mean --wait\\?\\); see" -n $some run --wiat=1s r -- true
bad "unknown option '--nodse' \\(did you mean --nodes\\?\\); see" --nodse $some run r -- true
bad "unknown option '--timeout' \\(did you mean --node-timeout\\?\\); see" -n $some run --timeout 1 r -- true
bad "unknown option '--restart' \\(did you mean --restart-guard\\?\\); see" -n $some run --restart off r -- true
bad "unknown option '--metric'; see" -n $some run --metric r -- true
bad "unknown option '--x'; see" -n $some run --x r -- true
bad 'no nodes: .*REDLOCK_NODES' acquire r
bad 'needs a value' acquire r -n
bad 'needs a value' acquire r --nodes
bad 'takes no value' acquire r --json=yes
bad '--nodes is given twice; one must name all nodes: --nodes URI,URI,…' -n a:1 acquire r --nodes b:1
bad '--nodes-file is given twice; .*: --nodes-file FILE' --nodes-file a --nodes-file b acquire r
bad 'is empty' -n "$some,,$some" acquire r
bad 'is empty' -n "$some," acquire r
bad 'is empty' -n "$some, ,$some" acquire r
bad 'is empty' -n ' ' acquire r
for option in --cacert --cacertdir --cert --key --sni; do
    bad "$option is empty; leave it out" -n "$some" --tls $option '' acquire r
done
# Only a comma separates nodes: a list that is cut short would give the lock to two clients at once.
for separator in ' ' $'\t' $'\n' $'\r\n' '  '; do
    bad 'node 1 of the list has white space inside: separate nodes with commas' \
        -n "a:1${separator}b:2${separator}c:3" acquire r
    expect 64 env REDLOCK_NODES="a:1,b:2${separator}redis://:hunter2@c:3" "$t" acquire r
    says "$err" '^redlock: node 2 of the list has white space inside: separate nodes with commas'
    never_says "$err" hunter2
done
bad "node 1 of the list has a ';' inside: separate nodes with commas" -n 'a:1;b:2;c:3' acquire r
expect 64 "$t" -n 'redis://:hunter2@a:1;redis://:hunter2@b:2' acquire r
never_says "$err" hunter2
bad 'more than 31' -n "$(printf '127.0.0.1:%d,' {1..31})127.0.0.1:99" acquire r
bad 'after the command' -n $some -t 1s acquire r
bad 'release has no option --ttl' -n $some release -t 1s r token
# What is refused of shared locks, and why.
bad 'an election is never shared, because one leads; .*give --shared to run or acquire; see' -n $some \
    elect --shared r -- true
bad 'an election is never shared' -n $some elect -s --observe r
bad 'status has no option --shared' -n $some status --shared r
bad 'there is no upgrade: two who read, .*would wait for each other; release the lock, and acquire it again' \
    -n $some upgrade r token
bad 'downgrade needs a RESOURCE and a TOKEN' -n $some downgrade r
bad 'downgrade has no option --shared' -n $some downgrade --shared r token
bad 'acquire has no option --grace' -n $some acquire --grace 1s r
bad 'one RESOURCE, but got 0' -n $some acquire
bad 'RESOURCE has 0 bytes; it must have 1 to 1024;' -n $some acquire ''
bad 'RESOURCE has 0 bytes; it must have 1 to 1024;' -n $some status ''
bad 'RESOURCE has 1025 bytes; it must have 1 to 1024;' -n $some acquire "$(printf 'x%.0s' {1..1025})"
bad 'RESOURCE and a TOKEN' -n $some release r
bad 'RESOURCE and a TOKEN' -n $some extend -t 1s r
bad 'TOKEN has 0 bytes; it must have 1 to 128;' -n $some release r ''
bad 'TOKEN has 129 bytes; it must have 1 to 128;' -n $some release r "$(printf 'x%.0s' {1..129})"
# What acquire --fence prints, both words of it.
bad 'TOKEN has a fencing token behind it: give the first word alone, as in \$\{lock% \*\};' -n $some \
    release r "0123456789abcdef0123456789abcdef@web-3:4711 1795167037123456007"
bad 'needs the new time to live: -t TTL' -n $some extend r token
bad 'RESOURCE and a command' -n $some run
bad "needs a RESOURCE, then '--'" -n $some run r
bad "an election has one RESOURCE, but there are 'a' and 'b';" -n $some elect a b -- true
# The options of the command are not ours, and not to be repeated.
for words in 'true' 'tar -czf x' 'tar -t x' 'mysql --password=hunter2' 'ls -v' 'ls --help'; do
    # shellcheck disable=SC2086 # the words of a command line
    bad "run takes '--' before the command: redlock run r -- ${words%% *}( …)?; see" -n $some run r $words
    never_says "$err" hunter2
done
bad "run takes '--' before the command: redlock run r -- tar …; see" -n $some run r 'tar -czf hunter2'
never_says "$err" hunter2
bad "command after '--'" -n $some run r --
bad "command after '--'" -n $some run -- r --
bad "needs a RESOURCE, then '--'" -n $some run -- r true
bad 'elect needs a RESOURCE and a command' -n $some elect
bad "elect takes '--' before the command: redlock elect r -- ./serve …; see" -n $some elect r ./serve -p 80
bad "elect needs a command after '--'" -n $some elect r --
bad 'elect --observe needs one RESOURCE, but got 0' -n $some elect --observe
bad 'elect --observe needs one RESOURCE, but got 2' -n $some elect --observe r -- true
bad 'run has no option --observe' -n $some run --observe r -- true
bad 'elect has no option --wait' -n $some elect --wait 1s r -- true
bad 'elect has no option --max-time' -n $some elect --max-time 1h r -- true

# A value that an option needs is not '--', nor another option, and may have been the RESOURCE.
bad '--holder needs a value: --holder TEXT; see' -n $some run --holder -- true
bad '--holder needs a value: --holder TEXT; see' -n $some run r --holder --quiet -- true
bad '-E needs a value: -E N; see' -n $some run -E -- true
bad "--no-warn 'job': it must be settings, all or none; see" -n $some run --no-warn job
bad "--no-warn 'job': it must be settings, all or none; see" -n $some run --no-warn job -- true
bad "--order 'job': it must be fair or none; see" -n $some acquire --order job
bad "--restart-guard 'job': it must be off, observed or strict; see" -n $some release --restart-guard job token
took='; the word behind --holder is the value of that option; see'
bad "run needs a RESOURCE, .*$took" -n $some run --holder hunter2 -- true
never_says "$err" hunter2
bad "run needs a RESOURCE and a command.*$took" -n $some run --holder job
bad "acquire needs one RESOURCE, but got 0$took" -n $some acquire --holder job
bad "elect --observe needs one RESOURCE, but got 0$took" -n $some elect --observe --holder job
bad 'a RESOURCE and a TOKEN; the word behind --sni is the value' -n $some release --sni job token
bad 'a RESOURCE and a TOKEN; see' -n $some release --quiet job

# Times.
bad 'needs a unit, as in 10ms, 10s, 10m or 10h' -n $some acquire -t 10 r
bad 'whole number with a unit' -n $some acquire -t 1.5s r
bad 'whole number with a unit' -n $some acquire -t '' r
bad 'whole number with a unit' -n $some acquire -t -1s r
bad 'whole number with a unit' -n $some acquire -t '5 s' r
bad 'whole number with a unit' -n $some acquire -t 5w r
bad '--ttl is 0; it must be 1ms to 24d 20h;' -n $some acquire -t 0 r
bad 'it must be 1ms to 24d' -n $some acquire -t 25d r
bad 'it must be 1ms to 24d' -n $some acquire -t 99999999999999999999h r
bad 'it must be 1ms to 24d' -n $some acquire -t 9223372036854775807h r
bad 'whole number with a unit' -n $some acquire -w never r
bad 'it must be 0ms to' -n $some acquire -w 99999999h r
bad 'whole number with a unit' -n $some run --grace soon r -- true
bad '--max-time is 0; it must be 1ms to' -n $some run --max-time 0 r -- true
bad '--node-timeout is 0ms; it must be 1ms to 1m 0s' -n $some --node-timeout 0 status
bad 'it must be 1ms to 1m 0s' -n $some --node-timeout 60001 status
bad 'whole number with a unit' -n $some --node-timeout x status
# It is not the name of a lock to watch.
bad "--watch takes its time after '=', as in --watch=5s; a RESOURCE of that name goes before --watch" \
    -n $some status --watch 5s
bad "after '=', as in --watch=5;" -n $some status --all --watch 5
bad 'it must be 1ms to 1m 0s' -n $some --connect-timeout 2m status
for number in -1 256 1000 x '' 1x; do
    bad 'number from 0 to 255' -n $some run -E "$number" r -- true
done
bad 'an acquire that exits with 0 holds the lock' -n $some acquire -E 0 r

# Guards, the longest ttl, lock delay, fencing counters: from the command line or the environment.
# They must fit together.
some_guard=(-n "$some" --ttl-max 30s)
bad "--restart-guard 'sometimes': it must be off, observed or strict" "${some_guard[@]}" \
    --restart-guard=sometimes status
bad "--order 'first': it must be fair or none" -n $some acquire --order=first r
bad 'status has no option --order' -n $some status --order fair
bad '--restart-guard needs --ttl-max TIME, or REDLOCK_TTL_MAX' -n $some --restart-guard strict acquire r
bad '--restart-guard needs --ttl-max' -n $some acquire --restart-guard=observed r
bad '--clock-guard needs --ttl-max' -n $some --clock-guard status
bad '--clock-guard takes no value' -n $some --clock-guard=on status
bad 'it must be 1ms to 24d' -n $some --ttl-max 0 status
bad '--first-boot .* a restart guard' "${some_guard[@]}" --first-boot acquire r
bad '-t 1m is above --ttl-max 30s: .* a node that forgot its locks votes again' "${some_guard[@]}" acquire -t 60s r
bad '-t 30001ms is above --ttl-max 30s' "${some_guard[@]}" extend -t 30001ms r token
bad '-t 25s with --lock-delay 10s is above --ttl-max 30s' "${some_guard[@]}" run -t 25s --lock-delay 10s r -- true
bad 'the default ttl of 30s is above --ttl-max 20s: give a shorter one with -t' -n $some run --ttl-max 20s r -- true
bad '-t 20d and --lock-delay 20d are together more than 24d' -n $some acquire -t 20d --lock-delay 20d r
bad 'fence-expiry is 2h; it must be 3h' -n $some acquire --fence-expiry 2h r
bad 'fence-suffix has 0 bytes; it must have 1 to 64;' -n $some acquire --fence-suffix= r
bad 'fence-suffix has 65 bytes; it must have 1 to 64;' -n $some acquire --fence-suffix "$(printf 'x%.0s' {1..65})" r
bad 'wait-suffix has 0 bytes; it must have 1 to 62;' -n $some acquire --wait-suffix= r
bad 'wait-suffix has 63 bytes; it must have 1 to 62;' -n $some --wait-suffix "$(printf 'x%.0s' {1..63})" release r token
for number in -1 32 x '' 3x 00x; do
    bad "--quorum '$number': a quorum is a number of nodes, more than half of them, or 0 for the least" \
        -n $some --quorum "$number" status
done
bad 'quorum is 2; it must be 1 ' -n $some --quorum 2 status
bad 'quorum is 2; it must be 3 to 5 \(more than half of the nodes\), or 0' -n a:1,b:1,c:1,d:1,e:1 status --quorum 2
bad 'release has no option --fence' -n $some release --fence r token
bad 'extend has no option --fence' -n $some extend --fence -t 1s r token
bad 'status has no option --lock-delay' -n $some status --lock-delay 1s
bad 'acquire has no option --no-heal' -n $some acquire --no-heal r
bad '--fence must stand after the command' -n $some --fence acquire r
bad '--fence takes no value' -n $some acquire --fence=1 r
# bad_environment PATTERN VARIABLE=VALUE… : the same for an acquire with these in its environment.
bad_environment() {
    local pattern=$1
    shift
    expect_no_out 64 env "$@" "$t" -n $some acquire r
    says "$err" "^redlock: .*$pattern"
    is "the number of lines for $*" "$(wc -l <"$err")" 1
}
bad_environment "REDLOCK_RESTART_GUARD 'on': it must be off, observed or strict" REDLOCK_RESTART_GUARD=on
bad_environment "REDLOCK_ORDER 'FAIR': it must be fair or none" REDLOCK_ORDER=FAIR
bad_environment 'REDLOCK_RESTART_GUARD needs --ttl-max' REDLOCK_RESTART_GUARD=strict
bad_environment "REDLOCK_CLOCK_GUARD '1': it must be on or off" REDLOCK_CLOCK_GUARD=1
bad_environment 'REDLOCK_CLOCK_GUARD needs --ttl-max' REDLOCK_CLOCK_GUARD=on REDLOCK_TTL_MAX=
bad_environment 'REDLOCK_TTL_MAX 30: a time needs a unit' REDLOCK_TTL_MAX=30
bad_environment 'REDLOCK_TTL_MAX is 30d; it must be 1ms to 24d' REDLOCK_TTL_MAX=30d
bad_environment 'the default ttl of 10s is above REDLOCK_TTL_MAX=5s' REDLOCK_TTL_MAX=5s
bad_environment 'REDLOCK_FENCE_EXPIRY is 1h; it must be 3h' REDLOCK_FENCE_EXPIRY=1h
suffix=$(printf 'x%.0s' {1..65})
bad_environment 'REDLOCK_FENCE_SUFFIX has 65 bytes; it must have 1 to 64' REDLOCK_FENCE_SUFFIX="$suffix"
bad_environment 'REDLOCK_WAIT_SUFFIX has 63 bytes; it must have 1 to 62' REDLOCK_WAIT_SUFFIX="$(printf 'x%.0s' {1..63})"
bad_environment "REDLOCK_QUORUM 'most': a quorum is a number of nodes" REDLOCK_QUORUM=most
bad_environment 'quorum is 4; it must be 1' REDLOCK_QUORUM=4
# The tool ignores variables that the command line overrides, and those that a command does not
# need.
unreachable=(--connect-timeout 1ms -n "$some")
expect 69 env REDLOCK_RESTART_GUARD=nonsense REDLOCK_CLOCK_GUARD=nonsense REDLOCK_TTL_MAX=nonsense \
    REDLOCK_ORDER=nonsense REDLOCK_QUORUM=nonsense "$t" "${unreachable[@]}" acquire --order=none \
    --restart-guard=off --no-clock-guard --ttl-max 10s --quorum 1 r
expect 69 env REDLOCK_RESTART_GUARD= REDLOCK_CLOCK_GUARD= REDLOCK_TTL_MAX= REDLOCK_FENCE_SUFFIX= REDLOCK_FENCE_EXPIRY= \
    REDLOCK_ORDER= REDLOCK_WAIT_SUFFIX= REDLOCK_QUORUM= "$t" "${unreachable[@]}" acquire r
expect 69 env REDLOCK_TTL_MAX=1s "$t" "${unreachable[@]}" release r token

# Input that the library refuses is bad input too, and no message repeats a password.
for uri in 'redis://:hunter2@127.0.0.1:0' 'redis://u:hunter2@host:99999' 'redis://u:hunter2@' \
    'http://u:hunter2@host'; do
    expect 64 "$t" -n "$uri" status
    says "$err" '^redlock: '
    never_says "$err" hunter2
done
expect_no_out 64 "$t" -q -n nonsense://host status
says "$err" '^redlock: .*see redlock status --help$'
# With --json they are objects, also if it stands behind what is wrong.
for words in '-q -n nonsense://host status --json' '--json lock r' '--nope --json status' 'run --json r' \
    '-x --json' 'acquire -t 1 r --json' '--json run r ls'; do
    # shellcheck disable=SC2086 # the words of a command line
    expect_no_out 64 "$t" $words
    objects "$err"
    json '.error == "INVALID" and (.message | test("see redlock.* --help$"))' "$err"
done
expect 64 "$t" elect r ls -- --json
says "$err" "^redlock: an election has one RESOURCE"
# Too few descriptors for a loop.
expect 71 bash -c "exec 3>&-; ulimit -n 4; exec '$t' -n 127.0.0.1:1 run job -- true"
says "$err" '^redlock: cannot open what an event loop needs: Too many open files \(see ulimit -n\)$'
# Text from the command line does not control the terminal.
expect 64 "$t" $'\e[31mred'
never_says "$err" $'\e'
finish
