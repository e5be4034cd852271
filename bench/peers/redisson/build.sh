#!/usr/bin/env bash
# Builds the contender for Redisson: build.sh OUT_DIR makes OUT_DIR/run; 77 where Java, Maven or the
# registry is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

skip() {
    echo "redisson: $1" >&2
    exit 77
}

javac=$(javac -version 2>&1) || skip 'needs a JDK, version 17 or later'
major=${javac#javac }
major=${major%%.*}
[[ $major -ge 17 ]] || skip "needs a JDK, version 17 or later, not $javac"
command -v java >/dev/null || skip 'needs java'
command -v mvn >/dev/null || skip 'needs Maven (mvn)'

# Builds a copy, since Maven writes beside its pom.xml. What was built of this source is kept.
same() {
    diff -rq "$here/$1" "$out/$1" >/dev/null 2>&1
}
if [[ -x $out/run ]] && same pom.xml && same src; then
    exit 0
fi
rm -rf "$out/src" "$out/target" "$out/run"
cp -r "$here/pom.xml" "$here/src" "$out"
cd "$out"

log=$out/build.log
if ! mvn -q -B -Dstyle.color=never compiler:compile dependency:copy-dependencies >"$log" 2>&1; then
    grep -q 'COMPILATION ERROR' "$log" || skip "Maven cannot fetch what it needs: $(grep -m 1 -o '\[ERROR\].*' "$log")"
    cat "$log" >&2
    exit 1
fi

version=$(sed -n 's/.*<redisson.version>\(.*\)<.*/\1/p' pom.xml)
# Standard output is the protocol's: the JVM's own words go to standard error.
cat >run <<EOF
#!/bin/sh
exec java -XX:+DisplayVMOutputToStderr -Dredisson.version=$version -cp '$out/target/classes:$out/target/lib/*' Contender
EOF
chmod +x run
