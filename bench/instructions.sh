#!/usr/bin/env bash
# Counts with callgrind the instructions of a lock, in the client and in a node, and compares them
# with instructions.txt.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
# shellcheck source-path=SCRIPTDIR source=instructions_table.sh
source "$REDLOCK_ROOT/bench/instructions_table.sh"
# shellcheck source-path=SCRIPTDIR source=instructions_nodes.sh
source "$REDLOCK_ROOT/bench/instructions_nodes.sh"

usage() {
    cat <<'END'
usage: bench/instructions.sh [OPTION]…

Prints tables of instructions. The first is of the client, with five nodes: for each operation the
instructions, the library that they belong to, the system calls, and the clock reads. It does not
count the nodes and the kernel.
  cycle_N    acquire and release, with N outstanding
  fenced_N   the same with fencing tokens
  refused_1  an acquire of a lock that others hold, and the release that follows it
  extend_1   an extension

The others are of a node: what redis-server and valkey-server execute for one request of the
library. They do not count the input, the output and the kernel. `commands` are those that the
server runs for the request: a script's own, too. `to_plain` divides by the row plain_set or
plain_release.
  plain_set       SET NX PX
  plain_release   a script that compares and deletes, and does nothing else
  set             the SET of an acquire
  set_refused     the same, of a lock that others hold
  extend          an extension
  release         a release of a lease that did not wait, where nobody waits: one command, if the
                  server has it
  release_lost    the release that follows a refused acquire
  release_queued  the release of a lease that waited, where nobody else waits
  handover        a release that hands the lock to a waiter
  wait            a request for a place in the queue
  refresh         the same again, of a waiter that has a place
  fenced          an acquire with a fencing token
  fenced_behind   the same, where the counter is not below
  fence           the request that raises the counter then

  --only WHAT     count only the client or only the nodes
  --check         compare with bench/instructions.txt: fail if a figure is more than 5 % above it,
                  of a node that in `to_plain`, and ask for --record if it is that much below
  --record        write bench/instructions.txt
  --force         with --check: compare even if compiler, flags, libraries or the server differ from
                  the file's
  --program PATH  use this program, a Release build of bench/instructions, and instructions_nodes
                  beside it; default: build them in build/release
  --server PATH   count this server, instead of redis-server and valkey-server where there are any;
                  may be given more than once
  --parts NAME    print on which part of its way a lock spends the instructions of NAME, such as
                  cycle_1024: a table of docs/performance.md
  --keep DIR      keep callgrind's files in DIR, for
                  callgrind_annotate --inclusive=yes --threshold=100 DIR/NAME
  --help          this text

Exit status: 0; 1 if a figure rose or nothing could be counted; 64 for bad usage; 77 if valgrind or
the server is missing or, with --check, the file's counts are for another compiler, libc, hiredis,
libev, valgrind or server.
END
}

mode=print force=0 only='' program='' keep='' parts='' servers=()
while (($#)); do
    case $1 in
    --check | --record) mode=${1#--} ;;
    --force) force=1 ;;
    --only) only=${2:?--only needs client or nodes} && shift ;;
    --program) program=${2:?--program needs a path} && shift ;;
    --server) servers+=("${2:?--server needs a path}") && shift ;;
    --parts) parts=${2:?--parts needs a name} && shift ;;
    --keep) keep=${2:?--keep needs a directory} && shift ;;
    --help | -h) usage && exit 0 ;;
    *) echo "instructions.sh: unknown argument $1 (see --help)" >&2 && exit 64 ;;
    esac
    shift
done
[[ $only =~ ^(client|nodes)?$ ]] || { echo "instructions.sh: --only takes client or nodes" >&2 && exit 64; }

valgrind=$(command -v valgrind) || {
    echo "valgrind is not installed (Debian: valgrind)"
    exit "$SKIPPED"
}
if ((${#servers[@]} == 0)); then
    mapfile -t servers < <(command -v redis-server; command -v valkey-server)
fi
if [[ $only != client ]] && ((${#servers[@]} == 0)); then
    echo "there is no redis-server and no valkey-server (Debian: redis-server): no node is counted"
    worst=$SKIPPED
fi
if [[ -z $program ]]; then
    (redlock_build "$REDLOCK_ROOT/build/release" --preset release) || exit 1
    program=$REDLOCK_ROOT/build/release/bench/instructions
fi
[[ -x $program ]] || redlock_die "there is no $program: build it, or name another one with --program"
program=$(realpath "$program")
nodes_program=$(dirname "$program")/instructions_nodes

work=$(mktemp -d)
trap 'end_server; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Use the same environment everywhere, because its size moves the stack. Turn off the processor's
# own ways to copy memory: they differ between machines, and libc would choose among them. Bind
# symbols at the start, so that this is not counted.
tunables=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM
tunables+=,-SSSE3,-SSE4_2,-BMI1,-BMI2,-LZCNT,-RTM
steady=("GLIBC_TUNABLES=$tunables" LD_BIND_NOW=1)

count() {
    (cd "$work" && env -i "${steady[@]}" timeout 300 "$valgrind" --tool=callgrind \
        --collect-atstart=no --callgrind-out-file="$work/callgrind" "$program" >said 2>errors </dev/null) || {
        cat "$work/said" "$work/errors" >&2
        redlock_die "$program failed under valgrind (see its output above)"
    }
}

# Sums up one of callgrind's files: the functions' own costs for each object, and calls by name. The
# line after "calls=" has the cost of the called function, which counts there.
summary() { # NAME OPERATIONS FILE
    awk -v name="$1" -v operations="$2" -v program="$program" "$CALLGRIND_NAMES"'
        function whose(object) {
            if (object == program) return "program"
            if (object ~ /\/libredlock\.so/) return "libredlock"
            if (object ~ /\/libhiredis\.so/) return "hiredis"
            if (object ~ /\/libev\.so/) return "libev"
            return "libc" # and the dynamic linker, part of it
        }
        BEGIN {
            split("accept accept4 close connect epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait " \
                "eventfd_read eventfd_write fcntl getpid getrandom getsockopt ioctl madvise mmap mprotect " \
                "munmap poll ppoll pread pwrite read readv recv recvfrom recvmmsg recvmsg sched_yield " \
                "select send sendmmsg sendmsg sendto setsockopt shutdown socket syscall timerfd_settime " \
                "write writev", list, " ")
            for (i in list) is_system_call[list[i]] = 1
        }
        /^ob=/ { object = whose(value("ob", substr($0, 4))) }
        /^cob=/ { value("ob", substr($0, 5)) }
        /^fn=/ { value("fn", substr($0, 4)) }
        /^cfn=/ { called = value("fn", substr($0, 5)); sub(/@.*/, "", called); sub(/^(__libc_|__)/, "", called) }
        /^calls=/ {
            times = substr($1, 7)
            if (called in is_system_call) system_calls += times
            if (called == "clock_gettime") clock += times
            getline
            next
        }
        /^[-+*0-9][0-9]* [0-9]+$/ { cost[object] += $2 }
        END {
            if (!(cost["libredlock"] > 0)) {
                print "callgrind counted no instruction of libredlock for " name > "/dev/stderr"
                exit 1
            }
            total = cost["libredlock"] + cost["hiredis"] + cost["libev"] + cost["libc"]
            printf "%s %.0f %.0f %.0f %.0f %.0f %.2f %.1f\n", name, total / operations, cost["libredlock"] / operations,
                cost["hiredis"] / operations, cost["libev"] / operations, cost["libc"] / operations,
                system_calls / operations, clock / operations
        }' "$3"
}

count_client() {
    local name operations file
    count
    built=$(grep '^built ' "$work/said") || redlock_die "$program did not print its compiler and libraries"
    # shellcheck disable=SC2034 # conclude() reads them
    kind=client table=$work/table widths='10 7 10 7 5 5 12 11' compared='total system_calls' limit=5 about=(
        "Instructions of one operation with five nodes, as \`bench/instructions.sh --record\` writes them;"
        "\`--check\` compares, \`--help\` explains."
        "Total: libredlock + hiredis + libev + libc; not the program, the nodes or the kernel.")
    echo "name total libredlock hiredis libev libc system_calls clock_reads" >"$table"
    while read -r _ name operations; do
        file=$(grep -ls "^desc: Trigger: Client Request: $name\$" "$work"/callgrind.*) ||
            redlock_die "callgrind wrote no file for $name:" \
                "install valgrind's headers (Debian: valgrind) and build $program again"
        summary "$name" "$operations" "$file" >>"$table"
        if [[ -n $keep ]]; then
            mkdir -p "$keep" && cp "$file" "$keep/$name"
        fi
        if [[ $name == "$parts" ]]; then
            awk -v operations="$operations" -v program="$program" -v root="$REDLOCK_ROOT" \
                -f "$REDLOCK_ROOT/bench/instructions_parts.awk" "$file" >"$work/parts"
        fi
    done < <(grep '^operations ' "$work/said")
    (($(wc -l <"$table") > 1)) || redlock_die "$program counted nothing"
}

if [[ $only != nodes ]]; then
    count_client
    conclude
    if [[ -n $parts ]]; then
        [[ -r $work/parts ]] || redlock_die "no operation is called $parts"
        echo && cat "$work/parts"
    fi
fi
if [[ $only != client ]]; then
    for server in "${servers[@]}"; do
        count_node "$server"
        conclude
    done
fi
exit "$worst"
