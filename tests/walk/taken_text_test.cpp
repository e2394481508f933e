// The text of a loaded library cannot be read, as if a program had made it execute-only. Walks pass it by its call
// frame information, its names come from its file, and the walk ends where neither gives a caller.
#include <libunwind.h>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/copied.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

extern "C" {
void through_described(void (*function)());
void through_bare(void (*function)());
}

namespace jitunwind::test {
namespace {

Addr addr_of(void (*function)(void (*)())) { return reinterpret_cast<std::uintptr_t>(function); }

/// Makes the library's text unreadable while it lives. The library's functions may not run meanwhile.
class Taken {
 public:
  Taken() {
    const Module* const module = find_lasting_module(addr_of(&through_described));
    if (!module) std::abort();
    text_ = {page_of(module->text.begin), page_of(module->text.end + k_page_size - 1)};
    protect(PROT_NONE);
  }
  ~Taken() { protect(PROT_READ | PROT_EXEC); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  void protect(int protection) const {
    void* const begin = reinterpret_cast<void*>(static_cast<std::uintptr_t>(text_.begin));
    if (::mprotect(begin, static_cast<std::size_t>(text_.size()), protection) != 0) std::abort();
  }
  AddrRange text_{};
};

/// The stack as every interface shows it.
struct Seen {
  std::vector<Addr> stepped{}, listed{}, walked{};
  std::vector<std::string> named{};
  int end = 1;
};

[[gnu::noinline]] Seen look() {
  Seen seen;
  std::array<void*, 128> listed;
  const int count = unw_backtrace(listed.data(), static_cast<int>(listed.size()));
  for (int i = 0; i < count; ++i) seen.listed.push_back(reinterpret_cast<std::uintptr_t>(listed[std::size_t(i)]));
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    unw_word_t ip = 0, offset = 0;
    std::array<char, 128> name{};
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    (void)unw_get_proc_name(&cursor, name.data(), name.size(), &offset);
    seen.stepped.push_back(ip);
    seen.named.push_back(name.data());
    seen.end = unw_step(&cursor);
  } while (seen.end > 0);
  for (const Frame& frame : walk_here()) seen.walked.push_back(frame.pc());
  return seen;
}

Seen g_before, g_taken;
void look_twice() {
  for (Seen* const seen : {&g_before, &g_taken}) *seen = look();  // what walks keep is kept
  const Taken taken;
  unw_flush_cache(unw_local_addr_space, 0, 0);
  g_taken = look();
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns all frames except for those of the two functions themselves, whose pcs differ.
std::vector<Addr> callers(const std::vector<Addr>& pcs) {
  return {pcs.begin() + std::min<std::ptrdiff_t>(2, std::ssize(pcs)), pcs.end()};
}

TEST(TakenText, IsNotRead) {
  const Addr at = addr_of(&through_described);
  std::array<std::byte, 16> bytes;
  MemoryWindow local, copied;
  EXPECT_EQ(LocalMemory().read(at, bytes, local), bytes.size());
  EXPECT_EQ(CopiedMemory().read(at, bytes, copied), bytes.size());
  const Taken taken;
  MemoryWindow later;
  EXPECT_EQ(LocalMemory().read(at, bytes, later), 0u);
  EXPECT_EQ(CopiedMemory().read(at, bytes, copied), 0u);
}

TEST(TakenText, IsWalkedThroughByItsCallFrameInformation) {
  through_described(&look_twice);
  EXPECT_TRUE(has(g_before.named, "through_described"));
  EXPECT_EQ(g_taken.end, 0);
  EXPECT_EQ(callers(g_taken.stepped), callers(g_before.stepped));
  EXPECT_EQ(callers(g_taken.listed), callers(g_before.listed));
  EXPECT_EQ(callers(g_taken.walked), callers(g_before.walked));
  EXPECT_EQ(g_taken.named, g_before.named);
}

TEST(TakenText, EndsAWalkWhereNothingElseTells) {
  through_bare(&look_twice);
  ASSERT_TRUE(has(g_before.named, "through_bare"));
#ifdef __x86_64__  // elsewhere the linkage stub that calls it jumps by a register, and no guess is made behind that
  EXPECT_EQ(g_before.end, 0) << "what is read is followed";
#endif
  EXPECT_LT(g_taken.end, 0);
  const auto bare = std::find(g_taken.named.begin(), g_taken.named.end(), "through_bare");
  EXPECT_EQ(std::distance(bare, g_taken.named.end()), 1) << "the last frame";
}

/// The library has no build id, so its contents identify it, as far as they can be read.
TEST(TakenText, HasTheNamesOfItsFile) {
  const Taken taken;
  std::array<char, 64> name{};
  unw_word_t offset = 0;
  ASSERT_EQ(
      unw_get_proc_name_by_ip(unw_local_addr_space, addr_of(&through_bare), name.data(), name.size(), &offset, nullptr),
      0);
  EXPECT_STREQ(name.data(), "through_bare");
}

}  // namespace
}  // namespace jitunwind::test
