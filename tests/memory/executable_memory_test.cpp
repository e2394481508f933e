// The memory that may be executed: the kernel's answers, in each way to ask for them, and how long they are believed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/page_answers_p.h"
#include "tests/support/allowed_calls.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_page_size = 4096;

std::optional<bool> executable(Addr at) {
  MemoryWindow window;
  return LocalMemory().is_executable(at, window);
}

/// Maps memory at an address that nothing else gets afterwards, because answers are remembered for a moment.
Addr map(int protection, std::size_t size = k_page_size) {
  void* const at = ::mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return reinterpret_cast<std::uintptr_t>(at);
}
void protect(Addr at, int protection) {
  EXPECT_EQ(::mprotect(reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), k_page_size, protection), 0);
}

struct Mapping {
  AddrRange range;
  bool executable;
};

std::vector<Mapping> mappings() {
  std::vector<Mapping> all;
  for (const std::string& line : lines_of(text_of_file("/proc/self/maps"))) {
    Mapping mapping{};
    std::array<char, 5> mode{};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &mapping.range.begin, &mapping.range.end,
                    mode.data()) == 3)
      all.push_back({mapping.range, mode[2] == 'x'});
  }
  return all;
}

/// Returns true if a child ran `body` without a failure.
bool holds_in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Makes the kernel behave like Linux before 6.11.
bool forbid_queries() { return refuse({SYS_ioctl}, ENOTTY); }

/// Tries PROCMAP_QUERY (include/uapi/linux/fs.h), whose first word is its size.
bool kernel_answers_queries() {
  std::array<std::uint64_t, 13> query{sizeof query};
  const int maps = ::open("/proc/self/maps", O_RDONLY);
  const bool answers = ::ioctl(maps, _IOWR('f', 17, decltype(query)), query.data()) == 0 || errno != ENOTTY;
  ::close(maps);
  return answers;
}

/// Compares answers around the ends of every mapping; the last one is the kernel's and belongs to no process.
void expect_the_kernels_answers() {
  const std::vector<Mapping> all = mappings();
  ASSERT_GT(all.size(), 10u);
  for (const Mapping& mapping : all) {
    if (mapping.range.begin >> PageAnswers::k_address_bits != 0) continue;
    EXPECT_EQ(executable(mapping.range.begin), mapping.executable) << std::hex << mapping.range.begin;
    EXPECT_EQ(executable(mapping.range.end - 1), mapping.executable) << std::hex << mapping.range.end;
  }
  for (const Addr at : {Addr{0}, Addr{8}, (Addr{1} << 47) - 1, Addr{1} << 47, Addr{1} << 56, Addr{1} << 63, ~Addr{0}})
    EXPECT_EQ(executable(at), false) << std::hex << at;
}

TEST(ExecutableMemory, IsWhatTheKernelsMapSays) { EXPECT_TRUE(holds_in_child(expect_the_kernels_answers)); }

TEST(ExecutableMemory, IsTheSameOnOlderKernels) {
  EXPECT_TRUE(holds_in_child([] {
    ASSERT_TRUE(forbid_queries());
    expect_the_kernels_answers();
  }));
}

TEST(ExecutableMemory, IsNotKnownWithoutProc) {
  EXPECT_TRUE(holds_in_child([] {
    const Addr code = map(PROT_READ | PROT_EXEC);
    ASSERT_TRUE(refuse({SYS_openat}, EACCES));
    EXPECT_EQ(executable(code), std::nullopt);
    EXPECT_EQ(executable(~Addr{0}), false) << "no address of a program";
  }));
}

/// Counts this process's read system calls.
std::size_t reads_so_far() {
  std::ifstream file("/proc/self/io");
  for (std::string name; file >> name;) {
    std::size_t value = 0;
    file >> value;
    if (name == "syscr:") return value;
  }
  return 0;
}

// Every mapping that is passed costs time, in signal handlers too.
TEST(ExecutableMemory, IsLookedForAmongSoManyMappingsOnly) {
  static constexpr std::size_t k_mappings = 5000;
  static constexpr std::size_t k_most_reads = 64 + 2;  // of 1 KiB; and what the file says in pieces of its own size
  EXPECT_TRUE(holds_in_child([] {
    // Neighbours with different protections are not one mapping. The kernel gives lower and lower addresses, or the
    // next ones in one piece.
    const Addr room = map(PROT_NONE, 2 * k_mappings * k_page_size);
    for (std::size_t i = 0; i < k_mappings; ++i) protect(room + 2 * i * k_page_size, PROT_READ);
    const Addr last = room + (2 * k_mappings - 1) * k_page_size;
    protect(last, PROT_READ | PROT_EXEC);
    if (kernel_answers_queries()) {
      EXPECT_EQ(executable(last), true);
    }
    ASSERT_TRUE(forbid_queries());
    const std::size_t overhead = [] {
      const std::size_t before = reads_so_far();
      return reads_so_far() - before;
    }();
    const std::size_t before = reads_so_far();
    EXPECT_EQ(executable(last - k_page_size), std::nullopt) << "behind too many others";
    EXPECT_LE(reads_so_far() - before - overhead, k_most_reads);
    EXPECT_EQ(executable(mappings().front().range.begin), mappings().front().executable);
  }));
}

/// Code made at run time is written before it may be executed. A query to the kernel shows the change at once, a
/// reading of its map shows it a moment later. A positive answer is believed for a moment in both.
void expect_protections_are_seen(bool at_once) {
  const Addr at = map(PROT_READ | PROT_WRITE);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(executable(at), false);
    protect(at, PROT_READ | PROT_EXEC);
    if (at_once) {
      EXPECT_EQ(executable(at), true);
    }
    while (executable(at) != true) ::usleep(1000);
    protect(at, PROT_READ | PROT_WRITE);
    while (executable(at) != false) ::usleep(1000);
  }
}

TEST(ExecutableMemory, IsKnownAsSoonAsItMayBeExecuted) { expect_protections_are_seen(kernel_answers_queries()); }

TEST(ExecutableMemory, IsKnownAMomentLaterOnOlderKernels) {
  EXPECT_TRUE(holds_in_child([] {
    ASSERT_TRUE(forbid_queries());
    expect_protections_are_seen(false);
  }));
}

TEST(PageAnswers, HoldForOneMomentAndOnePage) {
  static PageAnswers answers;
  const Addr page = 0x7f1234567000;
  const Moment now(Moment::k_length * 1000), next(Moment::k_length * 1001), still(Moment::k_length * 1001 - 1);
  PageAnswer answer;
  EXPECT_FALSE(answers.find(page, now, answer));
  for (const PageAnswer kept : {PageAnswer(true), PageAnswer(false), PageAnswer()}) {
    answers.keep(page, now, kept);
    for (const Addr at : {page, page + 1, page + 4095}) {
      ASSERT_TRUE(answers.find(at, still, answer));
      EXPECT_EQ(answer, kept);
    }
    EXPECT_FALSE(answers.find(page, next, answer));
    EXPECT_FALSE(answers.find(page - 1, now, answer));
    EXPECT_FALSE(answers.find(page + 4096, now, answer));
  }
  // It does not count either after any time that processes run.
  for (const unsigned bits : {8u, 16u, 18u, 20u, 24u, 32u, 35u}) {
    answers.keep(page, now, true);
    EXPECT_FALSE(answers.find(page, Moment(Moment::k_length * (1000 + (std::uint64_t{1} << bits))), answer)) << bits;
  }
  // Every page has another number, also those that share a place.
  for (Addr at = 0; at < Addr{1} << 30; at += Addr{1} << 14) {
    answers.keep(at, now, true);
    EXPECT_TRUE(answers.find(at, now, answer));
    EXPECT_FALSE(answers.find(at + k_page_size, now, answer));
  }
}

}  // namespace
}  // namespace jitunwind::test
