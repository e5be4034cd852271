#!/usr/bin/env bash
# Prints the Homebrew formula of a release: formula.sh URL TARBALL. URL is where users get TARBALL.
set -euo pipefail
(($# == 2)) || { echo "usage: formula.sh URL TARBALL" >&2 && exit 64; }
sum=$(sha256sum "$2" | cut -d ' ' -f 1)
cat <<END
class Redlock < Formula
  desc "Distributed locks over independent Redis or Valkey nodes"
  homepage "${1%/*}"
  url "$1"
  sha256 "$sum"
  license "MIT"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "hiredis"
  depends_on "libev"
  depends_on :linux
  depends_on "openssl@3"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DREDLOCK_TLS=ON", "-DREDLOCK_TESTS=OFF",
           "-DREDLOCK_CHAOS=OFF", "-DREDLOCK_BENCH=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match "redlock", shell_output("#{bin}/redlock --version")
  end
end
END
