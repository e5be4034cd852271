#!/usr/bin/env bash
# Builds the fuzzers of test/fuzz for OSS-Fuzz: $CC and $CFLAGS bring the sanitizer, $OUT gets the
# programs and their corpora.
set -euo pipefail
build=${WORK:-$PWD/build}/fuzz
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DREDLOCK_TESTS=ON -DREDLOCK_CHAOS=OFF -DREDLOCK_BENCH=OFF \
    -DREDLOCK_FUZZ=ON -DREDLOCK_FUZZ_ENGINE="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}"
for source in test/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    cmake --build "$build" --target "$name"
    cp "$build/test/fuzz/$name" "$OUT/"
    corpus=test/fuzz/corpus/${name#fuzz_}
    [[ ! -d $corpus ]] || (cd "$corpus" && tar -c . | python3 -c '
import io, sys, tarfile, zipfile
with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())) as files, zipfile.ZipFile(sys.argv[1], "w") as out:
    for member in filter(tarfile.TarInfo.isfile, files):
        out.writestr(member.name[2:], files.extractfile(member).read())' "$OUT/${name}_seed_corpus.zip")
done
