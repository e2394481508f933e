"""Conan 2 recipe, exported from the tree that it lies in: conan create cmake/packaging/conan."""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class JitunwindRecipe(ConanFile):
    name = "jitunwind"
    version = "0.1.0"
    description = "Unwinding through code made at run time"
    license = "MIT"
    package_type = "shared-library"  # archives are installed beside: find_package(jitunwind COMPONENTS static)
    settings = "os", "compiler", "build_type", "arch"
    options = {"with_asmjit": [True, False]}
    default_options = {"with_asmjit": False}

    def export_sources(self):
        tree = os.path.normpath(os.path.join(self.recipe_folder, "..", "..", ".."))
        for part in ("CMakeLists.txt", "LICENSE", "unwind_core/*", "dyn_info/*", "builders/*", "sdk/*", "adapters/*",
                     "cmake/*", "docs/*"):
            copy(self, part, tree, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("jitunwind is for Linux on x86-64 and AArch64")

    def requirements(self):
        self.requires("xz_utils/[>=5.4 <6]")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("zstd/[>=1.4 <2]")
        if self.options.with_asmjit:
            self.requires("asmjit/cci.20240531")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option in ("WERROR", "TESTS", "EXAMPLES", "LLVM", "STEPPING", "TOOLS", "XBYAK"):
            toolchain.cache_variables["JITUNWIND_" + option] = False
        toolchain.cache_variables["JITUNWIND_ASMJIT"] = bool(self.options.with_asmjit)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The package's own configuration, which knows its kinds and adapters, is the one that is read.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "jitunwind"))
        self.cpp_info.libs = ["jitunwind"]
        self.cpp_info.system_libs = ["pthread", "m"]
