#!/usr/bin/env bash
# Builds libredlock in several ways and runs all of its tests. Installs missing packages (Debian 12
# or 13, as root or with sudo), and TLC from PyPI.
set -uo pipefail

# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# In this order the tests of asan that wait have the rest beside them.
ALL_PARTS=(release clang tsan asan lint coverage instructions valgrind)
# OpenSSL 3.2 and newer want libzstd-dev in static programs.
TEST_PACKAGES=(g++ clang clang-format valgrind gcovr doxygen shellcheck mandoc jq git libcmocka-dev libjansson-dev
    libzstd-dev redis-server openssl abigail-tools gcc-multilib python3 python3-cffi python3-dev python3-setuptools
    python3-gevent python3-eventlet docker.io docker-compose iptables chromium sqlite3 systemtap-sdt-dev
    zsh fish systemd busybox python3-yaml
    "${REDLOCK_LOOP_PACKAGES[@]}")
# Elsewhere kubectl comes in a package of another name, beside which Debian's cannot be installed.
command -v kubectl >/dev/null || TEST_PACKAGES+=(kubernetes-client)
# Debian's, or whoever installed another one.
command -v go >/dev/null || TEST_PACKAGES+=(golang-go)

usage() {
    cat <<'END'
usage: scripts/test.sh [OPTION]… [PART]…

Installs missing packages, builds, and runs the tests of all parts, or of the parts that you name:
  release   gcc with warnings as errors; every test: unit, simulation, integration, fuzz, package
  lint      clang-format, shellcheck, man pages, API reference (uses the release build)
  instructions
            callgrind: one acquire and release may cost at most 5 % more instructions than
            bench/instructions.txt says, and one request in redis-server 2 % (uses the release
            build)
  clang     clang with warnings as errors; builds everything, runs the unit tests
  asan      AddressSanitizer and UndefinedBehaviorSanitizer; every test except those with
            containers and the simulation's control runs; one experiment; fewer schedules in the
            simulation
  tsan      ThreadSanitizer; the tests of threads
  valgrind  memcheck; the unit tests of core, wire, nodes and group, and two integration tests
            (uses the release build)
  coverage  gcov; the unit tests of src/core must reach every line of it and at least 95 % of its
            branches

  --build-dir DIR   where to build; default: build/
  --jobs N          how many compilers and tests that compute run at a time, and beside them five
                    times as many tests that wait; default: the number of processors
  --no-install      install nothing; tests that need a missing package fail or are skipped
  --help            this text

The tests with the label "waiting" begin once their part is built. They run beside whatever comes
next, which has a lower priority, and the script prints their output when they have ended.
The last line is the count over all parts: "N passed, N failed, N skipped". It counts CTest's tests,
and the coverage as one test. A part that does not build counts as one failure.
Exit status: 0 if nothing failed, 1 otherwise, 64 for bad usage.
END
}

builds=$REDLOCK_ROOT/build
jobs=$(nproc)
install=1
parts=()
while (($#)); do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --build-dir) builds=${2:?--build-dir needs a directory} && shift ;;
    --jobs) jobs=${2:?--jobs needs a number} && shift ;;
    --no-install) install=0 ;;
    -*) echo "test.sh: unknown option $1 (see --help)" >&2 && exit 64 ;;
    *)
        [[ " ${ALL_PARTS[*]} " == *" $1 "* ]] ||
            { echo "test.sh: unknown part $1; there are: ${ALL_PARTS[*]}" >&2 && exit 64; }
        parts+=("$1")
        ;;
    esac
    shift
done
((${#parts[@]})) || parts=("${ALL_PARTS[@]}")
mkdir -p "$builds/ctest" || redlock_die "cannot make the directory $builds"
builds=$(cd "$builds" && pwd)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_OUTPUT_ON_FAILURE=1

passed=0 failed=0 skipped=0
failures=() skips=()
wrap=()        # put before ctest
niceness=10    # of what computes: what waits gets a processor when it needs one
crowds=()      # parts whose waiting tests are not counted yet,
declare -A pid # with the processes that run them
declare -A due # how many tests of a part are not counted yet

fail() {
    printf '%s\n' "FAILED: $*"
    failed=$((failed + 1))
    failures+=("$*")
}

# A processor for those who wait, before this subshell. Elsewhere there may be no renice.
yield() {
    ((niceness == 0)) || renice -n "$niceness" "$BASHPID" >/dev/null 2>&1
}

# build NAME [--only LABEL] [cmake args…] : builds in $builds/NAME, or updates a build that exists;
# everything, or what the tests with LABEL need.
build() {
    local name=$1 began=$SECONDS only=()
    shift
    [[ ${1:-} != --only ]] || { only=("$1" "$2") && shift 2; }
    printf '%s: building in %s …\n' "$name" "$builds/$name"
    (
        yield
        redlock_build "$builds/$name" "${only[@]}" -DREDLOCK_TESTS=ON "$@"
    ) || {
        fail "$name does not build"
        return 1
    }
    printf '%s: built in %d s\n' "$name" $((SECONDS - began))
}

# Prints a line for each test in CTest's JUnit file: its result, its name, and for a skipped test
# the last line of its output.
fates() {
    awk '
        function attribute(line, name) {
            if (!match(line, " " name "=\"[^\"]*\"")) return ""
            return substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
        }
        function tell() {
            if (test == "") return
            if (status == "run") fate = "passed"
            else if (status == "notrun" && skip) fate = "skipped"
            else fate = "failed"
            gsub(/&lt;/, "<", last); gsub(/&gt;/, ">", last); gsub(/&quot;/, "\"", last); gsub(/&amp;/, "\\&", last)
            print fate "\t" test "\t" (fate == "skipped" ? last : "")
            test = ""
        }
        /<testcase / {
            tell(); test = attribute($0, "name"); status = attribute($0, "status")
            skip = 0; last = ""; out = 0
        }
        /<skipped message="SKIP_/ { skip = 1 }
        /<system-out>/ { out = 1; sub(/^.*<system-out>/, "") }
        /<\/system-out>/ { sub(/<\/system-out>.*$/, ""); if (out && $0 != "") last = $0; out = 0 }
        out && $0 != "" { last = $0 }
        END { tell() }
    ' "$1"
}

# run_ctest RUN BUILD [ctest args…] : runs CTest over a build, in a directory of its own: two at a
# time would mix their files. Leaves junit.xml and the exit status there.
run_ctest() {
    local run=$builds/ctest/$1 build=$builds/$2
    shift 2
    mkdir -p "$run" && rm -f "$run/junit.xml" "$run/status"
    printf 'subdirs("%s")\n' "$build" >"$run/CTestTestfile.cmake"
    (cd "$run" && "${wrap[@]}" ctest --no-tests=error --output-on-failure --output-junit junit.xml "$@") </dev/null
    echo $? >"$run/status"
}

# count_tests PART RUN : adds what run_ctest left to the count. To find no test is a failure.
count_tests() {
    local part=$1 run=$builds/ctest/$2 status before=$failed fate test why count=0
    status=$(cat "$run/status" 2>/dev/null) || status=unknown
    if [[ ! -s $run/junit.xml ]]; then
        fail "$part: ctest left no results in $run (its exit status was $status)"
        return 1
    fi
    while IFS=$'\t' read -r fate test why; do
        count=$((count + 1))
        case $fate in
        passed) passed=$((passed + 1)) ;;
        skipped) skipped=$((skipped + 1)) && skips+=("$part: $test: $why") ;;
        *) fail "$part: $test" ;;
        esac
    done < <(fates "$run/junit.xml")
    # The exit status of ctest and its file must agree.
    if ((count == 0)); then
        fail "$part: no tests were found"
    elif [[ $status != 0 ]] && ((failed == before)); then
        fail "$part: ctest ended with status $status"
    fi
    due[$part]=$((${due[$part]:-0} - count))
    printf '%s: %d tests\n' "$2" "$count"
}

# run_tests PART BUILD JOBS [ctest args…] : runs tests of one kind.
run_tests() {
    local part=$1 build=$2
    (
        yield
        run_ctest "$part" "$build" -j "${@:3}"
    )
    count_tests "$part" "$part"
}

# run_lanes PART BUILD LABELS OTHERS : runs the tests that have one of LABELS and none of OTHERS
# (two regular expressions, or nothing). Those that wait begin beside the others, when the waiting
# tests of the parts before have ended.
run_lanes() {
    local part=$1 build=$2 wanted=(${3:+-L "$3"}) others=$4 before=''
    ((${#crowds[@]} == 0)) || before=${pid[${crowds[-1]}]}
    run_ctest "$part" "$build" -N "${wanted[@]}" ${others:+-LE "$others"} >"$builds/ctest/$part.list"
    due[$part]=$(sed -n 's/^Total Tests: //p' "$builds/ctest/$part.list")
    set -m # a process group of its own, which clean_up can end
    {
        [[ -z $before ]] || tail --pid="$before" -f /dev/null
        run_ctest "$part-waiting" "$build" -j $((5 * jobs)) "${wanted[@]}" -L '^waiting$' ${others:+-LE "$others"}
    } >"$builds/ctest/$part.log" 2>&1 &
    set +m
    pid[$part]=$!
    crowds+=("$part")
    run_tests "$part" "$build" "$jobs" "${wanted[@]}" -LE "${others:+$others|}^waiting$"
}

# collect [all|PART] : prints and counts the waiting tests that have ended. Waits for those of all
# parts, or of one.
collect() {
    local part left=()
    for part in "${crowds[@]}"; do
        if [[ ${1:-} != all && ${1:-} != "$part" ]] && kill -0 "${pid[$part]}" 2>/dev/null; then
            left+=("$part")
            continue
        fi
        wait "${pid[$part]}"
        printf '\n== %s, waiting tests\n' "$part"
        cat "$builds/ctest/$part.log"
        count_tests "$part" "$part-waiting"
        ((due[$part] == 0)) || fail "$part: its two lanes ran other tests than it has (difference: $((due[$part])))"
        unset "pid[$part]"
    done
    crowds=("${left[@]}")
}

# Nothing outlives this script, and no emulator stays in the release build.
clean_up() {
    local part
    for part in "${crowds[@]}"; do
        kill -- "-${pid[$part]}" 2>/dev/null
    done
    ((emulated)) && build_release
}

# The part valgrind uses this build, too.
build_release() {
    local emulator=${1:-}
    emulated=${#emulator}
    build release --preset release -DREDLOCK_CHAOS=ON -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator"
}

part_release() {
    build_release && run_lanes release release '' 'lint|instructions'
}

part_lint() {
    build_release && run_tests lint release "$jobs" -L lint
}

part_instructions() {
    build_release && run_tests instructions release 1 -L '^instructions$'
}

part_clang() {
    build clang --preset release -DREDLOCK_CHAOS=ON -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ &&
        run_lanes clang clang unit ''
}

part_asan() {
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1 \
        UBSAN_OPTIONS=print_stacktrace=1
    build asan --preset asan -DREDLOCK_CHAOS=ON && run_lanes asan asan '' 'lint|compose|control'
    unset ASAN_OPTIONS UBSAN_OPTIONS
}

part_tsan() {
    # gcc's ThreadSanitizer fails if address spaces are more random than it expects.
    setarch -R true 2>/dev/null && wrap=(setarch -R)
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    build tsan --only blocking --preset tsan && run_lanes tsan tsan '^blocking$' ''
    unset TSAN_OPTIONS
    wrap=()
}

part_valgrind() {
    command -v valgrind >/dev/null || {
        fail "valgrind is not installed"
        return
    }
    # CMake runs each test's program under the emulator.
    local emulator='valgrind;--quiet;--error-exitcode=99;--leak-check=full;--track-fds=no'
    emulator+=';--errors-for-leak-kinds=definite,indirect,possible'
    collect release # its waiting tests must not find the emulator
    local niceness=0 # these tests have deadlines
    build_release "$emulator" && run_tests valgrind release $((2 * jobs)) -L '^(core|valgrind_ok)$'
    build_release
}

part_coverage() {
    command -v gcovr >/dev/null || {
        fail "gcovr is not installed"
        return
    }
    build coverage --only core --preset coverage || return
    find "$builds/coverage" -name '*.gcda' -delete
    run_tests coverage coverage "$jobs" -L '^core$'
    # Do not count the branches of assertions: no test survives an assertion that fails.
    local gcovr=(gcovr --root "$REDLOCK_ROOT" --filter "$REDLOCK_ROOT/src/core/"
        --exclude-branches-by-pattern '\s*assert\(.*'
        "$builds/coverage/src/CMakeFiles/redlock_objects.dir/core")
    echo "lines of src/core:"
    "${gcovr[@]}" --txt
    echo "branches of src/core:"
    "${gcovr[@]}" --txt --branches
    if "${gcovr[@]}" --fail-under-line 100 --fail-under-branch 95 >/dev/null; then
        passed=$((passed + 1))
        echo "coverage: every line, and at least 95 % of the branches"
    else
        fail "coverage of src/core: every line and at least 95 % of the branches must be reached"
    fi
}

emulated=0
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
began=$SECONDS
if ((install)); then
    (redlock_install "${REDLOCK_BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}") || exit 1
    # go.sum pins it. Without it, the tests that need it are skipped.
    (cd "$REDLOCK_ROOT/test/porcupine" && go mod download) || echo 'Porcupine cannot be downloaded'
    "$REDLOCK_ROOT/scripts/install-tlc.sh" || {
        (($? == 77)) || fail 'TLC is not installed'
        echo 'TLC cannot be downloaded: the tests of the specification are skipped'
    }
    printf 'packages: %d s\n' $((SECONDS - began))
fi
for part in "${parts[@]}"; do
    part_began=$SECONDS
    printf '\n== %s\n' "$part"
    "part_$part"
    printf '== %s: %d s\n' "$part" $((SECONDS - part_began))
    collect
done
collect all

printf '\n%d s in all\n' $((SECONDS - began))
for line in "${skips[@]}"; do
    printf 'skipped: %s\n' "$line"
done
for line in "${failures[@]}"; do
    printf 'failed: %s\n' "$line"
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0 && passed > 0))
