#!/usr/bin/env bash
# Builds this tree as others do: without cmocka and jansson (bare), with CMake's own options
# (options), inside another project (embed).
set -euo pipefail

way=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*"
    exit 1
}

# quiet COMMAND… : its output goes to $work/log, and is shown if it fails.
quiet() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "failed: $*"; }
}

# refused WORDS COMMAND… : the command fails and says WORDS.
refused() {
    local words=$1
    shift
    ! "$@" >"$work/log" 2>&1 || fail "this did not fail: $*"
    grep -qF -- "$words" "$work/log" || { cat "$work/log"; fail "failed without saying \"$words\": $*"; }
}

# configure SOURCE BUILD [cmake args…]
configure() {
    "$REDLOCK_CMAKE" -G "$REDLOCK_GENERATOR" -S "$1" -B "$2" -DCMAKE_C_COMPILER="$CC" "${@:3}"
}

# consumer NAME : a copy of the user's project in $work/NAME.
consumer() {
    mkdir "$work/$1"
    cp "$here/program.c" "$work/$1"
    cp "$here/consumer.cmake" "$work/$1/CMakeLists.txt"
}

# linked PROGRAM shared|static : it runs, and has the library within it or not.
linked() {
    local kind=static
    "$1" "$REDLOCK_VERSION" >"$work/log" || { cat "$work/log"; fail "$1 failed"; }
    [[ $(ldd "$1") != *libredlock* ]] || kind=shared
    [[ $kind == "$2" ]] || fail "$1 is linked to the $kind library, not to the $2 one"
}

# The libraries under DIR, by their kinds.
kinds() {
    find "$1" \( -name libredlock.so -printf 'shared\n' \) -o \( -name libredlock.a -printf 'static\n' \) | sort |
        tr '\n' ' '
}

# This machine has cmocka, jansson and sys/sdt.h, so we hide them: pkg-config sees hiredis alone.
bare() {
    mkdir "$work/pc"
    cp "$(pkg-config --variable=pcfiledir hiredis)/hiredis.pc" "$work/pc"
    unset PKG_CONFIG_PATH
    export PKG_CONFIG_LIBDIR=$work/pc
    local build=$work/build kind other
    refused 'there is no cmocka' configure "$REDLOCK_SOURCE" "$build" -DREDLOCK_TESTS=ON
    refused 'openssl' configure "$REDLOCK_SOURCE" "$work/tls" -DREDLOCK_TESTS=OFF -DREDLOCK_TLS=ON
    refused 'jansson' configure "$REDLOCK_SOURCE" "$build" -DREDLOCK_TESTS=AUTO -DREDLOCK_CHAOS=ON
    refused 'no sys/sdt.h' configure "$REDLOCK_SOURCE" "$work/probes" -DREDLOCK_TESTS=OFF -DREDLOCK_PROBES=ON \
        -DREDLOCK_HAS_SDT_H=OFF
    rm -r "$build"
    # Without optimization: it costs less time, and the same files are built. Some ask for unity
    # builds of all that they build.
    quiet configure "$REDLOCK_SOURCE" "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 \
        -DCMAKE_UNITY_BUILD=ON \
        -DCMAKE_DISABLE_FIND_PACKAGE_Doxygen=ON -DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON -DREDLOCK_HAS_SDT_H=OFF
    grep -q 'The tests are left out: there is no cmocka' "$work/log" ||
        { cat "$work/log"; fail "nothing says that there are no tests"; }
    grep -q 'TLS is left out: there is no OpenSSL' "$work/log" ||
        { cat "$work/log"; fail "nothing says that there is no TLS"; }
    grep -q 'The static probes are left out: there is no sys/sdt.h' "$work/log" ||
        { cat "$work/log"; fail "nothing says that there are no probes"; }
    quiet "$REDLOCK_CMAKE" --build "$build"
    [[ $(readelf -n "$build"/src/libredlock.so) != *stapsdt* ]] || fail "there are probes"
    # Without OpenSSL's pkg-config file there is no TLS, and the tool says so.
    [[ $("$build/tools/redlock/redlock" --version) == *'without TLS' ]] || fail "--version does not say: without TLS"
    refused 'built without it' "$build/tools/redlock/redlock" -n rediss://127.0.0.1:1 status
    refused 'built without it' "$build/tools/redlock/redlock" --tls -n 127.0.0.1:1 status
    [[ $(kinds "$build") == 'shared static ' ]] || fail "built: $(kinds "$build")"

    # BUILD_SHARED_LIBS chooses what is built by default, and what is installed.
    for kind in shared static; do
        [[ $kind == shared ]] && other=static || other=shared
        quiet configure "$REDLOCK_SOURCE" "$build" -DBUILD_SHARED_LIBS="$([[ $kind == shared ]] && echo ON ||
            echo OFF)" \
            -DREDLOCK_TOOL=OFF -DREDLOCK_BENCH=OFF
        rm "$build"/src/libredlock.*
        quiet "$REDLOCK_CMAKE" --build "$build"
        [[ $(kinds "$build") == "$kind " ]] || fail "with BUILD_SHARED_LIBS for $kind this is built: $(kinds "$build")"
        quiet "$REDLOCK_CMAKE" --install "$build" --prefix "$work/$kind.prefix"
        [[ $(kinds "$work/$kind.prefix") == "$kind " ]] ||
            fail "with BUILD_SHARED_LIBS for $kind this is installed: $(kinds "$work/$kind.prefix")"
        consumer $kind
        local find=(-DCMAKE_PREFIX_PATH="$work/$kind.prefix" -DWAY=package)
        refused redlock_FOUND configure "$work/$kind" "$work/$kind.other" "${find[@]}" -DKINDS=$other
        quiet configure "$work/$kind" "$work/$kind.build" "${find[@]}" -DKINDS=$kind
        quiet "$REDLOCK_CMAKE" --build "$work/$kind.build"
        linked "$work/$kind.build/program_$kind" $kind
        linked "$work/$kind.build/program_redlock" $kind
    done
    # Without a shared library, pkg-config names what the static one needs, also without --static.
    PKG_CONFIG_LIBDIR+=:$(dirname "$(find "$work/static.prefix" -name redlock.pc)")
    # shellcheck disable=SC2046 # pkg-config's words are to be split
    quiet "$CC" -o "$work/program" "$here/program.c" $(pkg-config --cflags --libs redlock)
    linked "$work/program" static
}

# Where cmocka is, there are tests by default, and none with BUILD_TESTING=OFF.
options() {
    local targets
    quiet configure "$REDLOCK_SOURCE" "$work/build" -DCMAKE_UNITY_BUILD=ON
    ! grep -q '/Unity/' "$work/build/compile_commands.json" || fail "a unity build, whose names may clash"
    targets=$("$REDLOCK_CMAKE" --build "$work/build" --target help)
    grep -q test_quorum <<<"$targets" || fail "there are no tests by default"
    ! grep -qE 'Experimental|Nightly' <<<"$targets" || fail "there are targets of CTest's dashboard"
    quiet configure "$REDLOCK_SOURCE" "$work/build" -DBUILD_TESTING=OFF
    targets=$("$REDLOCK_CMAKE" --build "$work/build" --target help)
    ! grep -q test_quorum <<<"$targets" || fail "BUILD_TESTING=OFF has tests"
    grep -q redlock_shared <<<"$targets" || fail "the list of targets shows no libraries"
}

# leaks BUILD : prints what the library did to the user's project beyond its targets.
leaks() {
    diff "$1/before" "$1/after" || true
    grep -vE '^BUILDSYSTEM_TARGETS redlock_' "$1/inside" || true
    # The command that compiles the user's file may have one flag of ours: the headers' folder.
    grep '"command".*/program\.c' "$1/compile_commands.json" | tr ' ' '\n' | grep -E '^-[^oc]' |
        grep -vFx -- "-I$REDLOCK_SOURCE/include" || true
    "$REDLOCK_CMAKE" --install "$1" --prefix "$work/installed" >"$work/log" 2>&1 || cat "$work/log"
    [[ ! -e $work/installed ]] || find "$work/installed" -type f
}

embed() {
    local build said
    consumer user
    for build in subdirectory fetch; do
        # Both with Release flags of the user; one with BUILD_SHARED_LIBS=OFF.
        local options=()
        [[ $build == subdirectory ]] || options=(-DBUILD_SHARED_LIBS=OFF)
        quiet configure "$work/user" "$work/$build" -DWAY=$build -DREDLOCK_SOURCE="$REDLOCK_SOURCE" \
            "-DKINDS=shared;static" "${options[@]}" \
            -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG" -DREDLOCK_LTO=OFF
        quiet "$REDLOCK_CMAKE" --build "$work/$build"
        linked "$work/$build/program_shared" shared
        linked "$work/$build/program_static" static
        linked "$work/$build/program_redlock" "$([[ $build == subdirectory ]] && echo shared || echo static)"
        said=$(leaks "$work/$build" | grep -vxE -- '-O0|-DNDEBUG' || true)
        [[ -z $said ]] || fail "$build changes the user's project: $said"
    done
    # Assertions stay on, whatever the user's own Release has.
    [[ $(nm -D "$work/subdirectory/redlock/src/libredlock.so") == *__assert_fail* ]] ||
        fail "the library is built without its assertions"

    # The control: each of these is found.
    mkdir "$work/tree"
    cp -r "$REDLOCK_SOURCE"/{CMakeLists.txt,LICENSE,cmake,include,src} "$work/tree"
    REDLOCK_SOURCE=$work/tree
    cat >>"$REDLOCK_SOURCE/CMakeLists.txt" <<'END'
set(CMAKE_C_VISIBILITY_PRESET hidden PARENT_SCOPE)
set(CMAKE_BUILD_TYPE Debug CACHE STRING "" FORCE)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY COMPILE_OPTIONS -Wshadow)
target_compile_definitions(redlock_shared PUBLIC STRAY_DEFINITION)
add_custom_target(uninstall)
add_test(NAME stray_test COMMAND true)
install(FILES LICENSE DESTINATION stray)
END
    quiet configure "$work/user" "$work/planted" -DWAY=subdirectory -DREDLOCK_SOURCE="$REDLOCK_SOURCE" \
        "-DKINDS=shared;static"
    said=$(leaks "$work/planted")
    for build in CMAKE_C_VISIBILITY_PRESET=hidden CMAKE_BUILD_TYPE=Debug COMPILE_OPTIONS=-Wshadow -DSTRAY_DEFINITION \
        uninstall \
        stray_test installed/stray/LICENSE; do
        grep -qF -- "$build" <<<"$said" || fail "control failed: $build was not found: $said"
    done
}

case $way in
bare | options | embed) "$way" ;;
*) echo "usage: build.sh bare|options|embed" >&2 && exit 64 ;;
esac
