#!/usr/bin/env bash
# Builds the Debian packages of packaging/debian from this tree, and has lintian judge them.
set -euo pipefail

# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    cat <<'END'
usage: scripts/package-debian.sh [--install] [DIR]

Installs what the build needs, builds libredlock0, libredlock-dev and redlock-tools, and fails if
lintian has a complaint. DIR gets the packages; the default is a temporary folder.

  --install   install the packages on this machine, and run their tests (packaging/debian/tests).
              For a fresh Debian: scripts/test-debian.sh --run 'scripts/package-debian.sh --install' 12
END
}

install=0
while (($#)); do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --install) install=1 ;;
    -*) usage >&2 && exit 64 ;;
    *) break ;;
    esac
    shift
done
(($# <= 1)) || { usage >&2 && exit 64; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
output=${1:-$work}
mkdir -p "$output"
output=$(cd "$output" && pwd)

redlock_install "${REDLOCK_BUILD_PACKAGES[@]}" build-essential debhelper lintian libjansson-dev libssl-dev openssl \
    libcmocka-dev redis-server systemtap-sdt-dev
version=$(dpkg-parsechangelog -l "$REDLOCK_ROOT/packaging/debian/changelog" -S Version)
source=$work/redlock-${version%-*}
mkdir "$source"
# The files that git knows or would add; in a release tarball, all but builds.
(cd "$REDLOCK_ROOT" && if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf -
else
    tar --exclude=./build -cf - .
fi) | tar -xf - -C "$source"
tar -C "$work" --sort=name -czf "$work/redlock_${version%-*}.orig.tar.gz" "${source##*/}"
cp -r "$source/packaging/debian" "$source/debian"

(cd "$source" && dpkg-buildpackage -us -uc) >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    redlock_die "dpkg-buildpackage failed (see its output above)"
}
changes=("$work"/redlock_*.changes)
# lintian's own words are the verdict; --fail-on makes a warning count, too. Whoever uploads the
# package sets the address of its maintainer, and names the bug that asks for it.
uploader=bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs
(cd "$work" && lintian --allow-root --fail-on error,warning --tag-display-limit 0 --suppress-tags $uploader \
    "${changes[0]}") ||
    redlock_die "lintian complains (see above)"
ls -l "$work"/*.deb
((install)) || {
    [[ $output == "$work" ]] || cp "$work"/*.deb "$work"/*.changes "$output"
    exit 0
}

((EUID == 0)) || redlock_die "--install needs root"
packages=("$work"/lib*.deb "$work"/redlock-tools_*.deb)
apt-get -q -y install --no-install-recommends "${packages[@]}" >"$work/install.log" 2>&1 || {
    cat "$work/install.log" >&2
    redlock_die "the packages cannot be installed (see above)"
}
for test in compile tool; do
    printf '== %s\n' "$test"
    (cd "$source" && AUTOPKGTEST_TMP=$(mktemp -d "$work/test.XXXXXX") bash -c "exec debian/tests/$test") ||
        redlock_die "the package's test $test failed"
done
echo 'the packages are built, installed and tested'
