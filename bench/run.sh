#!/usr/bin/env bash
# Measures this library, the least possible program, and other libraries. Installs missing packages
# and builds.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

usage() {
    cat <<'END'
usage: bench/run.sh [OPTION]…

Installs missing packages (Debian 12 or 13, as root or with sudo) and builds the library and the
contenders. Starts redis-servers on free loopback ports in a temporary folder. Lets all contenders
take turns, and writes results.json, results.md and plots. Prints the load of others (the processors
that other programs kept busy), the ratios, one name=value on each line, and last where the results
are. Warns if the load average is above 1 at the start, or the load of others above 0.1 while it
measures. Stops everything that it started, also after Ctrl-C.

  --quick            less than three minutes of measuring, instead of less than half an hour; wider
                     spreads, peers only in (a), (b), (c), (d)
  --only LIST        only these workloads: a,b,c,d,e,f,g,h,i,tool
                       a     one lock at a time: latency; also over TLS
                       b     many at a time: throughput, CPU; also over TLS
                       c     nodes dead, hung or slow
                       d     many clients, one resource, in one process and in many: handover, order,
                             fairness; deaths of holders and waiters; beside other libraries
                       e     100,000 leases held; the heap after many cycles
                       f     1 to 9 nodes
                       g     round trips of 1, 5 and 50 ms
                       h     as c, with round trips of 2 ms
                       i     (or fencing) fencing tokens: their cost, and how many take one round trip
                       tool  redlock run, flock, redis-cli as whole processes
  --peers LIST       all (the default), none, or names separated by commas: the folders in
                     bench/peers. A peer without its toolchain or registry is skipped, and the
                     report says why
  --server PATH      the nodes are this server of Redis or Valkey, not redis-server; no TLS then
  --output DIR       where the results go; default: BUILD_DIR/results
  --build-dir DIR    where to build; default: build/bench
  --no-install       install nothing
  --help             this text

Exit status: 0 if it measured, 1 if something failed, 64 for bad usage.
END
}

read -r load_average _ </proc/loadavg # before the build raises it
build=$REDLOCK_ROOT/build/bench
output=
server=
install=1
driver=()
while (($#)); do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --quick) driver+=(--quick) ;;
    --only) driver+=(--only "${2:?--only needs a list such as a,b}") && shift ;;
    --peers) driver+=(--peers "${2:?--peers needs all, none or names}") && shift ;;
    --server) server=$(realpath -e "${2:?--server needs the path of a server}") && shift ;;
    --output) output=${2:?--output needs a directory} && shift ;;
    --build-dir) build=${2:?--build-dir needs a directory} && shift ;;
    --no-install) install=0 ;;
    *) echo "run.sh: unknown option $1 (see --help)" >&2 && exit 64 ;;
    esac
    shift
done
mkdir -p "$build" || redlock_die "cannot make the directory $build"
build=$(cd "$build" && pwd)
output=${output:-$build/results}
mkdir -p "$output" || redlock_die "cannot make the directory $output"
output=$(cd "$output" && pwd)

if ((install)); then
    redlock_install "${REDLOCK_BUILD_PACKAGES[@]}" python3 python3-venv redis-server redis-tools gnuplot-nox \
        fonts-dejavu-core util-linux openssl >&2
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    redlock_die "the driver needs Python 3.11 or newer, but python3 is $(python3 --version)"
echo "building in $build …" >&2
redlock_build "$build" -DREDLOCK_TESTS=OFF -DREDLOCK_CHAOS=OFF -DREDLOCK_BENCH=ON -DCMAKE_BUILD_TYPE=Release

if [[ $server ]]; then
    mkdir -p "$build/server"
    ln -sf "$server" "$build/server/redis-server"
    PATH=$build/server:$PATH
    driver+=(--no-tls) # not every server speaks it
fi
cd "$REDLOCK_ROOT/bench"
# -B: write no bytecode into the tree.
exec python3 -B -m driver.main --build "$build" --output "$output" \
    --load-average "$load_average" "${driver[@]}"
