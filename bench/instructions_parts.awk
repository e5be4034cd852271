# Says on which part of its way a lock spends its instructions: sums up one of callgrind's files by
# the function in the source that a line belongs to, inlined or not. instructions.sh --parts runs it.
# Variables: operations, root (of the source tree), program (which does not count), functions (not 0:
# each function, too).

# A rule is a pattern of "file:function". The first that fits says the part.
function rule(part, pattern) {
    patterns[++rules] = pattern
    part_of[rules] = part
    if (!(part in is_part)) {
        is_part[part]
        parts[++count] = part
    }
}

function name_of(line) {
    while (sub(/^__attribute__\(\(([^()]|\([^()]*\))*\)\) /, "", line)) {}
    sub(/\(.*/, "", line)
    sub(/.*[ *]/, "", line)
    return line
}

# The functions of a source file, line by line.
function read_source(file, line, name, at) {
    while ((getline line < file) > 0) {
        at++
        if (line ~ /^[a-z_].*\(/ && line !~ /;$/) name = name_of(line)
        function_at[file, at] = name
        if (line ~ /^}/) name = ""
    }
    close(file)
    known[file]
}

function where(file, line, path) {
    if (object ~ /\/libc[-.]|\/ld-/) return "libc:" fn
    if (object ~ /\/libev\./) return "libev:" fn
    if (object ~ /\/libhiredis\./) return "hiredis:" fn
    path = file
    if (!match(path, /src\/[a-z]+\/[a-z_]+\.[ch]$/)) return "other:" fn
    path = substr(path, RSTART + 4)
    file = root "/src/" path
    if (!(file in known)) read_source(file)
    return path ":" function_at[file, line]
}

function spend(at, cost, i) {
    if (!(at in index_of)) {
        for (i = 1; i <= rules && at !~ patterns[i]; i++) {}
        index_of[at] = i <= rules ? part_of[i] : "the rest"
    }
    of[index_of[at]] += cost
    by[at] += cost
    total += cost
}

BEGIN {
    rule("calls, options, the handle", "^(group/requests|base/check|manager/manager)")
    rule("calls, options, the handle", "^(group/group\\.h:redlock_group_(check|admit|refuse))")
    rule("calls, options, the handle", "^(group/group\\.c:redlock_group_check)")
    rule("memory of the lease", "^(group/handle\\.c:redlock_handle_new|group/handle\\.h|wire/target)")
    rule("memory of the lease", "^(group/group\\.[ch]:redlock_requester_(new|enlist|delist))")
    rule("memory of the lease", "^(group/driver\\.[ch]:redlock_driver_(free|end))")
    rule("memory of the lease", "^(libc:.*(malloc|free|calloc))")
    rule("the token", "^(group/sending\\.c:(redlock_sending_draw_token|write_digits|digit)|base/random)")
    rule("the token", "^(loop/loop\\.c:redlock_loop_random|manager/fleet\\.c:env_random)")
    rule("steps of the core", "^core/(lease|attempt|held|keys|quorum|time|fence|waiter|grants|planted)")
    rule("what a step asks for", "^group/driver\\.c:(redlock_driver_(feed|begin|event|wall_us)|wall_us|is_in_line)")
    rule("what a step asks for", "^group/driver\\.c:(note_results|note_fence|publish|queue_callback)")
    rule("what a step asks for", "^(group/sending|group/group\\.[ch]:redlock_requester_send|group/guards)")
    rule("what a step asks for", "^(group/line)")
    rule("the bytes of two requests", "^wire/(format|resp|script|wire\\.c:(kind_of|redlock_wire_format))")
    rule("ten requests queued", "^(manager/fleet\\.c:(env_send|send_to)|node/|wire/message|server/requests)")
    rule("ten requests queued", "^(server/outbox\\.h:redlock_outbox_(append|end))")
    rule("ten requests queued", "^(server/inflight\\.h:redlock_inflight_push)")
    rule("ten requests queued", "^(server/connection\\.h:redlock_connection_queue)")
    rule("ten requests queued", "^(server/server_state\\.h:redlock_server_rearm)")
    rule("ten requests queued", "^(loop/(loop\\.c:(flush_soon|timer_at|arm)|reactor))")
    rule("ten replies read", "^(server/(connection|stream|outbox|spare|server_state)|wire/reply\\.c)")
    rule("ten replies read", "^(server/traffic\\.c:(read_replies|redlock_traffic|box_of)|hiredis)")
    rule("their requests found", "^(server/traffic|server/inflight|server/)")
    rule("ten replies understood", "^(wire/|base/text)")
    rule("their lease found", "^manager/fleet\\.c:on_(answer|granted)")
    rule("their lease found", "^group/entry\\.c:(redlock_group_(answer|granted)|take_grant|end_count|compare)")
    rule("their lease found", "^(group/votes\\.c:redlock_votes_answer)")
    rule("ten votes counted", "^(group/votes|group/tell\\.[ch]:redlock_tell_(voted|log_vote))")
    rule("the schedule", "^(group/schedule)")
    rule("the schedule", "^(group/group\\.[ch]:(redlock_group_rearm|soonest_ns|redlock_group_has_callbacks))")
    rule("two callbacks and their results", "^(group/driver|group/handle|group/entry\\.c:run_callbacks)")
    rule("two callbacks and their results", "^(result/)")
    rule("telemetry", "^(group/tell|core/histogram)")
    rule("the clock", "^(group/group\\.h:redlock_group_now_ns|loop/loop\\.c:redlock_loop_(now_ns|wall_us))")
    rule("the clock", "^(libc:.*(gettime|vdso)|other:.*gettime)")
    rule("bytes copied, zeroed, measured (libc)", "^libc:.*(mem|str)")
    rule("lists", "^base/list")
    rule("libev and the loop", "^(libev|loop/)")
}

function value(kind, text, id) {
    match(text, /^\([0-9]+\)/)
    id = substr(text, 1, RLENGTH)
    if (length(text) > RLENGTH) names[kind, id] = substr(text, RLENGTH + 2)
    return names[kind, id]
}

/^ob=/ { object = value("ob", substr($0, 4)) }
/^cob=/ { value("ob", substr($0, 5)) }
/^fl=/ { file = value("fl", substr($0, 4)) }
/^f[ie]=/ { file = value("fl", substr($0, 4)) }
/^cf[il]=/ { value("fl", substr($0, 5)) }
/^fn=/ { fn = value("fn", substr($0, 4)) }
/^cfn=/ { value("fn", substr($0, 5)) }
/^[-+*0-9][0-9]* / || /^calls=/ {
    is_call = /^calls=/
    if (is_call) getline
    line = $1 == "*" ? line : $1 ~ /^[-+]/ ? line + $1 : $1
    if (!is_call && object != program) spend(where(file, line), $2)
}

END {
    parts[++count] = "the rest"
    for (i = 1; i <= count; i++)
        printf "%-40s %6.0f %5.1f %%\n", parts[i], of[parts[i]] / operations, 100 * of[parts[i]] / total
    printf "%-40s %6.0f\n", "all", total / operations
    if (functions) {
        print ""
        for (at in by) printf "%7.1f  %-32s %s\n", by[at] / operations, index_of[at], at | "sort -rn"
    }
}
