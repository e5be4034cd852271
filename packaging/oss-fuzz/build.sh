#!/usr/bin/env bash
# Builds the fuzzers of test/fuzz for OSS-Fuzz: $CC and $CFLAGS bring the sanitizer, $OUT gets the
# programs, their corpora, and in lib/ the libraries that the image that runs them does not have.
set -euo pipefail
build=${WORK:-$PWD/build}/fuzz
# shellcheck disable=SC2016 # the loader expands $ORIGIN
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DREDLOCK_TESTS=ON -DREDLOCK_CHAOS=OFF -DREDLOCK_BENCH=OFF \
    -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DREDLOCK_FUZZ=ON -DREDLOCK_FUZZ_ENGINE="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}"
mkdir -p "$OUT/lib"
for source in test/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    cmake --build "$build" --target "$name"
    cp "$build/test/fuzz/$name" "$OUT/"
    ldd "$build/test/fuzz/$name" | awk '$1 ~ /^lib(hiredis|ev|ssl|crypto)[.]/ {print $3}' | xargs -r cp -Lt "$OUT/lib"
    corpus=test/fuzz/corpus/${name#fuzz_}
    [[ ! -d $corpus ]] || (cd "$corpus" && tar -c . | python3 -c '
import io, sys, tarfile, zipfile
with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())) as files, zipfile.ZipFile(sys.argv[1], "w") as out:
    for member in filter(tarfile.TarInfo.isfile, files):
        out.writestr(member.name[2:], files.extractfile(member).read())' "$OUT/${name}_seed_corpus.zip")
done
