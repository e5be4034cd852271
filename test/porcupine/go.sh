#!/usr/bin/env bash
# Builds or tests the judge, without the network: go.sh GO build PROGRAM, go.sh GO test. Without the
# module, the first makes nothing and says so, and the second is skipped.
set -euo pipefail

usage='usage: go.sh GO build PROGRAM|test'
skip() {
    echo "skipped: $*"
    exit 77
}

cd "$(dirname "$0")"
go=${1-}
command -v "$go" >/dev/null || skip 'Go is not installed'
export GOPROXY=off GOFLAGS=-mod=readonly GOTOOLCHAIN=local CGO_ENABLED=0
# go.sum pins what is in Go's cache of modules; another sum is no reason to skip.
if ! said=$("$go" mod download 2>&1); then
    [[ $said != *mismatch* && $said != *'SECURITY ERROR'* ]] || { echo "$said" && exit 1; }
    why="Go has no Porcupine; run 'go mod download' in test/porcupine"
    [[ ${2-} != build ]] || { echo "redlock-porcupine is not built: $why" && exit 0; }
    skip "$why"
fi
case ${2-} in
build) "$go" build -trimpath -buildvcs=false -o "${3:?$usage}" . ;;
test)
    unformatted=$("$("$go" env GOROOT)/bin/gofmt" -l .)
    [[ -z $unformatted ]] || { echo "gofmt lays these out in another way: $unformatted" && exit 1; }
    "$go" vet .
    "$go" test -count=1 .
    ;;
*) echo "$usage" >&2 && exit 64 ;;
esac
