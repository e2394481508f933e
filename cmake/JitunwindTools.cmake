# Finds tools and libraries that only tests need. A missing one is named once, here. Users ask for its variable, or link
# it (jitunwind_lacks).
include(CheckLinkerFlag)
include(JitunwindNewest)

# Tests open libraries of several linkers. A library is left out if its linker is missing: tests/support/linkers.h.
set(jitunwind_test_plugins plugin_bfd plugin_second)
set(package_of_gold binutils-gold)
set(package_of_lld lld)
foreach(linker IN ITEMS gold lld)
  string(TOUPPER ${linker} name)
  check_linker_flag(CXX -fuse-ld=${linker} JITUNWIND_HAS_${name})
  if(JITUNWIND_HAS_${name})
    add_compile_definitions(JITUNWIND_HAS_${name})
    list(APPEND jitunwind_test_plugins plugin_${linker})
  else()
    jitunwind_not_tested("libraries and programs that ld.${linker} links" "it was not found (Debian: ${package_of_${linker}})")
  endif()
endforeach()

# The oldest clang is used, because every newer LLVM reads what it writes.
jitunwind_names_of_releases(clangs clang)
list(REVERSE clangs)
find_program(JITUNWIND_CLANG NAMES ${clangs} clang)
if(NOT JITUNWIND_CLANG)
  jitunwind_not_tested("what clang makes: the C interface, engines of LLVM, files of other CPUs"
                       "it was not found (Debian: clang)")
endif()

# Releases are made of commits.
if(EXISTS ${PROJECT_SOURCE_DIR}/.git)
  find_program(JITUNWIND_GIT git)
endif()

if(NOT CMAKE_CROSSCOMPILING)
  find_program(JITUNWIND_VALGRIND valgrind)
  if(NOT JITUNWIND_VALGRIND AND JITUNWIND_ALL_TESTS AND NOT JITUNWIND_SANITIZE)
    jitunwind_not_tested("what valgrind says of programs, and what it counts: valgrind.*, counted_work_test, large_work_test"
                         "it was not found (Debian: valgrind)")
  endif()
  jitunwind_find_newest(JITUNWIND_DWARFDUMP llvm-dwarfdump)
  if(NOT JITUNWIND_DWARFDUMP)
    jitunwind_lacks("llvm-dwarfdump was not found (Debian: llvm)" jitunwind_world_cfi)
  endif()
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(libelf QUIET IMPORTED_TARGET libelf)
  endif()
  if(NOT TARGET PkgConfig::libelf)
    jitunwind_lacks("libelf was not found (Debian: libdw-dev, pkgconf)" PkgConfig::libelf jitunwind_world_cfi)
  endif()
  if(TARGET jitunwind_testing)
    find_package(zydis QUIET)
  else()
    jitunwind_lacks("Zydis was not found (Debian: libzydis-dev)" Zydis::Zydis jitunwind_single_step)
  endif()
endif()
