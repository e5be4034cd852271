#!/usr/bin/env bash
# Builds libredlock for another architecture with Debian's cross compiler, and runs the unit tests.
set -euo pipefail

# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    cat <<'END'
usage: scripts/test-architecture.sh i386|s390x

Adds the architecture to this machine's packages, installs its compiler and libraries, builds in
build/ARCHITECTURE with warnings as errors, and runs the unit tests. s390x has big endian numbers;
its programs run in qemu. What qemu cannot run is left out, and named with the reason. Ends with the
summary of ctest. Use a fresh Debian, so that this machine stays as it is:

  scripts/test-debian.sh --run 'scripts/test-architecture.sh s390x' 12
END
}

(($# == 1)) || { usage >&2 && exit 64; }
# The compiler's name, that of the folder with the libraries, and what runs the programs.
case $1 in
--help | -h) usage && exit 0 ;;
i386) compiler=i686-linux-gnu folder=i386-linux-gnu emulator='' packages=() ;;
s390x) compiler=s390x-linux-gnu folder=$compiler emulator=qemu-s390x-static packages=(qemu-user-static) ;;
*) usage >&2 && exit 64 ;;
esac
architecture=$1

((EUID == 0)) || redlock_die "to add an architecture needs root: run this script as root"
dpkg --add-architecture "$architecture"
for library in libc6 libc6-dev libhiredis-dev libev-dev libssl-dev libcmocka-dev; do
    packages+=("$library:$architecture")
done
redlock_install cmake ninja-build pkg-config "gcc-$compiler" "${packages[@]}"

export PKG_CONFIG_LIBDIR=/usr/lib/$folder/pkgconfig:/usr/share/pkgconfig
build=$REDLOCK_ROOT/build/$architecture
redlock_build "$build" -DCMAKE_BUILD_TYPE=Release -DREDLOCK_WERROR=ON -DREDLOCK_TESTS=ON -DREDLOCK_CHAOS=OFF \
    -DREDLOCK_BENCH=OFF -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$architecture" \
    -DCMAKE_C_COMPILER="$compiler-gcc" -DCMAKE_LIBRARY_ARCHITECTURE="$folder" \
    -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator"
cd "$build"
leave_out=()
if [[ -n $emulator ]]; then
    cat <<'END'
not run, because qemu ignores MADV_WIPEONFORK, by which we notice a fork: unit_random unit_loop unit_poll
not run, because qemu adds a thread, and starts no other program of s390x: unit_resolve
unit_loop_suspended test_proxy_program
not run, because they take longer than their limit in qemu: unit_connection_tls fuzz_tls
END
    leave_out=(-E '^(test_proxy_program|unit_(random|loop|loop_suspended|poll|resolve|connection_tls)|fuzz_tls)$')
fi
exec ctest --no-tests=error -j "$(nproc)" --output-on-failure -L unit "${leave_out[@]}"
