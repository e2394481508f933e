// Memory that the kernel copies: everything up to the end of readable memory is read, whatever happens to it, and
// whichever system calls are allowed.
#include "jitunwind/unwind_core/memory/copied.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "jitunwind/unwind_core/memory/process.h"
#include "tests/support/allowed_calls.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_page = 4096;

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Two pages of numbers, followed by an unmapped page.
class Pages {
 public:
  Pages()
      : base_(static_cast<std::byte*>(
            ::mmap(nullptr, 3 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (std::size_t i = 0; i < 2 * k_page; ++i) base_[i] = static_cast<std::byte>(i * 7 + i / k_page);
    ::munmap(base_ + 2 * k_page, k_page);
  }
  ~Pages() { ::munmap(base_, 3 * k_page); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* at(std::size_t offset) const { return base_ + offset; }

 private:
  std::byte* base_;
};

/// Reads `size` bytes from an offset on; checks that it gets the existing ones, and no more.
bool reads_right(const Pages& pages, std::size_t offset, std::size_t size) {
  std::vector<std::byte> into(size, std::byte{0xee});
  MemoryWindow window;
  errno = 4711;
  const std::size_t got = CopiedMemory().read(addr_of(pages.at(offset)), into, window);
  const std::size_t there = offset < 2 * k_page ? std::min(size, 2 * k_page - offset) : 0;
  return got == there && errno == 4711 && std::memcmp(into.data(), pages.at(offset), there) == 0;
}

bool reads_all_right() {
  const Pages pages;
  for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, k_page - 3, k_page, 2 * k_page - 8, 2 * k_page})
    for (const std::size_t size : {1u, 2u, 8u, 100u, 4096u, 5000u, 8192u})
      if (!reads_right(pages, offset, size)) return false;
  std::array<std::byte, 16> into;
  MemoryWindow window;
  for (const Addr nowhere : {Addr{0}, Addr{1}, Addr{1} << 47, Addr{1} << 63, ~Addr{0}, ~Addr{0} - 7})
    if (CopiedMemory().read(nowhere, into, window) != 0) return false;
  return !CopiedMemory().view(addr_of(pages.at(0)), 8, window);
}

TEST(CopiedMemory, IsReadAsFarAsItReaches) { EXPECT_TRUE(reads_all_right()); }

/// Writes to the part of the stack in which the functions called next have their frames.
[[gnu::noinline]] void leave_ones_on_the_stack() {
  std::array<volatile unsigned char, k_page> left;
  for (volatile unsigned char& byte : left) byte = 0xff;
}

/// Neither the pipe nor the file may be used, which would stand in for it.
TEST(CopiedMemory, IsCopiedAtOnceWhateverWasOnTheStack) {
  const Pages pages;
  std::array<std::byte, 16> into;
  MemoryWindow window;
  leave_ones_on_the_stack();
  EXPECT_EQ(copy_at_once(addr_of(pages.at(8)), into), long{into.size()});
  EXPECT_EQ(std::memcmp(into.data(), pages.at(8), into.size()), 0);

  const ProcessMemory process(::getpid());
  leave_ones_on_the_stack();
  EXPECT_EQ(process.read(addr_of(pages.at(40)), into, window), into.size());
  EXPECT_EQ(std::memcmp(into.data(), pages.at(40), into.size()), 0);
  leave_ones_on_the_stack();
  EXPECT_TRUE(process.write(addr_of(pages.at(80)), into, window));
  EXPECT_EQ(std::memcmp(into.data(), pages.at(80), into.size()), 0);
}

/// The code stays, and is read in place.
TEST(CopiedMemory, HasTheProgramsText) {
  std::array<std::byte, 64> into;
  MemoryWindow window;
  const void* const code = reinterpret_cast<const void*>(&reads_all_right);
  ASSERT_EQ(CopiedMemory().read(addr_of(code), into, window), into.size());
  EXPECT_EQ(std::memcmp(into.data(), code, into.size()), 0);
}

TEST(CopiedMemory, EndsWithATruncatedFile) {
  const int file = ::memfd_create("truncated", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 2 * k_page), 0);
  void* const mapped = ::mmap(nullptr, 2 * k_page, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::array<std::byte, 16> into;
  MemoryWindow window;
  EXPECT_EQ(CopiedMemory().read(addr_of(mapped) + k_page, into, window), into.size());
  ASSERT_EQ(::ftruncate(file, k_page), 0);
  EXPECT_EQ(CopiedMemory().read(addr_of(mapped) + k_page, into, window), 0u);
  EXPECT_EQ(CopiedMemory().read(addr_of(mapped) + k_page - 8, into, window), 8u);
  ::munmap(mapped, 2 * k_page);
  ::close(file);
}

TEST(CopiedMemory, MayGoAnyTime) {
  const Pages pages;
  std::atomic<bool> stop{false};
  std::thread comes_and_goes([&] {
    while (!stop) {
      ::munmap(pages.at(0), k_page);
      ::mmap(pages.at(0), k_page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
  });
  std::size_t read = 0;
  for (int i = 0; i < 100000; ++i) {
    std::array<std::byte, 64> into;
    MemoryWindow window;
    read += CopiedMemory().read(addr_of(pages.at(0)), into, window);
  }
  stop = true;
  comes_and_goes.join();
  EXPECT_GT(read, 0u);
}

/// A sandbox answers for the kernel.
TEST(CopiedMemory, IsReadThroughAPipeWhereItMustNotBeCopiedAtOnce) {
  for (const int answer : {EPERM, ENOSYS, EACCES}) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!refuse({SYS_process_vm_readv}, static_cast<unsigned>(answer))) ::_exit(8);
      const int before = ::open("/dev/null", O_RDONLY);
      const bool is_right = reads_all_right();
      const int after = ::open("/dev/null", O_RDONLY);
      ::_exit(!is_right ? 7 : after != before + 1 ? 6 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "6: files are left open";
  }
}

}  // namespace
}  // namespace jitunwind::test
