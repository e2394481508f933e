// Local memory never faults, whatever the address is; it reports as readable what the kernel finds readable.
#include "jitunwind/unwind_core/memory/local.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "tests/support/allowed_calls.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_local_page = 4096;

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Anonymous pages, one letter each: r read-only, w read and write, o write-only, x execute and read, - no access,
/// u unmapped.
class Pages {
 public:
  explicit Pages(const char* letters) : count_(std::strlen(letters)) {
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, count_ * k_local_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    for (std::size_t i = 0; i < count_ * k_local_page; ++i) base_[i] = static_cast<std::byte>(i * 7 + i / k_local_page);
    for (std::size_t i = 0; i < count_; ++i) protect(i, letters[i]);
  }
  ~Pages() { ::munmap(base_, count_ * k_local_page); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  Addr at(std::size_t offset) const { return addr_of(base_) + offset; }
  std::byte* data(std::size_t offset) const { return base_ + offset; }

  void protect(std::size_t page, char letter) {
    std::byte* const p = base_ + page * k_local_page;
    const int protection = letter == 'r'   ? PROT_READ
                           : letter == 'w' ? PROT_READ | PROT_WRITE
                           : letter == 'o' ? PROT_WRITE
                           : letter == 'x' ? PROT_READ | PROT_EXEC
                                           : PROT_NONE;
    if (letter == 'u')
      EXPECT_EQ(::munmap(p, k_local_page), 0);
    else
      EXPECT_EQ(::mprotect(p, k_local_page, protection), 0);
  }

 private:
  std::size_t count_;
  std::byte* base_;
};

std::size_t read(Addr at, std::span<std::byte> into) {
  MemoryWindow window;
  return LocalMemory().read(at, into, window);
}

/// Reads by the kernel, which copies page by page into a file. process_vm_readv does not suffice: it refuses the vvar
/// pages, which every program may read.
std::size_t read_by_kernel(Addr at, std::span<std::byte> into) {
  static const int file = ::memfd_create("copy", 0);
  EXPECT_GE(file, 0);
  std::size_t done = 0;
  while (done < into.size() && at + done >= at) {
    const std::size_t size =
        std::min<std::size_t>(into.size() - done, k_local_page - ((at + done) & (k_local_page - 1)));
    // pwrite() is not used: the sanitizers' version of it reads the shadow of `at`, which may not exist.
    if (::syscall(SYS_pwrite64, file, static_cast<std::uintptr_t>(at + done), size, 0L, 0L) != static_cast<long>(size))
      break;
    EXPECT_EQ(::pread(file, into.data() + done, size, 0), static_cast<ssize_t>(size));
    done += size;
  }
  return done;
}

TEST(LocalMemory, ReadsEverySizeAtEveryAlignment) {
  const Pages pages("ww");
  for (std::size_t offset : {0u, 1u, 7u, 8u, 4080u, 4089u, 4095u, 4096u})
    for (std::size_t size = 0; size < 70; ++size) {
      std::vector<std::byte> got(size + 1, std::byte{0xee});
      EXPECT_EQ(read(pages.at(offset), std::span(got).first(size)), size);
      EXPECT_EQ(std::memcmp(got.data(), pages.data(offset), size), 0) << offset << " " << size;
      EXPECT_EQ(got[size], std::byte{0xee});
    }
}

TEST(LocalMemory, StopsAtTheFirstUnreadablePage) {
  for (const char* letters : {"w-w", "wuw", "ruw", "x-r", "rrr", "www", "-ww", "uww", "ww-", "wow", "oow"}) {
    const Pages pages(letters);
    for (std::size_t from : {std::size_t{0}, std::size_t{1}, k_local_page - 8, k_local_page - 1, k_local_page,
                             k_local_page + 1, 2 * k_local_page - 3}) {
      std::vector<std::byte> ours(3 * k_local_page - from);
      std::vector<std::byte> kernels(ours.size());
      const std::size_t expected = read_by_kernel(pages.at(from), kernels);
      ASSERT_EQ(read(pages.at(from), ours), expected) << letters << " from " << from;
      EXPECT_EQ(std::memcmp(ours.data(), kernels.data(), expected), 0);
    }
  }
}

TEST(LocalMemory, ViewsAllOrNothing) {
  const Pages pages("ww-w");
  const LocalMemory memory;
  for (std::size_t from : {std::size_t{0}, std::size_t{1}, k_local_page - 8, k_local_page, 2 * k_local_page - 3,
                           2 * k_local_page, 3 * k_local_page}) {
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4}, std::size_t{8},
                             k_local_page, 2 * k_local_page}) {
      MemoryWindow window;
      std::vector<std::byte> bytes(size);
      const bool readable = read_by_kernel(pages.at(from), bytes) == size;
      const std::byte* const seen = memory.view(pages.at(from), size, window);
      EXPECT_EQ(seen, readable ? reinterpret_cast<const std::byte*>(pages.data(from)) : nullptr) << from << " " << size;
    }
  }
  MemoryWindow window;
  EXPECT_EQ(memory.view(~Addr{0} - 8, 100, window), nullptr);
}

// A CPU may let loads through where the kernel's tables say write-only (x86 does); then and only then they are read.
TEST(LocalMemory, WriteOnlyPagesAreWhatTheCpuMakesOfThem) {
  Pages pages("wow");
  std::vector<std::byte> got(2 * k_local_page);
  const std::size_t size = read(pages.at(0), got);
  EXPECT_TRUE(size == k_local_page || size == 2 * k_local_page) << size;
  pages.protect(1, 'w');
  EXPECT_EQ(std::memcmp(got.data(), pages.data(0), size), 0);
}

TEST(LocalMemory, AnswersForAddressesThatNoProcessHas) {
  std::array<std::byte, 16> into;
  const Addr top = ~Addr{0};
  for (Addr at : {Addr{0}, Addr{1}, Addr{8}, Addr{4095}, Addr{1} << 47, (Addr{1} << 47) - 8, Addr{1} << 48,
                  Addr{1} << 56, Addr{1} << 63, (Addr{1} << 63) - 4, Addr{0xdeadbeefdeadbeef}, Addr{0xffff800000000000},
                  Addr{0xffffffffff600000}, top - 4096, top - 15, top - 7, top - 1, top})
    EXPECT_EQ(read(at, into), 0u) << std::hex << at;
}

TEST(LocalMemory, ShortReadsOfAFileEndWithTheFile) {
  char name[] = "/tmp/jitunwind_local_memory_XXXXXX";
  const int file = ::mkstemp(name);
  ASSERT_GE(file, 0);
  ::unlink(name);
  ASSERT_EQ(::ftruncate(file, 100), 0);
  void* const map = ::mmap(nullptr, 3 * k_local_page, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(map, MAP_FAILED);
  std::vector<std::byte> into(3 * k_local_page);
  // The rest of the last page of a file reads as 0; the page behind raises SIGBUS (mmap(2)).
  EXPECT_EQ(read(addr_of(map), into), k_local_page);
  EXPECT_EQ(read(addr_of(map) + k_local_page, into), 0u);
  MemoryWindow window;
  EXPECT_FALSE(LocalMemory().write(addr_of(map), std::span(into).first(8), window));
  ::munmap(map, 3 * k_local_page);
  ::close(file);
}

TEST(LocalMemory, RandomAddressesAgreeWithTheKernel) {
  std::mt19937_64 random(20240901);
  std::array<std::byte, 64> ours;
  std::array<std::byte, 64> kernels;
  int stack_word = 0;
  const Addr anchors[] = {addr_of(&stack_word), addr_of(&random), addr_of(reinterpret_cast<void*>(&::getpid)), 0};
  int readable = 0;
  for (int i = 0; i < 20000; ++i) {
    // The addresses are around mapped places, in strides that leave them, and anywhere.
    const Addr anchor = anchors[random() % std::size(anchors)];
    const Addr anywhere = anchor + ((random() & 0xffffffff) >> (random() % 32)) - (1u << 16);
    const Addr at = static_cast<std::uintptr_t>(anywhere);
    const std::size_t size = random() % ours.size();
    const std::size_t got = read(at, std::span(ours).first(size));
    ASSERT_EQ(got, read_by_kernel(at, std::span(kernels).first(size))) << std::hex << at;
    readable += got != 0;
  }
  EXPECT_GT(readable, 1000);
  if (sizeof(void*) == 4) {
    EXPECT_EQ(read(anchors[0] + (Addr{1} << 32), ours), 0u) << "no pointer is there";
  }
}

TEST(LocalMemory, ProvenPagesAreNotProbedAgain) {
  Pages pages("wwwwwwwwwwww");
  const LocalMemory memory;
  MemoryWindow window;
  std::array<std::byte, 8> word;
  // The stack grows the range in both directions, the pages apart take the four single places.
  EXPECT_EQ(memory.read(pages.at(5 * k_local_page), word, window), 8u);
  EXPECT_EQ(memory.read(pages.at(6 * k_local_page), word, window), 8u);
  EXPECT_EQ(memory.read(pages.at(4 * k_local_page), word, window), 8u);
  EXPECT_EQ(window.proven, (AddrRange{pages.at(4 * k_local_page), pages.at(7 * k_local_page)}));
  for (std::size_t page : {0u, 2u, 9u, 11u})
    EXPECT_EQ(memory.read(pages.at(page * k_local_page + 100), word, window), 8u);
  for (std::size_t page : {0u, 2u, 9u, 11u})
    EXPECT_EQ(std::ranges::count(window.proven_pages, pages.at(page * k_local_page)), 1) << page;
  const MemoryWindow before = window;
  for (std::size_t page : {0u, 2u, 4u, 5u, 6u, 9u, 11u}) memory.read(pages.at(page * k_local_page), word, window);
  EXPECT_EQ(window.proven, before.proven);
  EXPECT_EQ(window.proven_pages, before.proven_pages);
  EXPECT_EQ(window.next_page, before.next_page);
}

TEST(LocalMemory, ViewsWhatIsReadableFromEndToEnd) {
  const Pages pages("ww-");
  const LocalMemory memory;
  MemoryWindow window;
  EXPECT_EQ(memory.view(pages.at(100), 2 * k_local_page - 100, window), pages.data(100));
  EXPECT_EQ(memory.view(pages.at(100), 2 * k_local_page - 99, window), nullptr);
  EXPECT_EQ(memory.view(pages.at(2 * k_local_page), 1, window), nullptr);
  EXPECT_EQ(memory.view(~Addr{0} - 7, 16, window), nullptr);
}

TEST(LocalMemory, AFailedProbeProvesNothing) {
  Pages pages("-w");
  const LocalMemory memory;
  MemoryWindow window;
  std::array<std::byte, 8> word;
  EXPECT_EQ(memory.read(pages.at(0), word, window), 0u);
  EXPECT_TRUE(window.proven.empty());
  pages.protect(0, 'w');
  EXPECT_EQ(memory.read(pages.at(0), word, window), 8u);
}

TEST(LocalMemory, WritesAllOrNothing) {
  const LocalMemory memory;
  const std::array<std::byte, 12> value{std::byte{1}, std::byte{2},  std::byte{3},  std::byte{4},
                                        std::byte{5}, std::byte{6},  std::byte{7},  std::byte{8},
                                        std::byte{9}, std::byte{10}, std::byte{11}, std::byte{12}};
  for (const char* letters : {"ww", "wr", "rw", "w-", "-w", "wu", "uw", "wx", "rr"}) {
    Pages pages(letters);
    const Addr at = pages.at(k_local_page - 6);
    MemoryWindow window;
    const bool both = std::strcmp(letters, "ww") == 0;
    EXPECT_EQ(memory.write(at, value, window), both) << letters;
    if (letters[0] == 'w') {
      EXPECT_EQ(std::memcmp(pages.data(k_local_page - 6), value.data(), 6) == 0, both) << letters;
    }
    if (letters[1] == 'w') {
      EXPECT_EQ(std::memcmp(pages.data(k_local_page), value.data() + 6, 6) == 0, both) << letters;
    }
  }
  MemoryWindow window;
  for (Addr at : {Addr{0}, Addr{1} << 47, Addr{1} << 63, ~Addr{0} - 3, Addr{0xffffffffff600000}})
    EXPECT_FALSE(memory.write(at, value, window)) << std::hex << at;
  EXPECT_TRUE(memory.write(0, {}, window));
}

TEST(LocalMemory, ProbingAWriteLeavesThePageAsItIs) {
  Pages pages("ww");
  std::vector<std::byte> before(pages.data(0), pages.data(0) + 2 * k_local_page);
  MemoryWindow window;
  std::array<std::byte, 8> word;
  std::memcpy(word.data(), pages.data(k_local_page - 4), word.size());
  EXPECT_TRUE(LocalMemory().write(pages.at(k_local_page - 4), word, window));
  EXPECT_EQ(std::memcmp(before.data(), pages.data(0), before.size()), 0);
}

TEST(LocalMemory, KeepsErrnoAndTheSignalMask) {
  sigset_t mask, before, after;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &mask, &before), 0);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &before), 0);
  // A page full of ones would block every signal, were the probe's mask taken.
  Pages pages("w");
  std::memset(pages.data(0), 0xff, k_local_page);
  std::array<std::byte, 8> word;
  MemoryWindow window;
  errno = 4711;
  EXPECT_EQ(read(pages.at(0), word), 8u);
  EXPECT_EQ(read(0, word), 0u);
  EXPECT_TRUE(LocalMemory().write(pages.at(0), word, window));
  EXPECT_FALSE(LocalMemory().write(0, word, window));
  EXPECT_EQ(errno, 4711);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &after), 0);
  for (int signal = 1; signal < 65; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
}

__attribute__((noinline)) Addr address_in_a_dead_frame() {
  volatile char buffer[64] = {};
  return addr_of(const_cast<char*>(buffer));
}

// Under ASan and TSan these are the accesses that the sanitizers would report were they instrumented.
TEST(LocalMemory, ReadsWhatSanitizersPoison) {
  struct {
    char before[24];
    int red_zone_neighbour;
  } object{};
  std::array<std::byte, 256> into;
  EXPECT_EQ(read(addr_of(&object) - 64, into), into.size());
  EXPECT_EQ(read(address_in_a_dead_frame() - 64, into), into.size());
  auto freed = std::make_unique<std::array<char, 128>>();
  const Addr at = addr_of(freed.get());
  freed.reset();
  EXPECT_EQ(read(at, std::span(into).first(64)), 64u);

  long racing = 0;
  std::atomic<bool> stop = false;
  pthread_t thread;
  struct Shared {
    long* racing;
    std::atomic<bool>* stop;
  } shared{&racing, &stop};
  ASSERT_EQ(::pthread_create(
                &thread, nullptr,
                [](void* p) -> void* {
                  const Shared& s = *static_cast<Shared*>(p);
                  while (!s.stop->load(std::memory_order_relaxed)) ++*s.racing;
                  return nullptr;
                },
                &shared),
            0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(read(addr_of(&racing), std::span(into).first(8)), 8u);
  stop = true;
  ::pthread_join(thread, nullptr);
}

#ifndef JITUNWIND_TEST_SANITIZED
/// Returns an exit status: 1 for each readable address that is read, and 10 for each unreadable one. The sandbox begins
/// before the first read or, if `k_is_late`, behind some that the kernel answers.
template <unsigned k_error, bool k_copies, bool k_is_late>
void read_in_a_sandbox() {
  const Pages pages("w-");
  const LocalMemory memory;
  int found = 0;
  const auto read_both = [&] {
    std::array<std::byte, 8> into;
    MemoryWindow window;
    found += memory.read(pages.at(0), into, window) == into.size() ? 1 : 0;
    found += memory.read(pages.at(k_local_page), into, window) != 0 ? 10 : 0;
  };
  if (k_is_late) {
    for (int i = 0; i < 2; ++i) read_both();
    if (found != 2) ::_exit(8);
  }
  std::vector<unsigned> calls{SYS_rt_sigprocmask};
  if (!k_copies) calls.push_back(SYS_process_vm_readv);
  if (!test::refuse(calls, k_error)) ::_exit(9);
  found = 0;
  for (int i = 0; i < 2; ++i) read_both();
  ::_exit(found);
}

/// A sandbox of 0 lets each call succeed without a meaning.
template <bool k_copies, bool k_is_late>
constexpr std::array k_sandboxes{
    &read_in_a_sandbox<EINVAL, k_copies, k_is_late>, &read_in_a_sandbox<EPERM, k_copies, k_is_late>,
    &read_in_a_sandbox<EFAULT, k_copies, k_is_late>, &read_in_a_sandbox<0, k_copies, k_is_late>};

TEST(LocalMemory, IsReadByCopiesWhereASandboxAnswersForTheKernel) {
  for (auto* const child : k_sandboxes<true, false>) EXPECT_EXIT(child(), testing::ExitedWithCode(2), "");
  for (auto* const child : k_sandboxes<true, true>) EXPECT_EXIT(child(), testing::ExitedWithCode(2), "");
}

/// A null pointer is no mask: page 0 is read by a copy before that, and other pages are probed by masks still.
TEST(LocalMemory, IsProbedByMasksWhereASandboxRefusesCopies) {
  const auto child = [] {
    const Pages pages("w-");
    std::array<std::byte, 8> into;
    if (read(0, into) != 0) ::_exit(7);
    if (!test::refuse({SYS_process_vm_readv}, EPERM)) ::_exit(9);
    ::_exit(read(pages.at(0), into) == into.size() ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

TEST(LocalMemory, IsUnreadableWhereASandboxRefusesCopiesToo) {
  for (auto* const child : k_sandboxes<false, false>) EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
  for (auto* const child : k_sandboxes<false, true>) EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace jitunwind
