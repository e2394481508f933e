// Names that dialects report, and their relation to call frame information.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <thread>

#include "jitunwind/adapters/listen/followers_p.h"
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/trace/log.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"
#include "tests/listen/told_section.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

void say(Addr begin, std::uint64_t size, std::string_view name) { say_name(Dialect::itt, {begin, begin + size}, name); }
void forget_all() { say_gone(Dialect::itt, {k_code, k_code + 0x10000}); }

/// Call frame information for 16 bytes at k_code, reported as a JIT does it.
class Told {
 public:
  Told() {
    frames_.fde(k_code, 16);
    frames_.section.terminator();
    begin_ = reinterpret_cast<const void*>(frames_.placed().begin);
    __register_frame(begin_);
  }
  ~Told() { take_back(); }
  void take_back() {
    if (begin_ != nullptr) __deregister_frame(begin_);
    begin_ = nullptr;
  }
  void protect(int protection) { ::mprotect(const_cast<void*>(begin_), 4096, protection); }

 private:
  EhFrame frames_;
  const void* begin_ = nullptr;
};

TEST(HeardNames, NameCodeThatNobodyDescribes) {
  const RegisteredCode code;
  say(k_code, 16, "alone");
  EXPECT_EQ(code.name_at(k_code), "alone");
  EXPECT_EQ(code.name_at(k_code + 15), "alone");
  EXPECT_EQ(code.name_at(k_code + 16), "");
  EXPECT_EQ(code.row_at(k_code), "no row") << "a name is no way to the caller";
  forget_all();
  EXPECT_EQ(code.name_at(k_code), "");
  EXPECT_EQ(registered(), 0u);
}

// covers: LS02
TEST(HeardNames, JoinFramesThatAreThere) {
  const RegisteredCode code;
  Told told;
  say(k_code, 64, "joined");  // some say the area
  EXPECT_EQ(code.name_at(k_code + 4), "joined");
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  EXPECT_EQ(code.row_at(k_code + 17), "no row");
  told.take_back();
  EXPECT_EQ(code.name_at(k_code + 4), "");
  EXPECT_EQ(code.row_at(k_code + 4), "no row");
  EXPECT_EQ(registered(), 0u);
}

TEST(HeardNames, JoinFramesThatComeLater) {
  const RegisteredCode code;
  say(k_code, 16, "first");
  Told told;
  EXPECT_EQ(code.name_at(k_code + 4), "first");
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  forget_all();
  EXPECT_EQ(code.name_at(k_code + 4), "");
  EXPECT_EQ(code.row_at(k_code + 4), k_row) << "the frames are still there";
  told.take_back();
  EXPECT_EQ(registered(), 0u);
}

/// The older call is taken back; the name is joined with the frames of the newer one.
TEST(HeardNames, StayWithTheFramesThatTheyAreJoinedWith) {
  const RegisteredCode code;
  Told older;
  say(k_code, 16, "joined");
  Told newer;
  older.take_back();
  EXPECT_EQ(code.name_at(k_code + 4), "joined");
  newer.take_back();
  EXPECT_EQ(code.name_at(k_code + 4), "");
  EXPECT_EQ(registered(), 0u);
}

/// A file in GDB's list may have frames of code and no name.
TEST(HeardNames, AreNotMadeOfNothing) {
  const Told told;
  say(k_code, 16, "");
  EXPECT_EQ(listen_status().names, 0u);
  say(k_code, 16, "named");
  say(k_code, 16, "");
  EXPECT_EQ(RegisteredCode().name_at(k_code + 4), "named");
  forget_all();
}

/// A description that an older source takes back is no longer the known one.
TEST(HeardNames, AreForgottenWithTheirOwnDescriptionAlone) {
  EhFrame older, newer;
  const Addr first = older.fde(k_code, 16) - older.section.section().address + older.placed().begin;
  const Addr second = newer.fde(k_code, 16) - newer.section.section().address + newer.placed().begin;
  const RegisteredCode code;
  describe_code({k_code, k_code + 16}, "older", first);
  describe_code({k_code, k_code + 16}, "newer", second);
  forget_description(k_code, first);
  EXPECT_EQ(code.name_at(k_code + 4), "newer");
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  forget_description(k_code, second);
  EXPECT_EQ(registered(), 0u);
}

/// Frames that were told to libgcc are probed before they are read, also those that a second name finds by the first:
/// other registered code is found there by that time.
TEST(HeardNames, KeepFramesThatWereToldAsSuch) {
  const RegisteredCode code;
  Told told;
  say(k_code, 16, "first");
  unw_dyn_info_t other = procedure_of_fde({k_code - 16, k_code + 16}, 0);
  ASSERT_TRUE(register_procedure(&other));
  say(k_code, 16, "second");
  ASSERT_TRUE(cancel_procedure(&other));
  EXPECT_EQ(code.name_at(k_code + 4), "second");
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  told.protect(PROT_NONE);
  EXPECT_TRUE(code.row_at(k_code + 4).starts_with("error: ")) << code.row_at(k_code + 4);
  told.protect(PROT_READ | PROT_WRITE);
  told.take_back();
  EXPECT_EQ(registered(), 0u);
}

TEST(HeardNames, KeepNoFramesOfLongerCode) {
  EhFrame frames;
  const Addr fde = frames.fde(k_code, 16) - frames.section.section().address;
  const RegisteredCode code;
  describe_code({k_code, k_code + 16}, "described", frames.placed().begin + fde);
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  say(k_code, 8, "shorter");
  EXPECT_EQ(code.name_at(k_code + 4), "shorter");
  EXPECT_EQ(code.row_at(k_code + 4), "no row");
  forget_all();
}

TEST(HeardNames, AreTheNewestOfTheSameCode) {
  const RegisteredCode code;
  say(k_code, 16, "old");
  say(k_code + 0x20, 16, "beside");
  say(k_code, 16, "new");
  EXPECT_EQ(code.name_at(k_code + 4), "new");
  say(k_code + 8, 0x20, "over both");
  EXPECT_EQ(code.name_at(k_code + 4), "") << "its code is other code now";
  EXPECT_EQ(code.name_at(k_code + 0x27), "over both");
  EXPECT_EQ(code.name_at(k_code + 0x28), "");
  EXPECT_EQ(listen_status().names, 1u);
  forget_all();
  EXPECT_EQ(listen_status().names, 0u);
  EXPECT_EQ(registered(), 0u);
}

TEST(HeardNames, RefuseWhatIsNoCodeOfAJit) {
  const auto before = listen_status().refused;
  say(k_code, 0, "empty");
  say_name(Dialect::itt, {k_code, k_code - 1}, "inverted");
  say(k_code, std::uint64_t{1} << 40, "all that there is");
  say(reinterpret_cast<std::uintptr_t>(&std::fopen), 16, "not fopen");
  EXPECT_EQ(listen_status().refused, before + 4);
  EXPECT_EQ(registered(), 0u);
}

/// V8 names each of its two thousand builtins in its perf map, although they are code of the program.
TEST(HeardNames, AreRefusedForOneReasonInFewLinesOfTheLog) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int before = log_fd();
  set_log(static_cast<std::uint32_t>(LogTopic::registry), ends[1]);
  for (Addr i = 1; i <= 40; ++i) note_unheard({ErrorCode::e_range, i, "one reason"});
  note_unheard({ErrorCode::e_range, 0x41, "another one"});
  set_log(0, before);
  ::close(ends[1]);
  std::string log, expected;
  char bytes[4096];
  for (ssize_t size = 0; (size = ::read(ends[0], bytes, sizeof bytes)) > 0;)
    log.append(bytes, static_cast<std::size_t>(size));
  ::close(ends[0]);
  const std::string begin = "jitunwind registry: not heard: e_range, ";
  for (const char* at : {"1", "2", "3", "4", "5", "6", "7", "8"}) expected += begin + "one reason, at 0x" + at + "\n";
  expected += begin + "one reason, at 0x10, 16 times so far\n" + begin + "one reason, at 0x20, 32 times so far\n";
  EXPECT_EQ(log, expected + begin + "another one, at 0x41\n");
}

/// If the loader's segments are far apart, the kernel maps other memory between them.
TEST(HeardNames, MayBeOfCodeBetweenThePartsOfAModule) {
  void* const library = ::dlopen(LIST_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  link_map* map = nullptr;
  ASSERT_EQ(::dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
  const Addr begin = map->l_addr;
  const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(map->l_addr);
  const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(map->l_addr + header->e_phoff);
  const auto first = std::find_if(segments, segments + header->e_phnum,
                                  [](const ElfW(Phdr) & segment) { return segment.p_type == PT_LOAD; });
  constexpr Addr k_page = 65536;  // the largest of any CPU
  const Addr between = begin + (first->p_vaddr + first->p_memsz + k_page - 1) / k_page * k_page;
  void* const page = reinterpret_cast<void*>(between);
  ASSERT_EQ(::mmap(page, k_page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), page);
  say(between, 16, "between");
  EXPECT_EQ(RegisteredCode().name_at(between + 4), "between");
  say_gone(Dialect::itt, {between, between + k_page});
  ::mmap(page, k_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ::dlclose(library);
  EXPECT_EQ(registered(), 0u);
}

TEST(HeardNames, AreNotHeardWhereNobodyListens) {
  listen(static_cast<std::uint32_t>(Dialect::frames));
  say(k_code, 16, "unheard");
  EXPECT_EQ(registered(), 0u);
  listen(k_silent_dialects);
}

TEST(HeardNames, HaveAnyBytes) {
  std::string name = "a\x01\xff b";
  say(k_code, 16, name);
  EXPECT_EQ(RegisteredCode().name_at(k_code), name);
  say(k_code, 16, std::string(100'000, 'n'));
  EXPECT_EQ(RegisteredCode().name_at(k_code), std::string(63, 'n'));
  forget_all();
}

// covers: LS10
TEST(HeardNames, AreForgottenWhereTheCodeIsUnmapped) {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Addr begin = reinterpret_cast<std::uintptr_t>(page);
  const RegisteredCode code;
  say(begin, 16, "gone");
  say(k_code, 16, "stays");
  ::munmap(page, 4096);
  for (int i = 0; i < 200 && listen_status().names != 1; ++i) say(k_code, 16, "stays");  // in the course of calls
  EXPECT_EQ(code.name_at(begin + 4), "");
  EXPECT_EQ(code.name_at(k_code + 4), "stays");
  forget_all();
  EXPECT_EQ(registered(), 0u);
}

/// Pieces that are near each other are checked together.
TEST(HeardNames, AreForgottenInTheMiddleOfOthers) {
  constexpr std::size_t k_page = 65536;  // the largest of any CPU
  void* const pages = ::mmap(nullptr, 3 * k_page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Addr begin = reinterpret_cast<std::uintptr_t>(pages);
  const RegisteredCode code;
  for (Addr at = begin; at != begin + 3 * k_page; at += k_page / 4) say(at, 16, "near");
  ::munmap(static_cast<std::byte*>(pages) + k_page, k_page);
  forget_unmapped_names(12);
  EXPECT_EQ(listen_status().names, 8u);
  EXPECT_EQ(code.name_at(begin + k_page - k_page / 4), "near");
  EXPECT_EQ(code.name_at(begin + k_page), "");
  EXPECT_EQ(code.name_at(begin + 2 * k_page), "near");
  ::munmap(pages, k_page);
  forget_unmapped_names(12);
  EXPECT_EQ(listen_status().names, 4u);
  ::munmap(static_cast<std::byte*>(pages) + 2 * k_page, k_page);
  forget_unmapped_names(12);
  EXPECT_EQ(registered(), 0u);
}

/// Waits for the thread that follows the map.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// covers: LS03
TEST(HeardNames, AreReadFromThePerfMapWhileItGrows) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  const RegisteredCode code;
  {
    std::ofstream map(path);
    listen(static_cast<std::uint32_t>(Dialect::maps));
    map << std::hex << k_code << " 10 first line\n" << k_code + 0x100 << " 10 half" << std::flush;
    EXPECT_TRUE(comes_true([&] { return code.name_at(k_code + 4) == "first line"; }));
    EXPECT_EQ(code.name_at(k_code + 0x100), "");
    map << " a line\nno line at all\n" << k_code << " 10 newer\n" << std::flush;
    EXPECT_TRUE(comes_true([&] { return code.name_at(k_code + 4) == "newer"; }));
    EXPECT_EQ(code.name_at(k_code + 0x100), "half a line");
    map << k_code + 0x200 << " 10 never finished" << std::flush;
    map << std::string(8, '.') << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // as read; it counts nowhere
  }
  std::ofstream(path) << std::hex << k_code << " 10 anew\n";  // cut, and written again
  EXPECT_TRUE(comes_true([&] { return code.name_at(k_code + 4) == "anew"; }));
  std::remove(path.c_str());
  listen(k_silent_dialects);
  forget_all();
  EXPECT_EQ(registered(), 0u);
}

/// Servers fork a process for each client, which makes code, too. The library's thread sleeps during this fork, after
/// it has read a name: gcc 12's address sanitizer takes the locks of its allocator into the child as they are.
// covers: LS12
TEST(HeardNames, AreReadByAForkedChildFromItsOwnPerfMap) {
  const std::string own_path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  std::ofstream(own_path) << std::hex << k_code + 0x100 << " 10 parent's\n";
  listen(static_cast<std::uint32_t>(Dialect::maps));
  EXPECT_TRUE(comes_true([] { return RegisteredCode().name_at(k_code + 0x104) == "parent's"; }));
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
    std::ofstream(path) << std::hex << k_code << " 10 child's\n" << std::flush;
    const bool known = comes_true([] { return RegisteredCode().name_at(k_code + 4) == "child's"; });
    std::remove(path.c_str());
    ::_exit(known ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(RegisteredCode().name_at(k_code + 4), "");
  std::remove(own_path.c_str());
  listen(k_silent_dialects);
  forget_all();
}

/// The library's thread does not follow them either; a listener starts it again.
TEST(HeardNames, AreFollowedByNoThreadInAForkedChildWhereNobodyListens) {
  listen(static_cast<std::uint32_t>(Dialect::maps));
  listen(k_silent_dialects);
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto all = threads();  // an emulator has some of its own, in the child as well
  const pid_t child = ::fork();
  if (child == 0) {
    if (threads() != all - 1) ::_exit(1);
    listen(static_cast<std::uint32_t>(Dialect::maps));
    ::_exit(threads() == all ? 0 : 2);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(HeardNames, AreNotReadFromThePerfMapWhereNobodyListens) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  const RegisteredCode code;
  listen(static_cast<std::uint32_t>(Dialect::maps));
  EXPECT_NE(listen_status().dialects & static_cast<std::uint32_t>(Dialect::frames), 0u) << "maps have no personalities";
  listen(static_cast<std::uint32_t>(Dialect::itt));
  std::ofstream(path) << std::hex << k_code << " 10 unheard\n";
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // ten looks
  EXPECT_EQ(code.name_at(k_code + 4), "");
  listen(static_cast<std::uint32_t>(Dialect::maps));
  EXPECT_TRUE(comes_true([&] { return code.name_at(k_code + 4) == "unheard"; }));
  std::remove(path.c_str());
  listen(k_silent_dialects);
  forget_all();
}

/// The thread forgets them without any call.
TEST(HeardNames, AndFramesAreForgottenByTheThreadThatFollows) {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Addr begin = reinterpret_cast<std::uintptr_t>(page);
  EhFrame frames;
  frames.fde(begin, 16);
  frames.section.terminator();
  const void* const told = reinterpret_cast<const void*>(frames.placed().begin);
  __register_frame(told);
  say(begin + 0x100, 16, "named");
  EXPECT_EQ(registered(), 2u);
  ::munmap(page, 4096);
  listen(static_cast<std::uint32_t>(Dialect::maps));
  EXPECT_TRUE(comes_true([] { return listen_status().procedures == 0; }));
  EXPECT_TRUE(comes_true([] { return listen_status().names == 0; }));
  listen(k_silent_dialects);
  __deregister_frame(told);
}

/// The library's thread handles none of the program's signals: it has a small stack, and the program does not know it.
TEST(HeardNames, AreFollowedByAThreadThatTakesNoSignals) {
  listen(static_cast<std::uint32_t>(Dialect::maps));
  listen(k_silent_dialects);
  std::size_t others = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() == std::to_string(::gettid())) continue;
    const std::string name = "SigBlk:\t";
    for (const std::string& line : lines_of(text_of_file(entry.path() / "status"))) {
      if (!line.starts_with(name)) continue;
      ++others;
      EXPECT_NE(std::stoull(line.substr(name.size()), nullptr, 16) >> (SIGPROF - 1) & 1, 0u);
    }
  }
  EXPECT_GE(others, 1u);
}

/// Another kind of file is in the place of the perf map.
TEST(HeardNames, AreNotReadOfWhatIsNoFile) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  const RegisteredCode code;
  MapFollower follower;
  const auto look_and_remove = [&] {
    ::alarm(60);  // opening a pipe would wait for a writer
    follower.look();
    ::alarm(0);
    std::remove(path.c_str());
  };
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  look_and_remove();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  look_and_remove();
  ASSERT_EQ(::symlink(path.c_str(), path.c_str()), 0);
  look_and_remove();
  EXPECT_EQ(registered(), 0u);
  std::ofstream(path) << std::hex << k_code << " 10 file\n";
  follower.look();
  EXPECT_EQ(code.name_at(k_code + 4), "file");
  ASSERT_EQ(std::remove(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // after it was one
  look_and_remove();
  forget_all();
}

/// Others may have put a link there, to a file of this process's owner.
TEST(HeardNames, AreNotReadThroughALink) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map", elsewhere = path + ".elsewhere";
  std::ofstream(elsewhere) << std::hex << k_code << " 10 elsewhere\n";
  ASSERT_EQ(::symlink(elsewhere.c_str(), path.c_str()), 0);
  const RegisteredCode code;
  MapFollower follower;
  follower.look();
  EXPECT_EQ(code.name_at(k_code + 4), "");
  ASSERT_EQ(std::rename(elsewhere.c_str(), path.c_str()), 0);
  follower.look();
  EXPECT_EQ(code.name_at(k_code + 4), "elsewhere") << "and no link";
  std::remove(path.c_str());
  forget_all();
}

TEST(HeardNames, AreNotReadOfFilesOfOthers) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  std::ofstream(path) << "text\n";
  std::size_t bytes = 0;
  const auto read = [&](uid_t owner) {
    GrowingFile file(path);
    (void)file.read(
        ~std::uint64_t{0}, owner, [&](std::span<const std::byte> piece) { bytes += piece.size(); }, [] {});
  };
  read(::geteuid() + 1);
  EXPECT_EQ(bytes, 0u);
  read(::geteuid());
  EXPECT_EQ(bytes, 5u);
  std::ofstream(path) << std::hex << k_code << " 10 named\n";
  const RegisteredCode code;
  MapFollower follower;
  follower.look(::geteuid() + 1);
  EXPECT_EQ(code.name_at(k_code + 4), "");
  follower.look();
  EXPECT_EQ(code.name_at(k_code + 4), "named");
  std::remove(path.c_str());
  forget_all();
}

/// The next file often gets the inode number of a removed one.
TEST(HeardNames, AreReadOfAFileFromItsBeginThatTookThePlaceOfAShorterOne) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  GrowingFile file(path);
  std::string text = "text";
  for (int i = 0; i < 10; ++i) {
    text += "more";
    std::ofstream(path) << text;
    std::string read;
    const auto take = [&](std::span<const std::byte> piece) {
      read.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    };
    (void)file.read(~std::uint64_t{0}, ::geteuid(), take, [] {});
    EXPECT_EQ(read, text);
    std::remove(path.c_str());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a tick of the file system's clock and more
  }
}

TEST(HeardNames, HaveLinesAsLongAsTheCodeIsTheSame) {
  const auto line = [](Addr at) {
    const auto found = heard_line(at);
    return found ? found->file + ":" + std::to_string(found->line) : "none";
  };
  const ToldLine told[] = {{0, 7, "a.js"}, {4, 8, "a.js"}};
  say_lines(Dialect::itt, k_code, told);
  EXPECT_EQ(line(k_code), "none") << "of no name";
  say(k_code, 16, "function");
  say_lines(Dialect::itt, k_code, told);
  EXPECT_EQ(line(k_code + 3), "a.js:7");
  EXPECT_EQ(line(k_code + 15), "a.js:8");
  EXPECT_EQ(line(k_code + 16), "none");
  say(k_code, 16, "renamed");
  EXPECT_EQ(line(k_code + 4), "a.js:8");
  say(k_code, 8, "other code");
  EXPECT_EQ(line(k_code + 4), "none");
  say_lines(Dialect::itt, k_code, told);
  forget_all();
  EXPECT_EQ(line(k_code + 4), "none");
}

}  // namespace
}  // namespace jitunwind::test
