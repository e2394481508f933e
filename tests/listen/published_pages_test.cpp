// Files that are laid over code while threads run it, write to it, unmap it, and fork.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/publish/mapping_gate_p.h"
#include "jitunwind/sdk/published_pages_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"
#include "number_code.h"
#include "tests/support/allowed_calls.h"
#include "tests/support/command.h"
#include "tests/support/jit_frame.h"

namespace {

/// Calls before and after a file is mapped over code.
struct AtMapping {
  std::function<void()> before, after;
};
AtMapping at_mapping;

}  // namespace

/// Takes the place of the library's own, which is weak.
extern "C" void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  const bool lays_over = (flags & MAP_FIXED) != 0 && file >= 0;
  const AtMapping now = lays_over ? std::exchange(at_mapping, {}) : AtMapping();
  if (now.before) now.before();
  void* const mapped = reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, offset));
  if (now.after) now.after();
  return mapped;
}

namespace jitunwind::test {
namespace {

const auto k_page = static_cast<std::size_t>(::getpagesize());

Mappings own_mappings() { return Mappings::parse(ProcessFolder(::getpid()).read("maps").value_or("")); }

/// Pages of functions that return a number, as a JIT has them. The C library's functions are this library's.
class JitPages {
 public:
  explicit JitPages(std::size_t pages, int flags = MAP_PRIVATE) : size_(pages * k_page) {
    memory_ = static_cast<std::byte*>(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0));
    for (std::size_t at = 0; at < size_; at += k_page)
      std::memcpy(memory_ + at, NumberCode::k_bytes, sizeof NumberCode::k_bytes);
    ::mprotect(memory_, size_, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(reinterpret_cast<char*>(memory_), reinterpret_cast<char*>(memory_ + size_));
  }
  ~JitPages() {
    say_gone(Dialect::itt, pages());
    ::munmap(memory_, size_);
  }
  JitPages(const JitPages&) = delete;
  JitPages& operator=(const JitPages&) = delete;

  std::byte* begin() const { return memory_; }
  Addr address(std::size_t page = 0) const { return reinterpret_cast<std::uintptr_t>(memory_ + page * k_page); }
  AddrRange pages() const { return {address(), address() + size_}; }
  AddrRange code(std::size_t page) const { return {address(page), address(page) + sizeof NumberCode::k_bytes}; }
  std::vector<AddrRange> all_code() const {
    std::vector<AddrRange> all;
    for (std::size_t page = 0; page * k_page < size_; ++page) all.push_back(code(page));
    return all;
  }
  void name(std::size_t page, std::string_view name) const { say_name(Dialect::itt, code(page), name); }
  unsigned call(std::size_t page = 0) const { return reinterpret_cast<unsigned (*)()>(memory_ + page * k_page)(); }
  /// Patches the code as a JIT does.
  void patch(unsigned number, std::size_t page = 0) const {
    std::byte* const at = memory_ + page * k_page;
    ::mprotect(at, k_page, PROT_READ | PROT_WRITE | PROT_EXEC);
    NumberCode::patch(at, number);
    ::mprotect(at, k_page, PROT_READ | PROT_EXEC);
  }
  /// Makes all pages writable, as those of a JIT whose code always is.
  void make_writable() const { ::mprotect(memory_, size_, PROT_READ | PROT_WRITE | PROT_EXEC); }
  void write(unsigned number) const { NumberCode::patch(memory_, number); }
  /// The file that is mapped there; "": none.
  std::string file(std::size_t page = 0) const {
    const Mappings mappings = own_mappings();
    const Mapping* const mapping = mappings.find(address(page));
    return mapping == nullptr ? "" : mapping->path;
  }

 private:
  std::byte* memory_;
  std::size_t size_;
};

PublishedPages made(const JitPages& pages) {
  Result<PublishedPages> file = PublishedPages::make(pages.pages(), pages.all_code(), own_mappings());
  if (!file) throw std::runtime_error(file.error().text());
  return *std::move(file);
}

Status lay_over(PublishedPages& file, PagesKind kind = {}) {
  for (;;) {
    const MappingMoment moment;
    if (moment.is_closed()) return file.lay_over(kind);
  }
}

TEST(PublishedPages, TwoThreadsRunThere) {
  constexpr std::size_t k_functions = 3;
  const JitPages pages(k_functions);
  PublishedPages file = made(pages);
  std::atomic<bool> ends{false};
  std::array<std::uint64_t, 2> calls{}, wrong{};
  const auto run = [&](std::size_t thread) {
    for (std::size_t page = thread; !ends; page = (page + 1) % k_functions)
      ++calls[thread], wrong[thread] += pages.call(page) != 0;
  };
  std::thread first(run, 0), second(run, 1);
  unsigned failed = 0;
  for (int i = 0; i < 20'000; ++i) failed += !lay_over(file);
  ends = true;
  first.join(), second.join();
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(wrong, (std::array<std::uint64_t, 2>{}));
  EXPECT_GT(calls[0] + calls[1], 1000u);
  EXPECT_EQ(pages.file(), file.path());
}

/// Lays files over pages whose code is changed and run by two threads, until it has happened more often than this.
void expect_that_nothing_is_lost(const JitPages& pages, unsigned least, const std::function<void(unsigned)>& change) {
  PublishedPages file = made(pages);
  std::atomic<bool> ends{false};
  std::atomic<unsigned> wrong{0}, changes{0};
  std::thread jit([&] {
    for (unsigned number = 1; !ends; ++number) {
      change(number);
      wrong += pages.call() != number;
      ++changes;
    }
  });
  std::thread runner([&] {
    for (unsigned before = 0; !ends;) {
      const unsigned now = pages.call();
      wrong += now < before;
      before = now;
    }
  });
  unsigned laid = 0;
  // On a busy machine the pages may be writable at most moments, or a call be under way.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int i = 0; (i < 1'000 || changes < 1'000 || laid <= least) && std::chrono::steady_clock::now() < limit; ++i) {
    const MappingMoment moment;
    if (!moment.is_closed()) continue;
    const Mappings mappings = own_mappings();
    const auto kind = may_be_laid_over(*mappings.find(pages.address()), true);
    if (kind) laid += bool(file.lay_over(*kind));
  }
  ends = true;
  jit.join(), runner.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(laid, least);
}

TEST(PublishedPages, WhatTheJitWritesIsNeverLost) {
  const JitPages pages(1);
  expect_that_nothing_is_lost(pages, 20, [&](unsigned number) { pages.patch(number); });
}

/// The child would share the former pages with nobody.
TEST(PublishedPages, AForkWaitsUntilTheFileIsMapped) {
  const JitPages pages(1);
  PublishedPages file = made(pages);
  std::thread other;
  std::atomic<bool> has_forked{false}, was_early{true};
  const auto fork_elsewhere = [&] {
    other = std::thread([&] {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      has_forked = true;
      ::waitpid(child, nullptr, 0);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  at_mapping = {fork_elsewhere, [&] { was_early = has_forked.load(); }};
  EXPECT_TRUE(lay_over(file));
  other.join();
  EXPECT_FALSE(was_early);
}

bool kernel_holds_up_writers() {
  const auto number = static_cast<int>(::syscall(SYS_userfaultfd, 1));
  return number >= 0 && ::close(number) == 0;
}

/// Nothing tells when it writes, but the kernel holds it up.
TEST(PublishedPages, WhatTheJitWritesWithoutCallsIsNeverLost) {
  if (!kernel_holds_up_writers()) return;
  for (const int flags : {MAP_PRIVATE, MAP_SHARED}) {
    const JitPages pages(1, flags);
    pages.make_writable();
    expect_that_nothing_is_lost(pages, 900, [&](unsigned number) { pages.write(number); });
    EXPECT_NE(pages.file(), "");
  }
}

TEST(PublishedPages, SharedPagesAreSharedWithLaterChildren) {
  if (!kernel_holds_up_writers()) return;
  const JitPages pages(1, MAP_SHARED);
  pages.make_writable();
  PublishedPages file = made(pages);
  ASSERT_TRUE(lay_over(file, {.writable = true, .shared = true}));
  const pid_t child = ::fork();
  if (child == 0) pages.write(7), ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(pages.call(), 7u);
  EXPECT_EQ(pages.file(), file.path());
}

/// Debuggers write so, and programs that call the kernel themselves.
void write_by_kernel(const JitPages& pages, unsigned number) {
  const int memory = ::open("/proc/self/mem", O_RDWR);
  alignas(unsigned) std::array<std::byte, sizeof NumberCode::k_bytes> code;
  std::memcpy(code.data(), NumberCode::k_bytes, code.size());
  NumberCode::patch(code.data(), number);
  EXPECT_EQ(::pwrite(memory, code.data(), code.size(), static_cast<off_t>(pages.address())), ssize_t{code.size()});
  ::close(memory);
}

TEST(PublishedPages, WhatIsWrittenAfterTheCopyIsWrittenAgain) {
  const JitPages pages(2);
  PublishedPages file = made(pages);
  at_mapping = {[&] { write_by_kernel(pages, 5); }, [] {}};
  EXPECT_TRUE(lay_over(file));
  EXPECT_EQ(pages.call(), 5u);
  EXPECT_EQ(pages.file(), file.path());
}

TEST(PublishedPages, NewerBytesStay) {
  const JitPages pages(2);
  PublishedPages file = made(pages);
  at_mapping = {[&] { write_by_kernel(pages, 5); }, [&] { write_by_kernel(pages, 6); }};
  EXPECT_TRUE(lay_over(file));
  EXPECT_EQ(pages.call(), 6u);
}

TEST(PublishedPages, AFileThatIsCutMeanwhileIsTakenAway) {
  const JitPages pages(2);
  PublishedPages file = made(pages);
  at_mapping = {[&] { write_by_kernel(pages, 5); }, [&] { EXPECT_EQ(::truncate(file.path().c_str(), 4096), 0); }};
  EXPECT_FALSE(lay_over(file));
  EXPECT_EQ(pages.call(), 5u);
  EXPECT_EQ(pages.call(1), 0u);
  EXPECT_EQ(pages.file(), "");
}

TEST(PublishedPages, AFileThatIsCutOrReplacedChangesNothing) {
  const JitPages pages(1);
  pages.patch(7);
  PublishedPages file = made(pages);
  ASSERT_EQ(::unlink(file.path().c_str()), 0);
  EXPECT_FALSE(lay_over(file));
  const int other = ::open(file.path().c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  EXPECT_FALSE(lay_over(file));
  ::close(other);
  ::unlink(file.path().c_str());
  ASSERT_EQ(::symlink("/bin/true", file.path().c_str()), 0);
  EXPECT_FALSE(lay_over(file));
  EXPECT_EQ(pages.call(), 7u);
  EXPECT_EQ(pages.file(), "");
}

/// An entry of a file's call frame information.
struct FileFde {
  AddrRange code{};
  std::string augmentation;
  std::size_t rows = 0;
};

std::vector<FileFde> fdes_in(const std::string& file) {
  std::vector<FileFde> all;
  std::string augmentation;
  bool is_fde = false;
  for (const std::string& line : lines_of(run("readelf -wF " + file).text)) {
    if (line.find(" CIE ") != line.npos) augmentation = line.substr(line.find('"')), is_fde = false;
    const std::size_t pc = line.find(" FDE ") == line.npos ? line.npos : line.find(" pc=");
    if (pc != line.npos) {
      is_fde = true;
      all.push_back({{std::stoull(line.substr(pc + 4), nullptr, 16), std::stoull(line.substr(pc + 22), nullptr, 16)},
                     augmentation});
    }
    if (is_fde) all.back().rows += line.find_first_not_of("0123456789abcdef") == 16;
  }
  return all;
}

/// Readers that keep one entry for each address find the code's. Returns the entries of code.
std::vector<FileFde> expect_apart(std::vector<FileFde> all, std::size_t text_bytes) {
  const auto is_empty = [](const FileFde& fde) { return fde.code.size() == 0; };
  for (const FileFde& fde : all) EXPECT_TRUE(is_empty(fde) ? fde.code.begin == text_bytes : fde.code.end <= text_bytes);
  std::erase_if(all, is_empty);
  std::ranges::sort(all, {}, [](const FileFde& fde) { return fde.code.begin; });
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i - 1].code.end, all[i].code.begin);
  return all;
}

std::uint64_t published() { return listen_status().published; }

class Published : public testing::Test {
 protected:
  void SetUp() override { listen(k_silent_dialects); }
};

TEST_F(Published, CodeGoesWithItsName) {
  const JitPages pages(2);
  pages.name(0, "first");
  pages.name(1, "second");
  EXPECT_EQ(publish_all_code(), 1u);
  EXPECT_EQ(published(), 2u);
  EXPECT_EQ(pages.file(0), pages.file(1));
  EXPECT_EQ(publish_all_code(), 0u);
  say_gone(Dialect::itt, pages.code(0));
  EXPECT_EQ(published(), 1u);
  pages.name(0, "another");
  EXPECT_EQ(publish_all_code(), 1u);
  EXPECT_EQ(publish_all_code(), 1u);  // the other page, of which the former file is of no use any more
  EXPECT_EQ(published(), 2u);
}

/// Readers that keep one entry for each address, as gdb and libdw do, find those of code; and bpftrace 0.27 searches
/// files that have rows at four addresses.
TEST_F(Published, EntriesOfNoCodeAreBehindTheText) {
  const JitPages pages(2);
  const auto description = host::describe("described").row_at(0, host_row("cfa=SP+16 ra=[cfa-8]")).build();
  ASSERT_TRUE(description);
  auto first = register_code(*description, pages.begin(), k_page);
  const auto second = register_code(*description, pages.begin() + k_page, k_page);
  ASSERT_TRUE(first && second);
  ASSERT_EQ(publish_all_code(), 1u);
  const std::vector<FileFde> fdes = fdes_in(pages.file());
  EXPECT_EQ(expect_apart(fdes, 2 * k_page).size(), 2u);
  EXPECT_EQ(fdes.front().rows, 4u);  // that of no code
  EXPECT_TRUE(first->cancel());
  EXPECT_EQ(expect_apart(fdes_in(pages.file()), 2 * k_page).size(), 1u);
}

TEST_F(Published, UnmappingPagesWithdrawsTheFile) {
  const JitPages pages(3);
  for (std::size_t page = 0; page < 3; ++page) pages.name(page, "function");
  ASSERT_EQ(publish_all_code(), 1u);
  ASSERT_EQ(published(), 3u);
  const std::string before = pages.file(2);
  ::munmap(pages.begin(), k_page);
  EXPECT_EQ(published(), 0u);
  say_gone(Dialect::itt, pages.code(0));
  EXPECT_EQ(publish_all_code(), 1u);
  EXPECT_EQ(published(), 2u);
  EXPECT_NE(pages.file(2), before);
  EXPECT_EQ(pages.call(2), 0u);
}

void expect_not_published(const char* why) {
  const std::uint64_t before = published();
  EXPECT_EQ(publish_all_code(), 0u);
  EXPECT_EQ(published(), before);
  EXPECT_STREQ(listen_status().latest_unpublished.what, why);
}

// Code that is too large for one file has a file for each part, which begins at a multiple of this.
constexpr std::size_t k_part = PublishedPages::k_most_bytes;

std::size_t parts_of(const AddrRange& code) {
  return static_cast<std::size_t>((code.end - 1) / k_part - code.begin / k_part + 1);
}

/// The entries of the code of each file, by address.
std::vector<FileFde> fdes_of(const JitPages& pages) {
  std::vector<FileFde> all;
  for (std::size_t page = 0, next = 0; page * k_page < pages.pages().size(); page = next) {
    const std::string file = pages.file(page);
    for (next = page; next * k_page < pages.pages().size() && pages.file(next) == file;) ++next;
    const std::vector<FileFde> here = expect_apart(fdes_in(file), (next - page) * k_page);
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
}

TEST_F(Published, CodeThatIsTooLargeForAFileHasSeveral) {
  const JitPages pages(3 * k_part / k_page);
  const Addr personality = reinterpret_cast<std::uintptr_t>(&::abort);
  const auto description =
      host::describe("large").row_at(0, host_row("cfa=SP+16 ra=[cfa-8]")).personality(personality).build();
  ASSERT_TRUE(description);
  auto registered = register_code(*description, pages.begin(), 3 * k_part);
  ASSERT_TRUE(registered);
  const std::size_t parts = parts_of(pages.pages());
  EXPECT_EQ(publish_all_code(), parts);
  EXPECT_EQ(published(), parts);
  EXPECT_EQ(publish_all_code(), 0u);
  const std::vector<FileFde> fdes = fdes_of(pages);
  ASSERT_EQ(fdes.size(), parts);
  EXPECT_TRUE(fdes[0].augmentation.starts_with("\"zPR\"")) << fdes[0].augmentation;
  for (std::size_t i = 1; i < parts; ++i) EXPECT_TRUE(fdes[i].augmentation.starts_with("\"zR\""));
  for (std::size_t page = 0; page < 3 * k_part / k_page; page += 100) EXPECT_EQ(pages.call(page), 0u);
  EXPECT_TRUE(registered->cancel());
  EXPECT_EQ(published(), 0u);
}

TEST_F(Published, PartsThatNobodyHasWrittenToHaveNoFile) {
  const std::size_t count = 4 * k_part / k_page;
  const JitPages pages(count);
  const std::size_t first = (k_part - pages.address() % k_part) / k_page, second = first + k_part / k_page;
  (void)::madvise(pages.begin(), count * k_page, MADV_NOHUGEPAGE);
  ASSERT_EQ(::madvise(pages.begin(), count * k_page, MADV_DONTNEED), 0);
  ::mprotect(pages.begin() + (count - 1) * k_page, k_page, PROT_NONE);
  pages.patch(1, first + 3);
  say_name(Dialect::itt, pages.pages(), "buffer");
  EXPECT_EQ(publish_all_code(), 1u);
  EXPECT_EQ(publish_all_code(), 0u);
  EXPECT_NE(pages.file(first), "");
  EXPECT_EQ(pages.file(second), "");
  for (int look = 0; look < 5; ++look) EXPECT_EQ(publish_all_code(), 0u);
  pages.patch(1, second + 3);
  constexpr std::int64_t k_seconds = 5'000'000'000;
  EXPECT_EQ(publish_code_due(nanoseconds_of(CLOCK_MONOTONIC) + k_seconds), 1u);
  EXPECT_EQ(published(), 2u);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!refuse({SYS_mincore}, EPERM)) ::_exit(1);
    expect_not_published("the kernel does not say which pages are in memory");
    ::_exit(HasFailure() ? 2 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

TEST_F(Published, CodeWithoutGapsIsDividedAmongFiles) {
  const JitPages pages(2 * k_part / k_page);
  const Addr size = k_page + 8;
  std::vector<AddrRange> all, crossing;
  for (Addr at = pages.address(); at + size <= pages.pages().end; at += size) {
    all.push_back({at, at + size});
    if (parts_of(all.back()) == 2) crossing.push_back(all.back());
    say_name(Dialect::itt, all.back(), "function");
  }
  EXPECT_EQ(publish_all_code(), parts_of(pages.pages()));
  EXPECT_EQ(published(), all.size() + crossing.size());
  ASSERT_FALSE(crossing.empty());
  say_gone(Dialect::itt, crossing.front());
  EXPECT_EQ(published(), all.size() + crossing.size() - 2);
  EXPECT_EQ(publish_all_code(), 0u);
  say_name(Dialect::itt, crossing.front(), "anew");
  EXPECT_EQ(publish_all_code(), 2u);
  EXPECT_EQ(published(), all.size() + crossing.size());
  EXPECT_EQ(publish_all_code(), 0u);
}

#ifdef HAS_MOUNT_NAMESPACES
/// Calls it in a child whose files are on a disk of this size; returns its exit status.
template <class Body>
int on_small_disk(const char* size, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const uid_t user = ::geteuid();
    if (::unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) ::_exit(100);
    if (user != 0) std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(101);
    if (::mount("none", "/mnt", "tmpfs", 0, size) != 0) ::_exit(102);
    ::setenv("JITUNWIND_CODE_DIR", "/mnt", 1);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// It has room for a file, and not for the copy of its tables that would be kept.
TEST_F(Published, ADiskThatIsFullKeepsNoTables) {
  EXPECT_EQ(on_small_disk("size=36k,mode=700",
                          [] {
                            ::setenv("JITUNWIND_CODE_FILES", "keep", 1);
                            const JitPages pages(1);
                            pages.name(0, "seen");
                            if (publish_all_code() != 1 || published() != 1 || pages.call() != 0) return 1;
                            if (!pages.file().starts_with("/mnt/")) return 2;
                            for (const auto& entry : std::filesystem::recursive_directory_iterator("/mnt"))
                              if (entry.is_regular_file() && entry.path() != pages.file()) return 3;
                            const ListenStatus status = listen_status();
                            if (status.unpublished != 1 || status.latest_unpublished.at != pages.address()) return 4;
                            return status.latest_unpublished.what == std::string("the folder's disk is full") ? 0 : 5;
                          }),
            0);
}
#endif

TEST_F(Published, OnlyMemoryThatNobodyElseHas) {
  const pid_t child = ::fork();  // it might have shared memory
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  {
    const JitPages pages(1, MAP_SHARED);
    pages.name(0, "shared");
    expect_not_published("the code's memory is shared with other processes");
  }
  {
    const JitPages pages(1);
    ::mprotect(pages.begin(), k_page, PROT_READ);
    pages.name(0, "not executable");
    expect_not_published("the code's memory cannot be read and executed");
  }
  {
    const JitPages pages(2);
    ::mprotect(pages.begin(), k_page, PROT_READ | PROT_WRITE | PROT_EXEC);
    say_name(Dialect::itt, pages.pages(), "on both");
    expect_not_published("the code's pages are mapped in several ways");
  }
}

TEST_F(Published, WritableMemoryWhereTheKernelHoldsUpWriters) {
  if (!kernel_holds_up_writers()) return;
  const JitPages pages(1);
  pages.make_writable();
  pages.name(0, "writable");
  EXPECT_EQ(publish_all_code(), 1u);
  EXPECT_EQ(published(), 1u);
  pages.write(3);
  EXPECT_EQ(pages.call(), 3u);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool has_gone = publish_all_code() == 1;
    if (!refuse({SYS_userfaultfd}, EPERM)) ::_exit(1);
    const JitPages others(1);
    others.make_writable();
    others.name(0, "other");
    expect_not_published("the code's memory is writable, and the kernel does not hold up writers (userfaultfd)");
    ::_exit(has_gone && !HasFailure() ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

/// Forked children end so; those of vfork() have their parent's memory.
TEST_F(Published, ProcessesThatCallExitLeaveNoFiles) {
  for (const auto end : std::array<void (*)(int), 2>{&::_exit, &std::_Exit}) {
    const TemporaryFolder place;
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("JITUNWIND_CODE_DIR", place.path().c_str(), 1);
      const JitPages pages(1);
      pages.name(0, "function");
      if (publish_all_code() != 1 || !pages.file().starts_with(place.path())) end(1);
      if (::vfork() == 0) end(0);
      end(std::filesystem::exists(pages.file()) ? 0 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(std::filesystem::is_empty(place.path()));
  }
}

TEST_F(Published, AForkedChildPublishesAnew) {
  const JitPages pages(1);
  pages.name(0, "function");
  ASSERT_EQ(publish_all_code(), 1u);
  const std::string parents = pages.file();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool has_parents = pages.file() == parents && published() == 0;
    const bool has_own = publish_all_code() == 1 && pages.file() != parents && published() == 1;
    say_gone(Dialect::itt, pages.code(0));
    ::_exit(has_parents && has_own && pages.call() == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(published(), 1u);
  EXPECT_EQ(::access(parents.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace jitunwind::test
