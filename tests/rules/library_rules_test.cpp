// Rules that the built libraries keep, as nm and readelf see them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/command.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::lines_of, jitunwind::test::output_of, jitunwind::test::Pattern;

// AddressSanitizer defines one for each global object.
const Pattern k_sanitizers(R"(__odr_asan\..*)");
// These names are ours by namespace or prefix, also as thunk, guard, vtable or type information.
const Pattern k_own_name(R"((_ZN[VKRO]*9jitunwind|_ZT[VITSh]\S*N[K]?9jitunwind|_ZGVN[K]?9jitunwind|jitunwind_|ju_).*)");
// Others look for these two names in the process, and for libunwind's interface.
const Pattern k_well_known(R"(_U_dyn_info_list|_Unwind_Find_FDE)");
const Pattern k_of_debuggers(R"(__jit_debug_(descriptor|register_code))");
// The core's name of a function of the standard library (cmake/core_references.h).
const Pattern k_out_of_range(R"(_ZSt\d+jitunwind_out_of_range\w*)");
// A static libgcc calls this with `-Wl,--wrap=_Unwind_Find_FDE`.
const Pattern k_wrapped(R"(__wrap__Unwind_Find_FDE)");
const Pattern k_libunwind_name(
    R"(_UL?x86_64_\w+|_U_dyn_(register|cancel|info_list_addr|region_size)|unw_backtrace2?|_Unwind_Find_FDE)");
constexpr const char* k_shared_libraries[] = {
    JITUNWIND_CORE_SHARED,      JITUNWIND_GDB_SHARED, JITUNWIND_SHARED,
    JITUNWIND_LIBUNWIND_SHARED, JITUNWIND_EH_SHARED,  JITUNWIND_SETJMP_SHARED,
    JITUNWIND_DROP_IN_SHARED,   JITUNWIND_UWX_SHARED, JITUNWIND_LISTEN_SHARED};
const Pattern k_asked_name(R"(_Unwind_Find_FDE)");

/// Returns lines "value type name" of nm whose name satisfies no pattern. Weak symbols of an archive are instances of
/// templates and inline functions, which the linker merges.
std::vector<std::string> foreign_names(const std::string& nm_output, const std::vector<Pattern>& allowed,
                                       bool weak_allowed) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(nm_output)) {
    std::istringstream fields(line);
    std::string value, type, name;
    if (!(fields >> value >> type >> name)) continue;
    if (type == "A") continue;  // a version's own symbol
    name = name.substr(0, name.find('@'));
    if (weak_allowed && std::string("WVu").find(type) != std::string::npos) continue;
    bool known = false;
    for (const Pattern& pattern : allowed) known = known || matches(name, pattern);
    if (!known) found.push_back(line);
  }
  return found;
}

void expect_only(const std::string& options, const std::string& file, const std::vector<Pattern>& allowed,
                 bool weak_allowed) {
  const std::string names = output_of("nm " + options + " --defined-only '" + file + "'");
  ASSERT_GT(std::count(names.begin(), names.end(), '\n'), 10) << file;
  const auto found = foreign_names(names, allowed, weak_allowed);
  EXPECT_TRUE(found.empty()) << file << "\n" << rules::joined(found);
}

TEST(LibraryRules, ForeignNamesAreNoticed) {
  const std::string names = "01 T _ZN9jitunwind6Cursor4stepEv\n02 T unw_step\n03 W _ZNSt6vectorIiE4growEv\n";
  EXPECT_EQ(foreign_names(names, {k_own_name}, false).size(), 2u);
  EXPECT_EQ(foreign_names(names, {k_own_name}, true).size(), 1u);
}

TEST(LibraryRules, SharedLibraryExportsItsOwnNames) {
  expect_only("-D", JITUNWIND_SHARED, {k_own_name, k_well_known}, false);
  expect_only("-D", JITUNWIND_CORE_SHARED, {k_own_name, k_well_known, k_out_of_range}, false);
}

TEST(LibraryRules, ArchiveDefinesItsOwnNames) {
  expect_only("-g", JITUNWIND_STATIC,
              {k_own_name, k_well_known, k_of_debuggers, k_wrapped, k_sanitizers, k_out_of_range}, true);
  expect_only("-g", JITUNWIND_CORE_STATIC, {k_own_name, k_well_known, k_wrapped, k_sanitizers, k_out_of_range}, true);
}

/// One list with libLLVM, which has versions of its own: the names have none.
TEST(LibraryRules, DebuggersFindTwoNamesInTheLibraryForThem) {
  const std::string names = output_of("nm -D --defined-only '" JITUNWIND_GDB_SHARED "'");
  EXPECT_TRUE(foreign_names(names, {k_of_debuggers}, false).empty()) << names;
  EXPECT_EQ(lines_of(names).size(), 2u) << names;
}

TEST(LibraryRules, CompatibilityLibraryExportsLibunwindsNames) {
  expect_only("-D", JITUNWIND_LIBUNWIND_SHARED, {k_libunwind_name, Pattern("_ZN9jitunwind.*decompress_.*")}, false);
  expect_only("-g", JITUNWIND_LIBUNWIND_STATIC, {k_libunwind_name, k_own_name, k_sanitizers}, true);
}

struct CrossLibrary {
  std::string target, shared_file, static_file;
};
/// Parses "riscv=SHARED=STATIC:arm=..."
std::vector<CrossLibrary> cross_libraries() {
  std::vector<CrossLibrary> libraries;
  std::istringstream list(JITUNWIND_CROSS_LIBRARIES);
  for (std::string entry; std::getline(list, entry, ':');) {
    std::istringstream parts(entry);
    CrossLibrary& library = libraries.emplace_back();
    std::getline(parts, library.target, '=');
    std::getline(parts, library.shared_file, '=');
    std::getline(parts, library.static_file, '=');
  }
  return libraries;
}

/// They have no function that captures this process's registers, so a program that uses one does not link.
// covers: XP03 XP07
TEST(LibraryRules, LibrariesOfOtherCpusExportNamesOfTheirs) {
  EXPECT_GE(cross_libraries().size(), 6u);
  for (const CrossLibrary& library : cross_libraries()) {
    const Pattern name("_U" + library.target + "_(?!getcontext)\\w+"), local_name("_UL" + library.target + "_\\w+");
    expect_only("-D", library.shared_file, {name, k_asked_name}, false);
    expect_only("-g", library.static_file, {name, local_name, k_own_name, k_sanitizers}, true);
  }
}

TEST(LibraryRules, UnwindExpressExportsItsNames) {
  const Pattern names(R"(uwx_\w+)");
  expect_only("-D", JITUNWIND_UWX_SHARED, {names, k_asked_name}, false);
  expect_only("-g", JITUNWIND_UWX_STATIC, {names, k_own_name, k_sanitizers}, true);
}

TEST(LibraryRules, ListeningLibraryExportsWhatJitsCall) {
  const Pattern names(R"(__(de)?register_frame(_info|_table|_info_table)?(_bases)?)");
  const Pattern for_headers("ju_jit_functions");
  const Pattern own(R"(_ZN9jitunwind(6listen|13listen_status|8say_name|9say_lines|8say_gone|18receive_heard_line|)"
                    R"(14hear_itt_event|13start_telling)E.*)");
  const Pattern symbolizers(R"(dladdr1?|backtrace_symbols(_fd)?)");
  const Pattern of_process(R"(mmap(64)?|munmap|mprotect|mremap|_exit|_Exit|syscall)");
  expect_only("-D", JITUNWIND_LISTEN_SHARED, {names, own, for_headers, symbolizers, of_process, k_asked_name}, false);
  expect_only("-g", JITUNWIND_LISTEN_STATIC, {names, symbolizers, k_own_name, k_sanitizers}, true);
}

/// A program may name any of them: it comes before libgcc_s, which the program names last.
TEST(LibraryRules, EveryLibraryDefinesWhatTheUnwinderAsks) {
  std::vector<std::string> files{JITUNWIND_SHARED, JITUNWIND_LIBUNWIND_SHARED, JITUNWIND_UWX_SHARED,
                                 JITUNWIND_LISTEN_SHARED};
  for (const CrossLibrary& library : cross_libraries()) files.push_back(library.shared_file);
  for (const std::string& file : files)
    EXPECT_NE(output_of("nm -D --defined-only '" + file + "'").find(" _Unwind_Find_FDE@@GCC_3.0\n"), std::string::npos)
        << file;
}

#ifdef JITUNWIND_TEST_OPTIMISED
/// The limit is that of docs/notes/start.md "Size".
TEST(LibraryRules, CodeIsLessThanAMegabyte) {
  const std::string sections = output_of("readelf -SW '" JITUNWIND_SHARED "'");
  Groups match;
  ASSERT_TRUE(has_match(sections, match, Pattern(R"( \.text +PROGBITS +\w+ \w+ (\w+) )")));
  const unsigned long code = std::stoul(match[1], nullptr, 16);
  std::printf("%lu bytes of code; with tables and constants:\n%s", code,
              output_of("size '" JITUNWIND_SHARED "'").c_str());
  EXPECT_LT(code, 1u << 20);
}

/// docs/notes/start.md: objects that are destroyed at exit are registered at start, and read code in many places at
/// exit.
TEST(LibraryRules, NothingIsDestroyedAtExit) {
  const std::string undefined = output_of("nm -D -u '" JITUNWIND_SHARED "'");
  EXPECT_NE(undefined.find(" malloc"), std::string::npos);
  EXPECT_EQ(undefined.find(" __cxa_atexit"), std::string::npos);
}
#endif

TEST(LibraryRules, SonamesHaveTheVersionOfTheAbi) {
  const auto dynamic = [](const char* file) { return output_of("readelf -dW '" + std::string(file) + "'"); };
  EXPECT_NE(dynamic(JITUNWIND_CORE_SHARED).find("soname: [libjitunwind-core.so.1]"), std::string::npos);
  EXPECT_NE(dynamic(JITUNWIND_SHARED).find("soname: [libjitunwind.so.1]"), std::string::npos);
  EXPECT_NE(dynamic(JITUNWIND_SHARED).find("library: [libjitunwind-core.so.1]"), std::string::npos);
  EXPECT_NE(dynamic(JITUNWIND_LIBUNWIND_SHARED).find("soname: [libjitunwind-libunwind.so.1]"), std::string::npos);
  EXPECT_NE(dynamic(JITUNWIND_LIBUNWIND_SHARED).find("library: [libjitunwind-core.so.1]"), std::string::npos)
      << "one engine and one registry: the compatibility library is thin";
}

/// Returns exported names without a version, and those whose version differs from `version_of`.
std::vector<std::string> wrong_versions(const std::string& nm_output,
                                        const std::function<std::string(const std::string&)>& version_of) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(nm_output)) {
    std::istringstream fields(line);
    std::string value, type, name;
    if (!(fields >> value >> type >> name) || type == "A") continue;
    const std::string::size_type at = name.find("@@");
    const std::string version = at == std::string::npos ? "" : name.substr(at + 2);
    if (version != version_of(name.substr(0, at))) found.push_back(line);
  }
  return found;
}

/// docs/stability.md: symbols that C programs were linked with never go; those of C++ programs belong to one release.
TEST(LibraryRules, SymbolsHaveTheVersionsThatArePromised) {
  const std::string cxx = "JITUNWIND_CXX_" JITUNWIND_MINOR_RELEASE;
  const auto version_of = [&](const std::string& name) -> std::string {
    static const Pattern of_c(R"(ju_.*|jitunwind_(backtrace|capture_context|version)|_U_dyn_info_list)");
    if (name == "_Unwind_Find_FDE") return "GCC_3.0";
    return matches(name, of_c) ? "JITUNWIND_1" : cxx;
  };
  EXPECT_EQ(wrong_versions("01 T ju_push\n02 T ju_pop@@JITUNWIND_2\n", version_of).size(), 2u);
  const auto exported = [](const std::string& file) { return output_of("nm -D --defined-only '" + file + "'"); };
  for (const char* const file : {JITUNWIND_SHARED, JITUNWIND_CORE_SHARED}) {
    const auto found = wrong_versions(exported(file), version_of);
    EXPECT_TRUE(found.empty()) << rules::joined(found);
  }
  EXPECT_NE(exported(JITUNWIND_SHARED).find(" ju_register@@JITUNWIND_1\n"), std::string::npos);
  std::vector<std::string> sisters{JITUNWIND_LIBUNWIND_SHARED, JITUNWIND_UWX_SHARED};
  for (const CrossLibrary& library : cross_libraries()) sisters.push_back(library.shared_file);
  for (const std::string& sister : sisters) {
    const auto of_sister = wrong_versions(exported(sister), [&](const std::string& name) {
      return name == "_Unwind_Find_FDE" ? "GCC_3.0" : name.starts_with("_ZN9jitunwind") ? cxx : "JITUNWIND_1";
    });
    EXPECT_TRUE(of_sister.empty()) << sister << "\n" << rules::joined(of_sister);
  }
}

// The libraries that a library needs (DT_NEEDED), and the libraries that define the names it uses.

std::vector<std::string> first_groups(const std::string& text, const Pattern& pattern) {
  std::vector<std::string> found;
  for (const Groups& at : all_in(text, pattern)) found.push_back(at[1]);
  return found;
}

/// Returns the names of nm's lines without their versions. Most libraries need the same few libraries, which are read
/// once.
const std::set<std::string>& names_defined_in(const std::string& file) {
  static std::map<std::string, std::set<std::string>> known;
  const auto [at, is_new] = known.try_emplace(file);
  if (is_new) {
    const std::string listed = output_of("nm -D --defined-only '" + file + "'");
    for (const std::string& name : first_groups(listed, R"([A-TV-Za-z] ([^\s@]+)(@+\S+)?\n)")) at->second.insert(name);
  }
  return at->second;
}

/// The dynamic linker has one of each unique name for all copies of this library in a process, also of unlike releases.
TEST(LibraryRules, CopiesShareNoVariable) {
  for (const std::string file : k_shared_libraries)
    for (const std::string& name : first_groups(output_of("nm -D --defined-only '" + file + "'"), R"( u ([^\s@]+))"))
      EXPECT_TRUE(matches(name, Pattern(R"(.*\dk_\w+E)"))) << file << ": " << name << " is no constant";
}

struct Uses {
  std::vector<std::string> unused;   ///< libraries that define nothing of what is used
  std::vector<std::string> unnamed;  ///< names that no needed library defines
};

/// Decides by the names alone: a library through which others are found is needed for none.
Uses uses_of(const std::string& file) {
  Uses uses;
  const std::string undefined = output_of("nm -D --undefined-only '" + file + "'");
  std::set<std::string> left;
  for (const std::string& name : first_groups(undefined, R"( U ([^\s@]+))")) left.insert(name);
  std::set<std::string> all = left;
  for (const std::string& name : first_groups(undefined, R"( w ([^\s@]+))")) all.insert(name);
  const std::string paths = output_of("ldd '" + file + "'");
  for (const std::string& needed : first_groups(output_of("readelf -dW '" + file + "'"), R"(NEEDED.*\[(.*)\])")) {
    // The dynamic linker itself is listed by its path alone.
    const std::string::size_type name = paths.find("/" + needed + " (");
    const std::string path = name == std::string::npos ? needed : paths.substr(0, name + 1 + needed.size());
    const std::string found = path.substr(path.find_last_of(" \t") + 1);
    const std::set<std::string>& defined = names_defined_in(found);
    EXPECT_GT(defined.size(), 1u) << path;
    const bool is_used =
        std::any_of(all.begin(), all.end(), [&](const auto& name) { return defined.count(name) != 0; });
    if (!is_used) uses.unused.push_back(needed);
    std::erase_if(left, [&](const std::string& name) { return defined.count(name) != 0; });
  }
  uses.unnamed.assign(left.begin(), left.end());
  return uses;
}

/// Programs that name only the first library find the second one's functions behind it.
std::vector<std::string> found_behind(const std::string& file) {
  if (file.find("/libunwind.so.8") != std::string::npos) return {"libjitunwind-libunwind.so.1"};
  if (file.find("/libunwind-x86_64.so.8") != std::string::npos) return {"libunwind.so.8"};
  return {};
}

std::vector<std::string> shared_libraries() { return first_groups(JITUNWIND_SHARED_LIBRARIES ":", "([^:]+):"); }

#ifndef JITUNWIND_TEST_SANITIZED
/// A superfluous library is loaded, and its pages are touched, whenever a program starts. A missing one is found only
/// if something else has loaded it.
TEST(LibraryRules, LibrariesNameWhatTheyUseAndNothingElse) {
  EXPECT_GE(shared_libraries().size(), 4u);
  for (const std::string& file : shared_libraries()) {
    const Uses uses = uses_of(file);
    std::vector<std::string> unused = uses.unused;
    for (const std::string& behind : found_behind(file)) std::erase(unused, behind);
    EXPECT_TRUE(unused.empty()) << file << " needs without using them:\n" << rules::joined(unused);
    EXPECT_TRUE(uses.unnamed.empty()) << file << " does not say who defines\n" << rules::joined(uses.unnamed);
  }
}

/// A program in C gets no C++ run-time library by them, preloaded or linked. Those of libunwind's interface decompress,
/// and libunwind.so.8 leaves exceptions to libgcc_s.
TEST(LibraryRules, LibrariesForProgramsInCNeedNoCppLibrary) {
  const Pattern allowed(
      R"(libjitunwind-core\.so\.1|libc\.so\.6|linux-vdso\S*|linux-gate\S*|\S*ld-linux\S*|lib(dl|pthread)\.so\.\d|)"
      R"((libjitunwind-libunwind|libz|libzstd|libgcc_s)\.so\.1|liblzma\.so\.5)");
  for (const std::string file : {JITUNWIND_GDB_SHARED, JITUNWIND_EH_SHARED, JITUNWIND_SETJMP_SHARED,
                                 JITUNWIND_LIBUNWIND_SHARED, JITUNWIND_DROP_IN_SHARED, JITUNWIND_LISTEN_SHARED}) {
    const std::vector<std::string> loaded = first_groups(output_of("ldd '" + file + "'"), R"(\s*(\S+).*\n)");
    EXPECT_GE(loaded.size(), 3u) << file;
    for (const std::string& name : loaded) EXPECT_TRUE(matches(name, allowed)) << file << " " << name;
  }
}

#endif

/// The library names one library and uses another.
TEST(LibraryRules, LibrariesThatAreNotUsedAreNoticed) {
  const std::string folder = output_of("mktemp -d | tr -d '\\n'");
  const std::string source = "echo 'extern int elsewhere(void); int here(void) { return elsewhere(); }' | ";
  const std::string file = folder + "/lib.so";
  (void)output_of(source + "cc -shared -fPIC -nostartfiles -x c - -o " + file + " -Wl,--no-as-needed -lm");
  const Uses uses = uses_of(file);
  EXPECT_NE(std::find(uses.unused.begin(), uses.unused.end(), "libm.so.6"), uses.unused.end());
  EXPECT_EQ(uses.unnamed, std::vector<std::string>{"elsewhere"});
  (void)output_of("rm -r '" + folder + "'");
}

/// An empty folder in a list of folders is the program's current folder. Each library needs others of ours, or opens
/// one.
TEST(LibraryRules, LibrariesAreLookedForBesideTheOneThatNeedsThem) {
  for (const std::string& file : shared_libraries()) {
    const std::string dynamic = output_of("readelf -dW '" + file + "'");
    const std::vector<std::string> paths = first_groups(dynamic, R"((?:RUNPATH|RPATH).*\[(.*)\])");
    EXPECT_EQ(paths.size(), 1u) << file;
    for (const std::string& path : paths)
      EXPECT_TRUE(matches(path, Pattern(R"(\$ORIGIN(/\.\.)?(:\$ORIGIN)?)"))) << file << " " << path;
  }
}

// The first access to a thread-local of another model may allocate; the loader's surplus for libraries that are loaded
// late is small.
TEST(LibraryRules, LibraryStaysLoaded) {
  const std::string dynamic = output_of("readelf -dW '" + std::string(JITUNWIND_SHARED) + "'");
  EXPECT_TRUE(has_match(dynamic, Pattern("FLAGS_1.* NODELETE"))) << dynamic;
}

/// The names of pthreads(7), "Cancellation points": those that must be, and of those that may be the functions that
/// read and write. pthread_join() is exempt, because OwnThread disables cancelling around it.
TEST(LibraryRules, NothingIsACancellationPoint) {
  const Pattern points(
      R"((accept4?|clock_nanosleep|close|connect|creat|fcntl|fdatasync|fsync|getms?g|lockf|mq_\w+|msgrcv|msgsnd|msync|)"
      R"(nanosleep|open(at)?|pause|poll|pread|pselect|pthread_(cond_\w*wait|testcancel)|pwrite|p?readv|p?writev|)"
      R"(read|recv\w*|select|sem_\w*wait|send\w*|sig(pause|suspend|\w*wait\w*)|u?sleep|system|tcdrain|wait\w*|)"
      R"(write|fopen|fclose|fgets|fputs|fprintf|f?puts|printf|fread|fwrite|fflush|getline|opendir|readdir)(64)?(@.*)?)");
  EXPECT_TRUE(matches("open64@GLIBC_2.2.5", points) && !matches("reallocarray", points));
  for (const std::string library : k_shared_libraries) {
    // The C++ run-time library in it reads files if somebody asks for random numbers, and writes before it aborts.
    const std::string file = library == JITUNWIND_LISTEN_SHARED ? JITUNWIND_LISTEN_STATIC
                             : library == JITUNWIND_GDB_SHARED  ? JITUNWIND_GDB_STATIC
                                                                : "-D' '" + library;
    std::istringstream names(output_of("nm --undefined-only --format=just-symbols '" + file + "'"));
    unsigned count = 0;
    for (std::string name; std::getline(names, name); ++count)
      EXPECT_FALSE(matches(name, points)) << name << " of " << file;
    EXPECT_GT(count, 2u) << file;
  }
}

/// A static local that one thread is making at a fork is never finished in the child, which would wait for it for ever.
/// The exception runtime makes its own at load.
TEST(LibraryRules, NoStaticLocalIsMadeAtItsFirstUse) {
  for (const std::string file : k_shared_libraries) {
    if (file.find("jitunwind-eh") != std::string::npos) continue;
    EXPECT_EQ(output_of("nm -D --undefined-only '" + file + "'").find("__cxa_guard_acquire"), std::string::npos)
        << file;
  }
}

#ifndef JITUNWIND_TEST_UNITED
/// A forked child registers by code whose memory comes from unwind_core/heap_internal.h, which says why.
TEST(LibraryRules, WritersNeitherThrowNorUseOperatorNew) {
  std::set<std::string> writers{"registration.cpp.o"};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(JITUNWIND_SOURCE_DIR) + "/dyn_info/registry"))
    if (entry.path().extension() == ".cpp") writers.insert(entry.path().filename().string() + ".o");
  std::set<std::string> seen;
  std::istringstream names(output_of("nm -A --undefined-only '" + std::string(JITUNWIND_STATIC) + "'"));
  const Pattern line_of_member(R"(.*:([^:]+):\s+[Uw] (\S+))");
  const Pattern of_the_cpp_library(R"(_Zn[aw].*|__cxa_(allocate_exception|throw)|_ZSt\d+__throw_.*)");
  for (std::string line; std::getline(names, line);) {
    Groups part;
    if (!matches(line, part, line_of_member) || !writers.contains(part[1])) continue;
    seen.insert(part[1]);
    EXPECT_FALSE(matches(part[2], of_the_cpp_library)) << line;
  }
  EXPECT_GT(seen.size(), writers.size() / 2) << "of which the others use nothing";
}
#endif

/// Data that is called through cannot be overwritten once a library is loaded.
TEST(LibraryRules, RelocatedDataAreReadOnly) {
  for (const std::string file : k_shared_libraries) {
    EXPECT_NE(output_of("readelf -lW '" + file + "'").find("GNU_RELRO"), std::string::npos) << file;
    EXPECT_NE(output_of("readelf -dW '" + file + "'").find("NOW"), std::string::npos) << file;
  }
}

/// Returns the files whose note lacks landing pads or shadow stacks, in readelf's output for several files.
std::vector<std::string> unprotected(const std::string& notes) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(notes)) {
    if (line.rfind("File: ", 0) == 0)
      found.push_back(line.substr(6));
    else if (!found.empty() && line.find("x86 feature: IBT, SHSTK") != std::string::npos)
      found.pop_back();
  }
  return found;
}

/// An object without the note removes it from the whole library, and a library from the whole program (x86-64 psABI,
/// "Program Property").
TEST(LibraryRules, ObjectsAndLibrariesAreMarkedForIndirectBranchesAndShadowStacks) {
  EXPECT_EQ(unprotected("File: a\n x86 feature: IBT, SHSTK\nFile: b\nFile: c\n x86 feature: SHSTK\n").size(), 2u);
  std::ifstream words(JITUNWIND_LAYER_OBJECTS);
  std::string files;
  std::size_t assembled = 0;
  for (std::string word; words >> word;) {
    if (word.find(".o") == std::string::npos || word.find("/jitstack") != std::string::npos) continue;  // a program
    files += " '" + word + "'";
    if (word.find(".S.o") != std::string::npos) ++assembled;
  }
  EXPECT_GT(assembled, 4u);
  EXPECT_EQ(rules::joined(unprotected(output_of("readelf -nW" + files))), "");

  std::string libraries = JITUNWIND_SHARED_LIBRARIES;
  std::replace(libraries.begin(), libraries.end(), ':', ' ');
  EXPECT_EQ(rules::joined(unprotected(output_of("readelf -nW " + libraries))), "");
  // The C library's own beginning of an _init may lack a landing pad.
  EXPECT_EQ(output_of("readelf -dW " + libraries).find("(INIT)"), std::string::npos);
}

TEST(LibraryRules, ThreadLocalsAreInitialExecAndSmall) {
  const std::string file = JITUNWIND_SHARED;
  const std::string relocations = output_of("readelf -rW '" + file + "'");
  EXPECT_EQ(relocations.find("DTPMOD"), std::string::npos);
  EXPECT_EQ(relocations.find("TLSDESC"), std::string::npos);
  Groups tls;
  const std::string segments = output_of("readelf -lW '" + file + "'");
  // TLS  offset  virtual-address  physical-address  file-size  memory-size
  if (has_match(segments, tls, Pattern(R"(\n\s*TLS(\s+0x[0-9a-f]+){4}\s+0x([0-9a-f]+))"))) {
    EXPECT_LT(std::stoul(tls[2], nullptr, 16), 256u);
  } else {
    EXPECT_EQ(relocations.find("TPOFF"), std::string::npos) << "thread-locals without a segment";
  }
}

}  // namespace
