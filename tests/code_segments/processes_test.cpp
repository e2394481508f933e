// Code in segments when processes fork, exit and are killed, and without any folder for files.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/code_segments/committed.h"
#include "tests/code_segments/in_child.h"
#include "tests/code_segments/symbols_of.h"
#include "tests/support/allowed_calls.h"
#include "tests/support/command.h"
#include "tests/support/failing_memory.h"

namespace jitunwind::test {
namespace {

/// The child has the code of before, whatever the parent writes into its memory; it names and walks it.
TEST(CodeSegmentsProcess, ChildrenKeepTheCodeOfBefore) {
  CodeSegments segments;
  const auto room = segments.allocate(sizeof FrameCode::k_bytes);
  ASSERT_TRUE(room);
  std::memcpy(room->writable.data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes);
  const Description description = frame_description("before");
  ASSERT_TRUE(segments.commit(description, {.start = room->start, .size = sizeof FrameCode::k_bytes}));
  const Addr other = commit_frame(segments, "other");
  const std::string folder = segments.status().folder;

  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    ::close(go[1]);
    if (::read(go[0], &byte, 1) != 0) ::_exit(1);
    if (call(room->start, k_identity, go) != go) ::_exit(2);
    if (symbol_at(room->start) == nullptr || symbol_at(room->start) != std::string("before")) ::_exit(3);
    if (LibgccSearch()(room->start) != room->start) ::_exit(4);
    if (segments.status().published != 2 && segments.status().functions != 2) ::_exit(5);
    const Addr own = commit_frame(segments, "child's");
    if (symbol_at(own) != std::string("child's") || call(own, k_identity, go) != go) ::_exit(6);
    if (segments.status().folder == folder || !std::filesystem::exists(segments.status().folder)) ::_exit(7);
    if (!segments.release(room->start) || !segments.release(own)) ::_exit(8);
    std::exit(0);  // removes the child's files
  }
  ::close(go[0]);
  ASSERT_TRUE(segments.release(room->start));
  std::memset(room->writable.data(), 0, room->writable.size());
  ::close(go[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_EQ(folders_in(std::filesystem::path(folder).parent_path().string()) >= 1, true);
  EXPECT_TRUE(std::filesystem::exists(folder));
  EXPECT_STREQ(symbol_at(other), "other");
  EXPECT_EQ(commit_frame(segments, "later"), room->start);
}

TEST(CodeSegmentsProcess, ExitRemovesFilesAndTheNextStartThoseOfTheDead) {
  const TemporaryFolder folder;
  const auto leave_open = [] {
    alignas(CodeSegments) static std::byte memory[sizeof(CodeSegments)];
    auto* const segments = new (memory) CodeSegments;  // never destroyed
    commit_frame(*segments, "open");
    return segments;
  };
  EXPECT_EQ(in_child(folder.path(),
                     [&]() -> int {
                       if (leave_open()->status().folder.find(std::getenv("JITUNWIND_CODE_DIR")) != 0) return 1;
                       std::exit(0);
                     }),
            0);
  EXPECT_EQ(folders_in(folder.path()), 0u);
  EXPECT_EQ(in_child(folder.path(),
                     [&] {
                       leave_open();
                       ::raise(SIGKILL);
                       return 1;
                     }),
            128 + SIGKILL);
  EXPECT_EQ(folders_in(folder.path()), 1u);
  EXPECT_EQ(in_child(folder.path(),
                     [&]() -> int {
                       ::setenv("JITUNWIND_CODE_FILES", "keep", 1);
                       leave_open();
                       std::exit(0);
                     }),
            0);
  EXPECT_EQ(folders_in(folder.path()), 2u);
  std::filesystem::create_directory(folder / "jitunwind-code-of-somebody");
  std::filesystem::create_directory(folder / "jitunwind-code-1-2-3");  // of another namespace
  EXPECT_EQ(in_child(folder.path(),
                     [&] {
                       leave_open();
                       return folders_in(std::getenv("JITUNWIND_CODE_DIR")) == 3 ? 0 : 1;
                     }),
            0);
}

/// A process that executes another program has its number and its start time still. The next files that it makes take
/// the place of those of before.
TEST(CodeSegmentsProcess, ExecutedProgramsRemoveFilesOfBefore) {
  const TemporaryFolder folder;
  const auto execute = [&](const char* program, const char* argument) {
    return in_child(folder.path(), [&] {
      CodeSegments segments;
      commit_frame(segments, "before");
      if (folders_in(folder.path()) != 1) return 1;
      ::execl(program, program, argument, nullptr);
      return 2;
    });
  };
  EXPECT_EQ(execute("/bin/true", nullptr), 0);
  EXPECT_EQ(folders_in(folder.path()), 1u);
  EXPECT_EQ(execute(PUBLISHED, "true"), 0);
  EXPECT_EQ(folders_in(folder.path()), 0u);
}

/// The name of a process's folder, as it is if the process could not read its start time.
std::string name_without_time(pid_t process) {
  const std::string ns = std::filesystem::read_symlink("/proc/self/ns/pid").string();  // "pid:[4026531836]"
  return "jitunwind-code-" + ns.substr(5, ns.size() - 6) + "-" + std::to_string(process) + "-";
}

/// The number of a process that has ended.
pid_t gone_process() {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  return gone;
}

int publish_one() {
  CodeSegments segments;
  const Addr start = commit_frame(segments, "seen");
  return symbol_at(start) == std::string("seen") ? 0 : 1;
}

/// A process under a filter of system calls reads no start time: its folder's name has none. It is removed when no
/// process has the number.
TEST(CodeSegmentsProcess, FoldersWithoutAStartTimeAreRemovedWithTheProcess) {
  const TemporaryFolder place;
  const std::string of_this = name_without_time(::getpid()), of_gone = name_without_time(gone_process());
  for (const std::string& name : {of_this, of_gone}) EXPECT_EQ(::mkdir((place / name).c_str(), S_IRWXU), 0) << name;
  EXPECT_EQ(in_child(place.path(), publish_one), 0);
  EXPECT_TRUE(std::filesystem::exists(place / of_this));
  EXPECT_FALSE(std::filesystem::exists(place / of_gone));
}

/// Somebody's link has the name of the folder of a process that has ended. It leads to what is no such folder.
TEST(CodeSegmentsProcess, LinksByTheNameOfAFolderLoseNoFiles) {
  const TemporaryFolder place, elsewhere;
  std::ofstream(elsewhere / "precious") << "kept";
  const std::string link = place / name_without_time(gone_process());
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), link.c_str()), 0);
  EXPECT_EQ(in_child(place.path(), publish_one), 0);
  EXPECT_TRUE(std::filesystem::exists(elsewhere / "precious"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

/// Every one has a folder of its own in the user's, and cleans up behind itself.
TEST(CodeSegmentsProcess, ManyProcessesOfOneUserShareAFolder) {
  constexpr int k_processes = 64;
  const TemporaryFolder folder;
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < k_processes; ++i) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    ::setenv("JITUNWIND_CODE_DIR", folder.path().c_str(), 1);
    ::close(go[1]);
    char byte;
    if (::read(go[0], &byte, 1) != 0) ::_exit(1);  // all of them begin together
    CodeSegments segments({.text_bytes = 65536, .functions = 8});
    for (int n = 0; n < 40; ++n) {
      const std::string name = std::to_string(i) + " " + std::to_string(n);
      const Addr start = commit_frame(segments, name);
      if (symbol_at(start) != name || call(start, k_identity, go) != go) ::_exit(2);
      if (n % 3 == 0 && !segments.release(start)) ::_exit(3);
    }
    if (!segments.seal() || segments.status().refused != 0) ::_exit(4);
    ::_exit(segments.status().folder.find(folder.path()) == 0 ? (segments.~CodeSegments(), 0) : 5);
  }
  ::close(go[0]);
  ::close(go[1]);
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  }
  EXPECT_EQ(folders_in(folder.path()), 0u);
}

/// The dynamic linker cannot read the file.
TEST(CodeSegmentsProcess, NothingIsPublishedWhereLibrariesCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child(folder.path(),
                     [] {
                       if (!refuse({SYS_read}, EPERM)) return 1;
                       CodeSegments segments;
                       const Addr start = commit_frame(segments, "hidden");
                       if (call(start, k_identity, &segments) != &segments || symbol_at(start) != nullptr) return 2;
                       const CodeSegmentsStatus status = segments.status();
                       if (status.files != 0 || status.functions != 1) return 3;
                       const std::string why = status.latest_refusal.what;
                       return why == "the dynamic linker does not open the file" ? 0 : 4;
                     }),
            0);
}

/// A filter refuses one call of those that publishing makes. The code runs in any case, and nobody is told that it is
/// published if it is not.
TEST(CodeSegmentsProcess, NothingIsPublishedInPartWhereACallIsRefused) {
  for (const int call_number : {SYS_openat, SYS_mkdirat, SYS_fstat, SYS_fchmod, SYS_ftruncate, SYS_fallocate, SYS_read,
                                SYS_pread64, SYS_pwrite64, SYS_getdents64, SYS_readlinkat, SYS_utimensat, SYS_renameat,
                                SYS_renameat2, SYS_clone, SYS_gettid, SYS_clock_gettime}) {
    const TemporaryFolder folder;
    EXPECT_EQ(in_child(folder.path(),
                       [&] {
                         if (!refuse({static_cast<unsigned>(call_number)}, EPERM)) return 1;
                         CodeSegments segments({.text_bytes = 65536, .functions = 4});
                         std::vector<Addr> starts;
                         for (int i = 0; i < 10; ++i) starts.push_back(commit_frame(segments, "seen"));
                         const bool is_sealed = static_cast<bool>(segments.seal());
                         const CodeSegmentsStatus status = segments.status();
                         if (status.functions != 10) return 2;
                         if ((status.published != 10 || !is_sealed) && status.refused == 0) return 3;
                         std::size_t seen = 0;
                         for (const Addr start : starts) {
                           if (call(start, k_identity, &starts) != &starts) return 4;
                           const char* const name = symbol_at(start);
                           seen += name != nullptr && std::string(name) == "seen" && LibgccSearch()(start + 1) == start;
                         }
                         if (seen != status.published) return 5;
                         for (const Addr start : starts)
                           if (!segments.release(start)) return 6;
                         return 0;
                       }),
              0)
        << call_number;
  }
}

/// A process ends at a call that makes a file, or a new one in its place. Nobody finds half a file by a name of a whole
/// one.
TEST(CodeSegmentsProcess, FilesHaveTheirNamesWhenTheyAreWhole) {
  constexpr unsigned k_of_the_first = SYS_renameat;
  for (const unsigned call_number : {unsigned{SYS_ftruncate}, unsigned{SYS_madvise}, k_of_the_first,
                                     unsigned{SYS_pwrite64}, unsigned{SYS_renameat2}}) {
    if (k_is_sanitized && call_number == SYS_madvise) continue;  // their run-time libraries call it at any moment
    const TemporaryFolder folder;
    EXPECT_EQ(in_child(folder.path(),
                       [&] {
                         auto filter = answers(std::array{call_number}, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
                         if (!install(filter)) return 1;
                         CodeSegments segments;
                         commit_frame(segments, "seen");
                         return segments.seal() ? 2 : 3;
                       }),
              128 + SIGSYS)
        << call_number;
    std::size_t files = 0, whole = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      files += entry.is_regular_file();
      const bool is_for_readers = entry.path().extension() == ".so" || entry.path().extension() == ".first";
      if (!entry.is_regular_file() || !is_for_readers) continue;
      ++whole;
      EXPECT_EQ(run("eu-readelf --all --debug-dump=frames " + entry.path().string() + " 2>&1 >/dev/null").text, "");
    }
    EXPECT_GT(files, 0u) << call_number;
    EXPECT_EQ(whole > 0, call_number == SYS_pwrite64 || call_number == SYS_renameat2) << call_number;
  }
}

/// Each copy of this library has a file of its own in the process's folder, and goes with it.
TEST(CodeSegmentsProcess, CopiesOfThisLibraryShareAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child(folder.path(),
                     []() -> int {
                       using Commit = Addr (*)(const char* name);
                       std::vector<Commit> copies;
                       for (const char* const file : {JITUNWIND_COPY, JITUNWIND_OTHER_COPY}) {
                         void* const copy = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
                         if (copy == nullptr) return std::puts(::dlerror()), 1;
                         copies.push_back(reinterpret_cast<Commit>(::dlsym(copy, "commit_in_copy")));
                       }
                       const auto names = [&](const std::string& name) {
                         for (const Commit commit : copies) {
                           const Addr start = commit(name.c_str());
                           if (symbol_at(start) != name || LibgccSearch()(start + 1) != start ||
                               call(start, k_identity, &copies) != &copies)
                             return false;
                         }
                         return true;
                       };
                       if (!names("one") || !names("two")) return 2;
                       if (folders_in(std::getenv("JITUNWIND_CODE_DIR")) != 1) return 3;
                       const pid_t child = ::fork();
                       if (child == 0) std::exit(names("child's") ? 0 : 1);
                       int status = 0;
                       ::waitpid(child, &status, 0);
                       if (status != 0) return 4;
                       std::exit(names("three") ? 0 : 5);
                     }),
            0);
  EXPECT_EQ(folders_in(folder.path()), 0u);
}

/// A filter refuses what every file needs. The code runs, and the status says why nobody sees it.
TEST(CodeSegmentsProcess, NothingIsPublishedWithoutFiles) {
  EXPECT_EQ(in_child("/nowhere",
                     [] {
                       if (!refuse({SYS_ftruncate}, EPERM)) return 1;
                       CodeSegments segments({.text_bytes = 65536, .functions = 4});
                       for (int i = 0; i < 10; ++i) {
                         const Addr start = commit_frame(segments, "hidden");
                         if (call(start, k_identity, &segments) != &segments || symbol_at(start) != nullptr) return 2;
                         if (i >= 8 && !segments.release(start)) return 3;
                       }
                       const CodeSegmentsStatus status = segments.status();
                       if (status.files != 0 || status.published != 0 || !status.folder.empty()) return 4;
                       if (status.functions != 8 || status.segments < 2 || status.refused == 0) return 5;
                       const std::string why = status.latest_refusal.what;  // of this segment, or of one ahead
                       return why == "the file cannot have its size" || why == "the folder cannot be opened" ? 0 : 6;
                     }),
            0);
}

/// The last file of a folder takes it along, while another thread is about to make one in it.
TEST(CodeSegmentsProcess, FoldersThatGoAreMadeAnew) {
  EXPECT_EQ(in_child("/nowhere",
                     [] {
                       constexpr rlimit k_small{4096, 4096};  // files go as soon as they are made
                       if (::setrlimit(RLIMIT_FSIZE, &k_small) != 0) return 1;
                       std::atomic<bool> is_refused_for_its_folder{false};
                       const auto make = [&] {
                         for (int i = 0; i < 200; ++i) {
                           CodeSegments segments({.text_bytes = 65536, .functions = 4});
                           if (!segments.allocate(16)) return;
                           const std::string why = segments.status().latest_refusal.what;
                           if (why == "no file can be made in the folder") is_refused_for_its_folder = true;
                         }
                       };
                       std::thread other(make);
                       make();
                       other.join();
                       return is_refused_for_its_folder ? 2 : 0;
                     }),
            0);
}

}  // namespace
}  // namespace jitunwind::test
