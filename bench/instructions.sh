#!/usr/bin/env bash
# Counts the instructions of an acquire and release with callgrind, and compares them with
# instructions.txt.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

RECORD=$REDLOCK_ROOT/bench/instructions.txt
SKIPPED=77

usage() {
    cat <<'END'
usage: bench/instructions.sh [OPTION]…

Prints a table with five nodes: for each operation the instructions, the library that they belong
to, the system calls, and the clock reads. It does not count the nodes and the kernel.
  cycle_N    acquire and release, with N outstanding
  fenced_N   the same with fencing tokens
  refused_1  an acquire of a lock that others hold, and the release that follows it
  extend_1   an extension

  --check         compare with bench/instructions.txt: fail if a figure is more than 5 % above it,
                  and ask for --record if it is more than 5 % below
  --record        write bench/instructions.txt
  --force         with --check: compare even if compiler, flags or libraries differ from the file's
  --program PATH  use this program, a Release build of bench/instructions; default: build it in
                  build/release
  --keep DIR      keep callgrind's files in DIR, for
                  callgrind_annotate --inclusive=yes --threshold=100 DIR/NAME
  --help          this text

Exit status: 0; 1 if a figure rose or nothing could be counted; 64 for bad usage; 77 if valgrind is
missing or, with --check, the file's counts are for another compiler, libc, hiredis or libev.
END
}

mode=print force=0 program='' keep=''
while (($#)); do
    case $1 in
    --check | --record) mode=${1#--} ;;
    --force) force=1 ;;
    --program) program=${2:?--program needs a path} && shift ;;
    --keep) keep=${2:?--keep needs a directory} && shift ;;
    --help | -h) usage && exit 0 ;;
    *) echo "instructions.sh: unknown argument $1 (see --help)" >&2 && exit 64 ;;
    esac
    shift
done

valgrind=$(command -v valgrind) || {
    echo "valgrind is not installed (Debian: valgrind)"
    exit "$SKIPPED"
}
if [[ -z $program ]]; then
    (redlock_build "$REDLOCK_ROOT/build/release" --preset release) || exit 1
    program=$REDLOCK_ROOT/build/release/bench/instructions
fi
[[ -x $program ]] || redlock_die "there is no $program: build it, or name another one with --program"
program=$(realpath "$program")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Use the same environment everywhere, because its size moves the stack. Turn off the processor's
# own ways to copy memory: they differ between machines, and libc would choose among them. Bind
# symbols at the start, so that this is not counted.
count() {
    local tunables=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM
    tunables+=,-SSSE3,-SSE4_2,-BMI1,-BMI2,-LZCNT,-RTM
    (cd "$work" && env -i GLIBC_TUNABLES=$tunables LD_BIND_NOW=1 timeout 300 "$valgrind" --tool=callgrind \
        --collect-atstart=no --callgrind-out-file="$work/callgrind" "$program" >said 2>errors </dev/null) || {
        cat "$work/said" "$work/errors" >&2
        redlock_die "$program failed under valgrind (see its output above)"
    }
}

# Sums up one of callgrind's files: the functions' own costs for each object, and calls by name. The
# line after "calls=" has the cost of the called function, which counts there.
summary() { # NAME OPERATIONS FILE
    awk -v name="$1" -v operations="$2" -v program="$program" '
        function value(kind, text, id) {
            match(text, /^\([0-9]+\)/)
            id = substr(text, 1, RLENGTH)
            if (length(text) > RLENGTH) names[kind, id] = substr(text, RLENGTH + 2)
            return names[kind, id]
        }
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

count
built=$(grep '^built ' "$work/said") || redlock_die "$program did not print its compiler and libraries"
echo "name total libredlock hiredis libev libc system_calls clock_reads" >"$work/table"
while read -r _ name operations; do
    file=$(grep -ls "^desc: Trigger: Client Request: $name\$" "$work"/callgrind.*) ||
        redlock_die "callgrind wrote no file for $name:" \
            "install valgrind's headers (Debian: valgrind) and build $program again"
    summary "$name" "$operations" "$file" >>"$work/table"
    if [[ -n $keep ]]; then
        mkdir -p "$keep" && cp "$file" "$keep/$name"
    fi
done < <(grep '^operations ' "$work/said")
(($(wc -l <"$work/table") > 1)) || redlock_die "$program counted nothing"

aligned() {
    awk '{ printf "%-10s %7s %10s %7s %5s %5s %12s %11s\n", $1, $2, $3, $4, $5, $6, $7, $8 }' "$work/table"
}

echo "$built"
aligned

record() {
    {
        echo "# Instructions of one operation with five nodes, as \`bench/instructions.sh --record\` writes them;"
        echo "# \`--check\` compares, \`--help\` explains."
        echo "# Total: libredlock + hiredis + libev + libc; not the program, the nodes or the kernel."
        echo "$built"
        aligned
    } >"$RECORD"
    echo "recorded in $RECORD"
}

# Compares totals and system calls. Fails if one rose by more than 5 %, or if an operation is
# missing on one side.
compare() {
    local recorded
    [[ -r $RECORD ]] || redlock_die "there is no $RECORD: write it with bench/instructions.sh --record"
    recorded=$(grep '^built ' "$RECORD") ||
        redlock_die "$RECORD has no line 'built': write it again with bench/instructions.sh --record"
    if [[ $recorded != "$built" ]] && ((!force)); then
        echo "not compared: the counts in $RECORD are for another build ($recorded; here: $built);" \
            "--force compares anyway"
        exit "$SKIPPED"
    fi
    grep -v -e '^#' -e '^built ' "$RECORD" | awk '
        function compare(what, was, is) {
            if (was == 0 ? is > 0 : is > was * 1.05) {
                printf "%s: %s rose from %s to %s: find out why, or record it\n", $1, what, was, is
                failed = 1
            } else if (is < was * 0.95)
                printf "%s: %s fell from %s to %s: record it (bench/instructions.sh --record)\n", $1, what, was, is
        }
        FNR == 1 { next }
        NR == FNR { total[$1] = $2; system_calls[$1] = $7; left++; next }
        !($1 in total) { printf "%s is not recorded (bench/instructions.sh --record)\n", $1; failed = 1; next }
        { left--; compare("instructions", total[$1], $2); compare("system calls", system_calls[$1], $7) }
        END {
            if (left > 0) { print "an operation of the record was not counted"; failed = 1 }
            if (!failed) print "no figure rose by more than 5 %"
            exit failed
        }' - "$work/table"
}

case $mode in
record) record ;;
check) compare ;;
esac
