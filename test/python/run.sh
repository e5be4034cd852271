#!/usr/bin/env bash
# The Python package: built against an installed tree, and its own tests, on real servers.
set -euo pipefail

command -v redis-server >/dev/null || { echo "skipped: redis-server is not installed"; exit 77; }
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import cffi, setuptools, sysconfig, os
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[[ -n $python ]] || { echo "skipped: no Python with cffi, setuptools and its headers"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
"$REDLOCK_CMAKE" --install "$REDLOCK_BUILD" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
libdir=$(dirname "$(find "$prefix" -name libredlock.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} LD_LIBRARY_PATH=$libdir
export PYTHONDONTWRITEBYTECODE=1
# Writes nothing into the source tree.
cp -r "$REDLOCK_SOURCE/bindings/python" "$work/source"
cd "$work/source"
"$python" setup.py -q build --build-base "$work/build" --build-lib "$work/lib" >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
cd tests
version=$(PYTHONPATH=$work/lib "$python" -c 'import redlock_client; print(redlock_client.version())')
[[ $version == "$REDLOCK_VERSION" ]] || { echo "the package loads version $version"; exit 1; }
PYTHONPATH=$work/lib "$python" -X dev -m unittest -v
