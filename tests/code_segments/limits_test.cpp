// Code in segments at the limits of folders, files, disks and memory.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/code_segments/code_folder_p.h"
#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"
#include "tests/code_segments/committed.h"
#include "tests/code_segments/in_child.h"
#include "tests/code_segments/symbols_of.h"
#include "tests/support/allowed_calls.h"
#include "tests/support/command.h"
#include "tests/support/failing_memory.h"

namespace jitunwind::test {
namespace {

/// Another user who owns a folder of the path may replace those in it. A user namespace without root shows root's
/// folders as those of a user whom it does not know.
TEST(CodeSegmentsProcess, FoldersOfOtherUsersDoNotServe) {
  if (::geteuid() != 0 || k_is_sanitized) return;  // only root gives folders away
  constexpr uid_t k_user = 1000, k_other = 1001;
  const TemporaryFolder place;
  const std::string own = place / "own";
  ASSERT_EQ(::mkdir(own.c_str(), S_IRWXU), 0);
  ASSERT_EQ(::chown(own.c_str(), k_user, k_user), 0);
  const auto reason = [&] {
    const auto opened = CodeFolder::open(own, FilesAtEnd::removed);
    return opened ? (::rmdir(opened->path.c_str()), std::string()) : opened.error().what;
  };
  const auto of_user = [&](std::string_view expected, bool has_root) {
    return in_child(own, [&] {
      if (::setresuid(k_user, k_user, k_user) != 0 || ::prctl(PR_SET_DUMPABLE, 1) != 0) return 1;
      if (!has_root) {
        if (::unshare(CLONE_NEWUSER) != 0) return 0;  // not everybody may
        std::ofstream map("/proc/self/uid_map");
        if (!(map << "0 " << k_user << " 1" << std::flush) || ::geteuid() != 0) return 2;
      }
      return reason() == expected ? 0 : 3;
    });
  };
  ASSERT_EQ(::chmod(place.path().c_str(), 0755), 0);
  EXPECT_EQ(reason(), "others may replace what is in the folder");
  EXPECT_EQ(of_user("", true), 0);
  EXPECT_EQ(of_user("", false), 0);
  ASSERT_EQ(::chown(place.path().c_str(), k_other, k_other), 0);
  EXPECT_EQ(of_user("others may replace a folder above the folder", true), 0);
}

/// Makes code while segments cannot be renewed: it runs and is named, and nothing is lost.
int go_on_without_new_files(CodeSegments& segments, Addr start, const char* why) {
  const Status sealed = segments.seal();
  if (sealed || std::string(sealed.error().what) != why) return 11;
  Addr next = commit_frame(segments, "next");
  // A commit renews when the time has come, which a slow seal() puts off.
  for (int i = 0; i < 200 && segments.status().refused < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    if (!segments.release(next)) return 17;
    next = commit_frame(segments, "next");
  }
  for (const Addr one : {start, next})
    if (call(one, k_identity, &segments) != &segments || LibgccSearch()(one + 1) != one) return 12;
  if (symbol_at(start) != std::string("before") || symbol_at(next) != std::string("next")) return 13;
  const CodeSegmentsStatus status = segments.status();
  if (status.published != 2 || status.sealed != 0 || status.refused < 2) return 14;
  if (status.latest_refusal.what != std::string(why)) return 15;
  return segments.release(start) && segments.release(next) ? 0 : 16;
}

/// The kernel would end the program by SIGXFSZ.
TEST(CodeSegmentsProcess, LimitsOfTheSizeOfFilesAreKept) {
  constexpr rlimit k_small{4096, 4096};
  const std::string why = "the process may make no file of that size (RLIMIT_FSIZE)";
  EXPECT_EQ(in_child("/tmp",
                     [&] {
                       if (::setrlimit(RLIMIT_FSIZE, &k_small) != 0) return 1;
                       CodeSegments segments;
                       const Addr start = commit_frame(segments, "hidden");
                       if (call(start, k_identity, &segments) != &segments) return 2;
                       const CodeSegmentsStatus status = segments.status();
                       if (status.files != 0 || status.functions != 1) return 3;
                       return status.latest_refusal.what == why ? 0 : 4;
                     }),
            0);
  EXPECT_EQ(in_child("/tmp",
                     [&] {
                       CodeSegments segments;
                       const Addr start = commit_frame(segments, "before");
                       if (::setrlimit(RLIMIT_FSIZE, &k_small) != 0) return 1;
                       return go_on_without_new_files(segments, start, why.c_str());
                     }),
            0);
}

/// The filter ends the process when a thread starts, which would open the next segment.
TEST(CodeSegmentsProcess, NothingIsPublishedAheadOfASegmentThatIsEmpty) {
  EXPECT_EQ(in_child("/tmp",
                     [] {
                       constexpr rlimit k_small{4096, 4096};
                       auto filter = answers(std::array{unsigned{SYS_clone}, unsigned{SYS_clone3}},
                                             SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
                       if (::setrlimit(RLIMIT_FSIZE, &k_small) != 0 || !install(filter)) return 1;
                       CodeSegments segments;
                       return segments.allocate(16) ? 0 : 2;
                     }),
            0);
}

/// More code than 32 bits count. Files would need disk for all of it, so that only the memory's addresses are taken.
TEST(CodeSegmentsProcess, FiveGiBOfCode) {
  constexpr std::size_t k_gib = std::size_t{1} << 30;
  constexpr rlimit k_small{std::size_t{64} << 20, std::size_t{64} << 20};
  EXPECT_EQ(in_child("/tmp",
                     [&] {
                       if (::setrlimit(RLIMIT_FSIZE, &k_small) != 0) return 1;
                       CodeSegments segments;
                       if (segments.allocate(k_gib + 1) || segments.allocate(~std::size_t{0})) return 2;
                       std::vector<Addr> starts;
                       for (int i = 0; i < 5; ++i) {
                         const auto room = segments.allocate(k_gib);
                         if (!room && room.error().code == ErrorCode::out_of_memory) break;  // a small machine
                         if (!room || room->writable.size() != k_gib) return 3;
                         std::byte* const end = room->writable.data() + k_gib - sizeof FrameCode::k_bytes;
                         std::memcpy(room->writable.data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes);
                         std::memcpy(end, FrameCode::k_bytes, sizeof FrameCode::k_bytes);
                         const Description description = frame_description("large");
                         if (!segments.commit(description, {.start = room->start, .size = k_gib})) return 4;
                         for (const Addr at : {room->start, room->start + k_gib - sizeof FrameCode::k_bytes})
                           if (call(at, k_identity, &segments) != &segments) return 5;
                         starts.push_back(room->start);
                       }
                       const Addr small = commit_frame(segments, "small");
                       if (symbol_at(small) != std::string("small")) return 6;
                       const CodeSegmentsStatus status = segments.status();
                       if (status.functions != starts.size() + 1 || status.published != 1) return 7;
                       for (const Addr start : starts) {
                         if (registered_name(start + k_gib - 1) != std::string("large")) return 8;
                         if (!segments.release(start) || !registered_name(start).empty()) return 9;
                       }
                       return segments.status().segments == 1 ? 0 : 10;
                     }),
            0);
}

/// The folders are right, and the process has no more addresses, as one that has more code than it may map.
TEST(CodeSegmentsProcess, LimitsOfMemoryAreNoFoldersFault) {
  if (k_is_sanitized) return;  // they map terabytes
  constexpr std::size_t k_gib = std::size_t{1} << 30;
  EXPECT_EQ(in_child("/tmp",
                     [] {
                       std::size_t pages = 0;
                       std::ifstream("/proc/self/statm") >> pages;
                       const rlim_t bytes = pages * static_cast<rlim_t>(::getpagesize()) + k_gib / 4;
                       const rlimit limit{bytes, bytes};
                       CodeSegments segments({.text_bytes = k_gib});
                       if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
                       const auto room = segments.allocate(16);
                       if (room || room.error().code != ErrorCode::out_of_memory) return 2;
                       const std::string why = segments.status().latest_refusal.what;
                       return why == "the process has no more memory for mappings" ? 0 : 3;
                     }),
            0);
}

/// Somebody removed the file, or the whole folder.
TEST(CodeSegmentsProcess, FilesThatVanishAreNotReplaced) {
  for (const bool removes_folder : {false, true}) {
    const TemporaryFolder folder;
    EXPECT_EQ(in_child(folder.path(),
                       [&] {
                         CodeSegments segments;
                         const Addr start = commit_frame(segments, "before");
                         for (const auto& file : std::filesystem::directory_iterator(segments.status().folder))
                           std::filesystem::remove(file.path());
                         if (removes_folder) std::filesystem::remove(segments.status().folder);
                         return go_on_without_new_files(segments, start,
                                                        removes_folder
                                                            ? "no new file can be made in the folder"
                                                            : "the file cannot have the name of the former one");
                       }),
              0)
        << removes_folder;
    EXPECT_EQ(folders_in(folder.path()), 0u);
  }
}

/// Refuses to give a file single pages, as older kernels do. False: the filter is not installed.
bool refuse_single_pages(unsigned error) {
  constexpr unsigned k_populate_write = 23;  // MADV_POPULATE_WRITE
  sock_filter filter[]{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
                       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k_populate_write, 0, 1),
                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return install(filter);
}

/// The file gets all pages at once, by another call.
TEST(CodeSegmentsProcess, FilesHaveAllPagesWhereTheKernelGivesNoSinglePages) {
  for (const unsigned error : {EINVAL, EPERM}) {
    for (const bool is_later : {false, true}) {  // when the segment has grown already
      EXPECT_EQ(in_child("/tmp",
                         [=] {
                           if (!is_later && !refuse_single_pages(error)) return 1;
                           CodeSegments segments({.functions = 2048});
                           if (symbol_at(commit_frame(segments, "seen")) != std::string("seen")) return 2;
                           if (is_later && !refuse_single_pages(error)) return 1;
                           for (int i = 0; i < 1000; ++i)
                             if (symbol_at(commit_frame(segments, std::to_string(i))) != std::to_string(i)) return 3;
                           return segments.status().refused == 0 && segments.status().files == 1 ? 0 : 4;
                         }),
                0)
          << error << is_later;
    }
  }
}

/// A file that gets no pages any more has a reason, which is not the disk's. Names that are too long for the pages that
/// it has are missing.
TEST(CodeSegmentsProcess, FilesThatGetNoMorePagesStayAsTheyAre) {
  EXPECT_EQ(in_child("/tmp",
                     [] {
                       CodeSegments segments;
                       std::vector<Addr> rooms;
                       for (int i = 0; i < 100; ++i) rooms.push_back(segments.allocate(64)->start);
                       if (!refuse({SYS_fallocate}, EPERM) || !refuse_single_pages(EPERM)) return 1;
                       for (const Addr room : rooms) {
                         const std::string name(499, 'x');
                         if (!segments.commit(frame_description("long"), {.start = room, .size = 64, .name = name}))
                           return 2;
                       }
                       const CodeSegmentsStatus status = segments.status();
                       if (status.functions != 100 || status.published + status.refused != 100) return 3;
                       if (status.published < 10 || status.refused < 10) return 4;
                       const std::string why = status.latest_refusal.what;
                       return why == "the folder's file system allocates no room ahead" ? 0 : 5;
                     }),
            0);
}

/// The segment ahead of a large one takes no disk that the program may never need.
TEST(CodeSegmentsProcess, LargeSegmentsTakePagesAsTheyGrow) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child(folder.path(),
                     [] {
                       ::setenv("JITUNWIND_CODE_FILES", "keep", 1);
                       std::optional<CodeSegments> segments(CodeSegmentsOptions{std::size_t{64} << 20, 4});
                       for (int i = 0; i < 3; ++i) commit_frame(*segments, "one");
                       return segments.reset(), 0;  // the thread that opens segments ends first
                     }),
            0);
  std::vector<blkcnt_t> blocks;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    struct stat status {};
    if (entry.is_regular_file() && ::stat(entry.path().c_str(), &status) == 0) blocks.push_back(status.st_blocks);
  }
  ASSERT_EQ(blocks.size(), 2u);
  std::ranges::sort(blocks);
  EXPECT_LT(blocks[1] - blocks[0], (1 << 20) / 512);
}

/// More code than 32 bits count, in files. Disks give room ahead without writing to it.
TEST(CodeSegmentsProcess, FiveGiBOfCodeInFiles) {
  constexpr std::size_t k_gib = std::size_t{1} << 30, k_count = 5;
  constexpr long k_tmpfs = 0x01021994;  // keeps room ahead in memory
  const TemporaryFolder folder;
  struct statfs disk {};
  ASSERT_EQ(::statfs(folder.path().c_str(), &disk), 0);
  if (disk.f_type == k_tmpfs || disk.f_bavail * static_cast<std::size_t>(disk.f_bsize) < 8 * k_gib)
    GTEST_SKIP() << "the folder for temporary files has no room for gigabytes";
  EXPECT_EQ(in_child(folder.path(),
                     [&] {
                       if (!refuse_single_pages(EINVAL)) return 1;
                       CodeSegments segments({.changes_code = true});  // a sealed file would be written as a whole
                       std::vector<Addr> starts;
                       for (std::size_t i = 0; i < k_count; ++i) {
                         const auto room = segments.allocate(k_gib);
                         if (!room) return 2;
                         std::memcpy(room->writable.data() + k_gib - 64, FrameCode::k_bytes, sizeof FrameCode::k_bytes);
                         const std::string name = std::to_string(i);
                         const Code code{.start = room->start, .size = k_gib, .name = name};
                         if (!segments.commit(*host::describe("large").build(), code)) return 3;
                         starts.push_back(room->start);
                       }
                       const CodeSegmentsStatus status = segments.status();
                       if (status.published != k_count || status.files != k_count) return 4;
                       const LibgccSearch search;
                       for (std::size_t i = 0; i < k_count; ++i) {
                         const Addr end = starts[i] + k_gib;
                         if (symbol_at(end - 1) != std::to_string(i) || search(end - 1) != starts[i]) return 5;
                         if (call(end - 64, k_identity, &segments) != &segments) return 6;
                       }
                       for (const Addr start : starts)
                         if (!segments.release(start)) return 7;
                       return segments.status().files == 0 ? 0 : 8;
                     }),
            0);
}

/// A file that somebody cuts has no pages for the code, as that of any library. Code elsewhere goes on.
TEST(CodeSegmentsProcess, FilesThatAreCutTakeTheirCode) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child(folder.path(),
                     [&] {
                       ::signal(SIGBUS, [](int) { ::_exit(0); });
                       CodeSegments cut, whole;
                       const Addr gone = commit_frame(cut, "gone"), stays = commit_frame(whole, "stays");
                       Dl_info info{};
                       if (::dladdr(as_pointer(gone), &info) == 0 || ::truncate(info.dli_fname, 0) != 0) return 1;
                       if (call(stays, k_identity, &cut) != &cut || symbol_at(stays) != std::string("stays")) return 2;
                       call(gone, k_identity, &cut);
                       return 3;
                     }),
            0);
}

}  // namespace
}  // namespace jitunwind::test
