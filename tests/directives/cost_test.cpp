// Lookups run in signal handlers: they allocate nothing and use little stack, whatever the description is.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cstring>
#include <functional>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "tests/rows/row_case.h"

namespace {
std::atomic<bool> g_counting{false};
std::atomic<unsigned> g_allocations{0};
}  // namespace

// The sanitizers bring their own allocator and need stack of their own, so nothing can be measured.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(JITUNWIND_CLANG_SANITIZER)
#define MEASURES 1
extern "C" {
void* __libc_malloc(std::size_t);
void* malloc(std::size_t size) {
  if (g_counting) ++g_allocations;
  return __libc_malloc(size);
}
}
#endif

namespace jitunwind::test {
namespace {

using rows::CaseRegion;
using rows::k_code;

// A whole step may use 16 KiB; this is the part of the lookup.
[[maybe_unused]] constexpr std::size_t k_stack = 12 * 1024;

ucontext_t g_main, g_other;
std::function<void()> g_work;

/// Bytes of stack that `work` touches.
std::size_t stack_of(std::function<void()> work) {
  constexpr std::size_t size = 256 * 1024;
  auto* const stack =
      static_cast<unsigned char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(stack, 0xa5, size);
  g_work = std::move(work);
  getcontext(&g_other);
  g_other.uc_stack.ss_sp = stack;
  g_other.uc_stack.ss_size = size;
  g_other.uc_link = &g_main;
  makecontext(
      &g_other, [] { g_work(); }, 0);
  swapcontext(&g_main, &g_other);
  std::size_t untouched = 0;
  while (untouched < size && stack[untouched] == 0xa5) ++untouched;
  munmap(stack, size);
  return size - untouched;
}

std::vector<unw_dyn_op_t> ops(std::initializer_list<std::string> texts) {
  std::vector<unw_dyn_op_t> made;
  for (const std::string& text : texts) made.push_back(rows::parse_directive(text, arch::x86_64));
  return made;
}

class LookupCost : public testing::Test {
 protected:
  /// The last registered procedure, at its last byte.
  void expect_cheap(const char* what, const std::string& expected) {
    MemoryWindow window;
    FrameRow row;
    Found found = false;
    const auto look_up = [&] {
      Lookup lookup(local_space(), CodeAddress::interrupted(infos_.back()->end_ip - 1), window);
      found = local_space().find_row(lookup, row);
    };
    look_up();
    EXPECT_EQ(!found ? error_name(found.error().code) : *found ? to_text(row, arch::x86_64) : "no row", expected);
    g_allocations = 0;
    g_counting = true;
    look_up();
    g_counting = false;
    const std::size_t stack = stack_of(look_up);
    RecordProperty(std::string(what) + "_stack_bytes", static_cast<int>(stack));
#if defined(MEASURES)
    EXPECT_EQ(g_allocations, 0u) << what;
    EXPECT_LT(stack, k_stack) << what;
    EXPECT_GT(stack, 1000u) << what;
#endif
  }
  void add(const std::vector<CaseRegion>& regions, std::uint64_t size = 0x1000) {
    const Addr at = k_code + 0x10000 * infos_.size();
    procedures_.push_back(std::make_unique<rows::CaseProcedure>(regions, AddrRange{at, at + size}));
    infos_.push_back(std::make_unique<unw_dyn_info_t>(procedures_.back()->info()));
    ASSERT_TRUE(register_procedure(infos_.back().get()));
  }
  ~LookupCost() override {
    for (const auto& info : infos_) EXPECT_TRUE(cancel_procedure(info.get()));
  }
  Addr last() const { return infos_.back()->start_ip; }

 private:
  std::vector<std::unique_ptr<rows::CaseProcedure>> procedures_;
  std::vector<std::unique_ptr<unw_dyn_info_t>> infos_;
};

TEST_F(LookupCost, OrdinaryFrames) {
  add({{0x1000, ops({"ADD rsp,-8 @0", "SPILL_SP_REL rbp,0 @0", "SAVE_REG rsp,rbp @3", "ADD rsp,-64 @7"}), 0, -1}});
  expect_cheap("ordinary", "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
}

TEST_F(LookupCost, StatesThatAreRebuilt) {
  std::vector<CaseRegion> regions;
  for (int i = 0; i < 100; ++i) {
    const std::string label = std::to_string(i);
    regions.push_back({8, ops({"ADD rsp,-8 @0", "LABEL_STATE " + label + " @0", "ADD rsp,-64 @1"}), 0, -1});
    regions.push_back({8, ops({"COPY_STATE " + label, "ADD rsp,-16 @0"}), 0, -1});
  }
  regions.push_back({8, ops({"POP_FRAMES 50 @1"}), 0, -1});
  regions.push_back({8, ops({"COPY_STATE 40 @1"}), 0, -1});
  add(regions);
  expect_cheap("rebuilt", "cfa=rsp+976 ra=[cfa-8]");
}

TEST_F(LookupCost, LongListsInDisorder) {
  CaseRegion region{0x1000, {}, 0, -1};
  for (int i = 0; i < 1000; ++i) region.ops.push_back(_U_dyn_op(UNW_DYN_ADD, 0, 3 * ((i * 7) % 1000), 7, -8));
  add({region});
  expect_cheap("disorder", "cfa=rsp+8008 ra=[cfa-8]");
}

TEST_F(LookupCost, AliasesInARow) {
  add({{0, ops({"ALIAS " + std::to_string(reinterpret_cast<std::uintptr_t>(&stack_of) + 4)}), 0, -1}});
  for (int i = 0; i < 7; ++i)
    add({{0, ops({"ALIAS " + std::to_string(last())}), 0, -1}, {0, ops({"SAVE_REG r12,rcx"}), 0, -1}});
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(reinterpret_cast<std::uintptr_t>(&stack_of) + 4), window);
  FrameRow row;
  ASSERT_TRUE(*local_space().find_row(lookup, row));
  ASSERT_TRUE(row.set(12, RegRule::in_reg(2)));
  expect_cheap("aliases", to_text(row, arch::x86_64));
}

}  // namespace
}  // namespace jitunwind::test
