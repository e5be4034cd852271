#!/usr/bin/env bash
# Builds libredlock in several ways and runs all of its tests. Installs missing packages (Debian 12
# or 13, as root or with sudo).
set -uo pipefail

# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ALL_PARTS=(release lint instructions clang asan tsan valgrind coverage)
# OpenSSL 3.2 and newer want libzstd-dev in static programs.
TEST_PACKAGES=(g++ clang clang-format valgrind gcovr doxygen shellcheck mandoc jq git libcmocka-dev libjansson-dev
    libzstd-dev redis-server openssl abigail-tools gcc-multilib python3 python3-cffi python3-dev python3-setuptools
    python3-gevent python3-eventlet docker.io docker-compose iptables chromium sqlite3 systemtap-sdt-dev
    zsh fish systemd busybox python3-yaml
    "${REDLOCK_LOOP_PACKAGES[@]}")
# Elsewhere kubectl comes in a package of another name, beside which Debian's cannot be installed.
command -v kubectl >/dev/null || TEST_PACKAGES+=(kubernetes-client)

usage() {
    cat <<'END'
usage: scripts/test.sh [OPTION]… [PART]…

Installs missing packages, builds, and runs the tests of all parts, or of the parts that you name:
  release   gcc with warnings as errors; every test: unit, simulation, integration, fuzz, package
  lint      clang-format, shellcheck, man pages, API reference (uses the release build)
  instructions
            callgrind: one acquire and release may cost at most 5 % more instructions than
            bench/instructions.txt says (uses the release build)
  clang     clang with warnings as errors; builds everything, runs the unit tests
  asan      AddressSanitizer and UndefinedBehaviorSanitizer; every test except those with
            containers and the simulation's control runs; one experiment; fewer schedules in the
            simulation
  tsan      ThreadSanitizer; the tests of threads
  valgrind  memcheck; the unit tests of the core and one integration run (uses the release
            build)
  coverage  gcov; the unit tests of src/core must reach every line of it and at least 95 % of its
            branches

  --build-dir DIR   where to build; default: build/
  --jobs N          how many compilers run at a time, and twice as many tests; default: the number
                    of processors
  --no-install      install nothing; tests that need a missing package fail or are skipped
  --help            this text

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
mkdir -p "$builds" || redlock_die "cannot make the directory $builds"
builds=$(cd "$builds" && pwd)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_OUTPUT_ON_FAILURE=1

passed=0 failed=0 skipped=0
failures=() skips=()
wrap=() # put before ctest

fail() {
    printf '%s\n' "FAILED: $*"
    failed=$((failed + 1))
    failures+=("$*")
}

# build NAME [cmake args…] : builds in $builds/NAME, or updates a build that exists.
build() {
    local name=$1 began=$SECONDS
    shift
    printf '%s: building in %s …\n' "$name" "$builds/$name"
    (redlock_build "$builds/$name" -DREDLOCK_TESTS=ON "$@") || {
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

# run_tests PART BUILD [ctest args…] : runs CTest there and adds to the count. To find no test is a
# failure.
run_tests() {
    local part=$1 dir=$builds/$2 began=$SECONDS fate test why count=0
    shift 2
    local junit=$dir/junit-$part.xml
    rm -f "$junit"
    # Most tests wait: for servers, and for locks to end. So more of them run than there are
    # processors.
    (cd "$dir" && "${wrap[@]}" ctest --no-tests=error -j $((2 * jobs)) --output-on-failure --output-junit "$junit" \
        "$@") </dev/null
    local status=$? before=$failed
    if [[ ! -s $junit ]]; then
        fail "$part: ctest left no results (its exit status was $status)"
        return 1
    fi
    while IFS=$'\t' read -r fate test why; do
        count=$((count + 1))
        case $fate in
        passed) passed=$((passed + 1)) ;;
        skipped) skipped=$((skipped + 1)) && skips+=("$part: $test: $why") ;;
        *) fail "$part: $test" ;;
        esac
    done < <(fates "$junit")
    # The exit status of ctest and its file must agree.
    if ((count == 0)); then
        fail "$part: no tests were found"
    elif ((status != 0 && failed == before)); then
        fail "$part: ctest ended with status $status"
    fi
    printf '%s: %d tests in %d s\n' "$part" "$count" $((SECONDS - began))
}

# The part valgrind uses this build, too.
build_release() {
    build release --preset release -DREDLOCK_CHAOS=ON -DCMAKE_CROSSCOMPILING_EMULATOR="${1:-}"
}

part_release() {
    build_release && run_tests release release -LE 'lint|instructions'
}

part_lint() {
    build_release && run_tests lint release -L lint
}

part_instructions() {
    build_release && run_tests instructions release -L '^instructions$'
}

part_clang() {
    build clang --preset release -DREDLOCK_CHAOS=ON -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ &&
        run_tests clang clang -L unit
}

part_asan() {
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1 \
        UBSAN_OPTIONS=print_stacktrace=1
    build asan --preset asan -DREDLOCK_CHAOS=ON && run_tests asan asan -LE 'lint|compose|control'
    unset ASAN_OPTIONS UBSAN_OPTIONS
}

part_tsan() {
    # gcc's ThreadSanitizer fails if address spaces are more random than it expects.
    setarch -R true 2>/dev/null && wrap=(setarch -R)
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    build tsan --preset tsan && run_tests tsan tsan -L '^blocking$'
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
    # An interrupt must not leave the emulator in the release build.
    trap build_release EXIT
    trap 'exit 130' INT TERM HUP
    build_release "$emulator" && run_tests valgrind release -L '^(core|valgrind_ok)$'
    trap - EXIT INT TERM HUP
    build_release
}

part_coverage() {
    command -v gcovr >/dev/null || {
        fail "gcovr is not installed"
        return
    }
    build coverage --preset coverage || return
    find "$builds/coverage" -name '*.gcda' -delete
    run_tests coverage coverage -L '^core$'
    # Do not count the branches of assertions: no test survives an assertion that fails.
    local gcovr=(gcovr --root "$REDLOCK_ROOT" --filter "$REDLOCK_ROOT/src/core/"
        --exclude-branches-by-pattern '\s*assert\(.*'
        "$builds/coverage/src/CMakeFiles/redlock_objects.dir")
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

began=$SECONDS
if ((install)); then
    (redlock_install "${REDLOCK_BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}") || exit 1
    printf 'packages: %d s\n' $((SECONDS - began))
fi
for part in "${parts[@]}"; do
    part_began=$SECONDS
    printf '\n== %s\n' "$part"
    "part_$part"
    printf '== %s: %d s\n' "$part" $((SECONDS - part_began))
done

printf '\n%d s in all\n' $((SECONDS - began))
for line in "${skips[@]}"; do
    printf 'skipped: %s\n' "$line"
done
for line in "${failures[@]}"; do
    printf 'failed: %s\n' "$line"
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0 && passed > 0))
