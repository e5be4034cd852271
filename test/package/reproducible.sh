#!/usr/bin/env bash
# Two builds of the library and the tool, in other folders and at other times, are the same bytes:
# the static library, too.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make NAME : copies the source to a folder of this name, and builds there, with few optimizations:
# what differs between builds is the same with all of them.
make() {
    mkdir -p "$work/$1/source"
    (cd "$REDLOCK_SOURCE" && tar -cf - CMakeLists.txt README.md CHANGELOG.md CONTRIBUTING.md LICENSE cmake docs/*.in \
        docs/man include src tools/redlock tools/values) | tar -xf - -C "$work/$1/source"
    { "$REDLOCK_CMAKE" -G "$REDLOCK_GENERATOR" -S "$work/$1/source" -B "$work/$1/build" -DCMAKE_C_COMPILER="$CC" \
        -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O1 -g" -DREDLOCK_TESTS=OFF -DREDLOCK_CHAOS=OFF \
        -DREDLOCK_BENCH=OFF -DREDLOCK_INSTALL=OFF &&
        "$REDLOCK_CMAKE" --build "$work/$1/build"; } >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

make first
make a/second/folder
for file in src/libredlock.a "src/libredlock.so.$REDLOCK_VERSION" tools/redlock/redlock; do
    [[ -s $work/first/build/$file ]] || { echo "$file was not built"; exit 1; }
    cmp "$work/first/build/$file" "$work/a/second/folder/build/$file" || {
        echo "$file differs between two builds"
        exit 1
    }
    # Not by chance: no path of the build is in it.
    ! grep -qF "$work" "$work/first/build/$file" || { echo "$file names the folder in which it was built"; exit 1; }
done
