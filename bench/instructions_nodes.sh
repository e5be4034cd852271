# Counts what the library's requests cost a server, with callgrind. instructions.sh sources it, and
# sets valgrind, steady (the environment), nodes_program, keep and work (a directory). It makes the
# table that instructions_table.sh describes.
# shellcheck shell=bash disable=SC2154,SC2034

server_pid='' # of the server that runs

end_server() {
    [[ -n $server_pid ]] || return 0
    kill -KILL "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
    server_pid=''
}

# start_counted SERVER FOLDER : callgrind counts what its commands execute. It writes a file at each
# ECHO.
start_counted() {
    local server=$1 folder=$2 options=() option
    # What would come at some other time in each run, or only if the server is slow.
    for option in 'hz 1' 'activerehashing no' 'slowlog-log-slower-than -1' 'save ' 'appendonly no'; do
        options+=("--${option%% *}" "${option#* }")
    done
    (cd "$folder" && exec env -i "${steady[@]}" LD_PRELOAD="${nodes_program%/*}/still_server.so" \
        "$valgrind" --tool=callgrind --collect-atstart=no --toggle-collect=processCommand \
        --dump-before=echoCommand --callgrind-out-file="$folder/callgrind" \
        "$server" --port 0 --unixsocket "$folder/server" --dir "$folder" "${options[@]}") \
        >"$folder/log" 2>&1 </dev/null &
    server_pid=$!
    while [[ ! -S $folder/server ]]; do
        kill -0 "$server_pid" 2>/dev/null || {
            cat "$folder/log" >&2
            redlock_die "$server does not run under valgrind (see its output above)"
        }
        sleep 0.05
    done
}

# node_row NAME OPERATIONS FILE : a row, without its ratio.
node_row() {
    awk -v name="$1" -v operations="$2" "$CALLGRIND_NAMES"'
        /^fn=/ { value("fn", substr($0, 4)) }
        # Callgrind gives a function that calls itself a second name.
        /^cfn=/ { called = value("fn", substr($0, 5)); sub(/\047.*/, "", called) }
        /^calls=/ && called == "call" { commands += substr($1, 7) }
        /^summary:/ { total = $2 }
        END {
            if (!(total > 0)) {
                print "callgrind counted no instruction of the server for " name > "/dev/stderr"
                exit 1
            }
            # The ECHO at the end is no command of ours.
            printf "%s %.0f %.1f\n", name, total / operations, (commands - 1) / operations
        }' "$3"
}

# count_node SERVER : makes the table of this server.
count_node() {
    local folder server version allocator name operations file
    folder=$(mktemp -d -p "$work")
    server=$(command -v "$1") || redlock_die "there is no server $1"
    server=$(realpath -s "$server") # not resolved: its name says which of its programs it is
    start_counted "$server" "$folder"
    timeout 300 "$nodes_program" "$folder/relay" "$folder/server" >"$folder/said" </dev/null ||
        { cat "$folder/log" >&2; redlock_die "$nodes_program failed with $server (see the output above)"; }
    end_server
    read -r _ kind version allocator < <(grep '^server ' "$folder/said")
    built="built $kind $version, $allocator, $(uname -m); $(getconf GNU_LIBC_VERSION), $("$valgrind" --version)"
    widths='14 7 8 8' compared='commands to_plain' limit=5 about=(
        "Instructions of a server for one request, from its command table to its reply; not input,"
        "output and the kernel. Commands: with those in scripts. To_plain: / that of plain_set, or of"
        "plain_release, the least script that compares and deletes.")
    while read -r _ name operations file; do
        node_row "$name" "$operations" "$folder/callgrind.$file" >>"$folder/rows"
        if [[ -n $keep ]]; then
            mkdir -p "$keep" && cp "$folder/callgrind.$file" "$keep/$kind-$name"
        fi
    done < <(grep '^operations ' "$folder/said")
    table=$folder/table
    awk 'BEGIN { print "name total commands to_plain" }
        /^plain_/ { floor[$1] = $2 }
        { print $0, sprintf("%.2f", $2 / floor[$1 ~ /set/ ? "plain_set" : "plain_release"]) }' "$folder/rows" >"$table"
}
