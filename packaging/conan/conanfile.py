"""Conan 2: builds the library and the tool from the tree that this file is in."""

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps
import os
import re

TREE = os.path.join("..", "..")


class RedlockConan(ConanFile):
    name = "redlock"
    license = "MIT"
    description = "Distributed locks over independent Redis or Valkey nodes (the Redlock algorithm)"
    topics = ("redis", "valkey", "distributed-lock", "redlock")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "tls": [True, False], "tools": [True, False]}
    default_options = {"shared": False, "fPIC": True, "tls": True, "tools": False}
    implements = ["auto_shared_fpic"]
    languages = "C"

    def set_version(self):
        lists = load(self, os.path.join(self.recipe_folder, TREE, "CMakeLists.txt"))
        self.version = re.search(r"project\(redlock VERSION ([0-9.]+)", lists).group(1)

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, TREE)
        for pattern in ("CMakeLists.txt", "LICENSE", "*.md", "cmake/*", "include/*", "src/*", "tools/*", "docs/*",
                        "packaging/*", "bench/*.md", "bench/*.txt", "test/*.md", "test/*.txt"):
            copy(self, pattern, tree, self.export_sources_folder, excludes="build/*")

    def requirements(self):
        self.requires("hiredis/[>=0.14 <2]")
        self.requires("libev/[>=4.22 <5]")
        if self.options.tls:
            self.requires("openssl/[>=1.1.1 <4]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        deps = CMakeDeps(self)
        # CMake takes Conan's file for libev before cmake/FindLibev.cmake: it must make this target.
        deps.set_property("libev", "cmake_file_name", "Libev")
        deps.set_property("libev", "cmake_target_name", "Libev::Libev")
        deps.generate()
        PkgConfigDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "REDLOCK_TLS": "ON" if self.options.tls else "OFF",
            "REDLOCK_TOOL": bool(self.options.tools),
            "REDLOCK_TESTS": "OFF",
            "REDLOCK_CHAOS": "OFF",
            "REDLOCK_BENCH": False,
        })
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["redlock"]
        self.cpp_info.set_property("cmake_file_name", "redlock")
        self.cpp_info.set_property("cmake_target_name", "redlock::redlock")
        self.cpp_info.set_property("pkg_config_name", "redlock")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
