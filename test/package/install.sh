#!/usr/bin/env bash
# Installs the library into a temporary prefix (through DESTDIR too) and builds programs against it,
# outside of the tree.
set -euo pipefail

way=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The prefix has a space in no case, but is not one that any tool knows.
prefix=$work/prefix
"$REDLOCK_CMAKE" --install "$REDLOCK_BUILD" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
libdir=$(dirname "$(find "$prefix" -name libredlock.so)")
for file in bin/redlock "$REDLOCK_SOURCE"/include/redlock/{*.h,adapters/*.h,*.hpp,cpp/*.hpp}; do
    file=${file#"$REDLOCK_SOURCE"/}
    [[ -e $prefix/$file ]] || { echo "$file is not installed:"; find "$prefix"; exit 1; }
done
for file in bash-completion/completions/redlock zsh/site-functions/_redlock fish/vendor_completions.d/redlock.fish; do
    [[ -s $prefix/share/$file ]] || { echo "the completion $file is not installed"; exit 1; }
done
for page in "$REDLOCK_SOURCE"/docs/man/*.[137]; do
    [[ $page != */redlock-chaos.1 || -e $prefix/bin/redlock-chaos ]] || continue
    [[ ! -e $page || -e $prefix/share/man/man${page##*.}/${page##*/} ]] || { echo "not installed: $page"; exit 1; }
done

run() {
    echo "+ $*"
    "$@"
}

# The installed redlock-chaos finds its clock: a node whose clock jumps.
chaos() {
    [[ -e $prefix/bin/redlock-chaos ]] || { echo "skipped: redlock-chaos was not built (no jansson)"; exit 77; }
    command -v redis-server >/dev/null || { echo "skipped: redis-server is not installed"; exit 77; }
    local status=0
    echo 'at=1s fault=clock-jump nodes=1 amount=-5s' |
        run "$prefix/bin/redlock-chaos" run --schedule - --clients 2 --seconds 3 --output "$work/run" || status=$?
    ((status == 0)) || { echo "exit status $status"; exit 1; }
    if grep -F '"fault"' "$work/run/history.jsonl" | grep -vE '"error": ?""'; then
        echo "the fault could not be begun"
        exit 1
    fi
}

pkgconfig() {
    command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
    export PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
    [[ $(pkg-config --modversion redlock) == "$REDLOCK_VERSION" ]] || { echo "redlock.pc has another version"; exit 1; }
    # A user of the shared library must not be asked for hiredis and libev.
    if [[ $(pkg-config --libs redlock) =~ hiredis|-lev ]]; then
        echo "pkg-config --libs names what only the static library needs"
        exit 1
    fi
    # A static libev may need libm.
    if [[ " $(pkg-config --static --libs redlock) " != *" -lm "* ]]; then
        echo "pkg-config --static --libs does not name libm"
        exit 1
    fi
    local flags
    read -ra flags <<<"${REDLOCK_FLAGS:-}"
    # shellcheck disable=SC2046 # pkg-config's words are to be split
    run "$CC" -std=c11 "${flags[@]}" -o "$work/shared" "$here/program.c" $(pkg-config --cflags --libs redlock)
    LD_LIBRARY_PATH=$libdir run "$work/shared" "$REDLOCK_VERSION"
    # shellcheck disable=SC2046
    run "$CC" -std=c11 "${flags[@]}" -o "$work/static" "$here/program.c" $(pkg-config --cflags redlock) \
        -Wl,-Bstatic -L"$libdir" -lredlock -Wl,-Bdynamic $(pkg-config --static --libs redlock | sed 's/-lredlock//')
    if command -v ldd >/dev/null && [[ $(ldd "$work/static") == *libredlock* ]]; then
        echo "the static program still needs libredlock.so"
        exit 1
    fi
    run "$work/static" "$REDLOCK_VERSION"
}

cmake_package() {
    cp "$here/program.c" "$work"
    cp "$here/consumer.cmake" "$work/CMakeLists.txt"
    # An installed tree can be moved: nothing in it may name the place it was installed to.
    mv "$prefix" "$work/moved"
    libdir=${libdir/"$prefix"/"$work/moved"}
    run "$REDLOCK_CMAKE" -G "$REDLOCK_GENERATOR" -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" \
        -DCMAKE_C_COMPILER="$CC" \
        -DCMAKE_C_FLAGS="${REDLOCK_FLAGS:-}" -DWAY=package -DWANTED_VERSION="$REDLOCK_VERSION" \
            "-DKINDS=shared;static" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    run "$REDLOCK_CMAKE" --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    run "$work/build/program_shared" "$REDLOCK_VERSION"
    run "$work/build/program_static" "$REDLOCK_VERSION"
    run "$work/build/program_redlock" "$REDLOCK_VERSION"
}

destdir() {
    DESTDIR=$work/staged "$REDLOCK_CMAKE" --install "$REDLOCK_BUILD" --prefix /usr >"$work/log" ||
        { cat "$work/log"; exit 1; }
    [[ -e $work/staged/usr/bin/redlock ]] || { echo "DESTDIR was not obeyed:"; find "$work/staged"; exit 1; }
    local pc
    pc=$(find "$work/staged" -name redlock.pc)
    grep -qx 'prefix=/usr' "$pc" || { echo "redlock.pc names another prefix than /usr:"; cat "$pc"; exit 1; }
}

case $way in
pkgconfig) pkgconfig && destdir ;;
cmake) cmake_package ;;
chaos) chaos ;;
*) echo "usage: install.sh pkgconfig|cmake|chaos" >&2 && exit 64 ;;
esac
