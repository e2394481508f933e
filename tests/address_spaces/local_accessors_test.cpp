// This process through accessors.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/counted_allocations.h"
#include "tests/support/jit_frame.h"
#include "tests/support/pcs_from.h"

#include <libunwind.h>

namespace jitunwind::test {
namespace {

struct Walks {
  std::vector<unw_word_t> local, remote, wrapped;
};

/// Walks one stack in three ways. The third one knows this process only by its callbacks.
void walk_in_three_ways(Walks& walks) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local(&cursor, &context), 0);
  walks.local = pcs_from(cursor);
  ASSERT_EQ(unw_init_remote(&cursor, unw_local_addr_space, &context), 0);
  walks.remote = pcs_from(cursor);
  const unw_addr_space_t wrapped = unw_create_addr_space(unw_get_accessors(unw_local_addr_space), 0);
  ASSERT_NE(wrapped, nullptr);
  ASSERT_EQ(unw_init_remote(&cursor, wrapped, &context), 0);
  walks.wrapped = pcs_from(cursor);
  unw_destroy_addr_space(wrapped);
}

// covers: AS06 AS07
TEST(LocalAccessors, WalkAsTheLocalSpaceDoes) {
  const JitFrame frame;
  Walks walks;
  frame(
      [](void* into) -> void* {
        walk_in_three_ways(*static_cast<Walks*>(into));
        return nullptr;
      },
      &walks);
  EXPECT_GT(walks.local.size(), 5u);
  EXPECT_EQ(walks.local, walks.remote);
  EXPECT_EQ(walks.local, walks.wrapped);
}

/// A destroyed space leaves nothing of what it kept.
// covers: AS05
TEST(LocalAccessors, OfADestroyedSpaceNothingIsLeft) {
  Walks expected;
  walk_in_three_ways(expected);
  std::array<unw_word_t, 256> ips;
  const std::size_t before = allocations_held();
  const unw_addr_space_t space = unw_create_addr_space(unw_get_accessors(unw_local_addr_space), 0);
  const std::size_t made = allocations_held();
  EXPECT_GT(made, before);
  EXPECT_EQ(unw_set_caching_policy(space, UNW_CACHE_GLOBAL), 0);
  EXPECT_EQ(unw_set_cache_size(space, 1000, 0), 0);
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  EXPECT_EQ(unw_init_remote(&cursor, space, &context), 0);
  std::size_t frames = 0;
  do unw_get_reg(&cursor, UNW_REG_IP, &ips[frames++]);
  while (unw_step(&cursor) > 0);
  const std::size_t walked = allocations_held();
  unw_destroy_addr_space(space);
  EXPECT_EQ(allocations_held(), before);
  EXPECT_EQ(walked, made) << "walks allocate nothing";
  EXPECT_EQ(frames, expected.local.size() - 1) << "but for the function that made the others";
}

/// The space cannot be destroyed, either.
// covers: AS05 AS06
TEST(LocalAccessors, AreNeverMissing) {
  EXPECT_NE(unw_get_accessors(unw_local_addr_space), nullptr);
  EXPECT_EQ(unw_get_accessors(nullptr), unw_get_accessors(unw_local_addr_space));
  Walks before, after;
  walk_in_three_ways(before);
  unw_destroy_addr_space(unw_local_addr_space);
  walk_in_three_ways(after);
  ASSERT_GT(before.local.size(), 4u);
  EXPECT_EQ(after.local.size(), before.local.size());
  EXPECT_EQ(after.local.back(), before.local.back());
  EXPECT_EQ(after.wrapped, after.local);
}

TEST(LocalAccessors, ReadAndWriteWithoutFaulting) {
  const unw_accessors_t& a = *unw_get_accessors(unw_local_addr_space);
  static unw_word_t word = 5;
  unw_word_t value = 0;
  EXPECT_EQ(a.access_mem(unw_local_addr_space, reinterpret_cast<unw_word_t>(&word), &value, 0, nullptr), 0);
  EXPECT_EQ(value, 5u);
  value = 6;
  EXPECT_EQ(a.access_mem(unw_local_addr_space, reinterpret_cast<unw_word_t>(&word), &value, 1, nullptr), 0);
  EXPECT_EQ(word, 6u);
  EXPECT_LT(a.access_mem(unw_local_addr_space, 8, &value, 0, nullptr), 0);
  EXPECT_LT(a.access_mem(unw_local_addr_space, 8, &value, 1, nullptr), 0);
}

/// A walk from the context finds the value that was written by the accessor, and the accessor reads the same.
// covers: AC12
TEST(LocalAccessors, HaveTheFloatingPointRegistersThatCallsPreserve) {
  const unw_accessors_t& a = *unw_get_accessors(unw_local_addr_space);
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg) {
    const RegisterInfo* const info = host_arch()->by_libunwind(reg);
    const bool is_held = info && info->reg_class == RegClass::vector && info->preserved;
    unw_fpreg_t value, found;
    std::memset(&value, 0, sizeof value);
    const std::uint64_t wanted = 0x4711'0000'0000'0000u + static_cast<unsigned>(reg);
    std::memcpy(&value, &wanted, sizeof wanted);
    const int written = a.access_fpreg(unw_local_addr_space, reg, &value, 1, &context);
    EXPECT_EQ(written, is_held ? 0 : -UNW_EBADREG) << unw_regname(reg);
    EXPECT_EQ(a.access_fpreg(unw_local_addr_space, reg, &found, 0, &context), written) << unw_regname(reg);
    if (!is_held) continue;
    EXPECT_EQ(std::memcmp(&found, &value, sizeof value), 0) << unw_regname(reg);
    ASSERT_EQ(unw_init_local(&cursor, &context), 0);
    std::memset(&found, 0, sizeof found);
    ASSERT_EQ(unw_get_fpreg(&cursor, reg, &found), 0);
    EXPECT_EQ(std::memcmp(&found, &value, sizeof value), 0) << unw_regname(reg);
  }
  unw_fpreg_t value;
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg)
    EXPECT_EQ(a.access_fpreg(unw_local_addr_space, reg, &value, 0, nullptr), -UNW_EBADREG) << "without a context";
}

// covers: PI07 PI12
TEST(LocalAccessors, KnowCodeThatIsNotOnTheStack) {
  const JitFrame frame;
  unw_proc_info_t info;
  const unw_word_t start = frame.start();
  ASSERT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, start + 1, &info, nullptr), 0);
  EXPECT_EQ(info.start_ip, start);
  std::array<char, 64> name;
  unw_word_t offset = 0;
  ASSERT_EQ(unw_get_proc_name_by_ip(unw_local_addr_space, start + 1, name.data(), name.size(), &offset, nullptr), 0);
  EXPECT_STREQ(name.data(), "jit_frame");
  EXPECT_EQ(offset, 1u);
  EXPECT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, 16, &info, nullptr), -UNW_ENOINFO);
}

// covers: PI06
TEST(LocalAccessors, ProceduresAreWhatWasRegistered) {
  const JitFrame frame(0x1234, 0x5678);
  unw_proc_info_t info;
  ASSERT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, frame.start(), &info, nullptr), 0);
  EXPECT_EQ(info.start_ip, frame.start());
  EXPECT_EQ(info.end_ip, frame.start() + frame.size());
  EXPECT_EQ(info.handler, 0x1234u);
  EXPECT_EQ(info.lsda, 0x5678u);
  EXPECT_EQ(info.gp, 0u);
  EXPECT_EQ(info.flags, 0u);
}

// covers: PI06
TEST(LocalAccessors, TheGlobalPointerIsTheRegisteredOne) {
  static char code[16];
  unw_dyn_info_t registered{};
  registered.start_ip = reinterpret_cast<unw_word_t>(code);
  registered.end_ip = registered.start_ip + sizeof code;
  registered.gp = 0x9abc'def0;
  _U_dyn_register(&registered);
  unw_proc_info_t info;
  const int asked = unw_get_proc_info_by_ip(unw_local_addr_space, registered.start_ip, &info, nullptr);
  _U_dyn_cancel(&registered);
  ASSERT_EQ(asked, 0);
  EXPECT_EQ(info.start_ip, registered.start_ip);
  EXPECT_EQ(info.gp, 0x9abc'def0u);
  EXPECT_EQ(info.handler | info.lsda, 0u);
}

// Code that no symbol covers, behind a function.
asm(R"(
  .text
  .globl jitunwind_test_function
  .type jitunwind_test_function, @function
jitunwind_test_function:
  ret
  .size jitunwind_test_function, . - jitunwind_test_function
  nop
  nop
  nop
)");
extern "C" void jitunwind_test_function();

// covers: PI09
TEST(LocalAccessors, CodeThatNoSymbolCoversHasNoName) {
  const auto function = reinterpret_cast<unw_word_t>(&jitunwind_test_function);
  std::array<char, 64> name;
  unw_word_t offset = 1;
  const auto ask = [&](unw_word_t at) {
    return unw_get_proc_name_by_ip(unw_local_addr_space, at, name.data(), name.size(), &offset, nullptr);
  };
  ASSERT_EQ(ask(function), 0);
  EXPECT_STREQ(name.data(), "jitunwind_test_function");
  EXPECT_EQ(offset, 0u);
  for (const unw_word_t instructions : {1u, 2u}) {
    const unw_word_t behind = instructions * host_arch()->unit;
    EXPECT_EQ(ask(function + behind), -UNW_ENOINFO) << behind;
    EXPECT_STREQ(name.data(), "");
  }
}

/// A function in two pieces: one name, each with a range and rows of its own.
// covers: PI03
TEST(LocalAccessors, PiecesOfAFunctionAreProcedures) {
  const JitFrame hot, cold;
  std::array<char, 64> name;
  unw_proc_info_t info;
  for (const JitFrame* piece : {&hot, &cold}) {
    unw_word_t offset = 0;
    ASSERT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, piece->start() + 24, &info, nullptr), 0);
    EXPECT_EQ(info.start_ip, piece->start());
    ASSERT_EQ(
        unw_get_proc_name_by_ip(unw_local_addr_space, piece->start() + 24, name.data(), name.size(), &offset, nullptr),
        0);
    EXPECT_STREQ(name.data(), "jit_frame");
    EXPECT_EQ(offset, 24u);
  }
}

}  // namespace
}  // namespace jitunwind::test
