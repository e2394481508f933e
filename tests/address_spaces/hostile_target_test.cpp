// Owners of targets that lie. Every call returns an error or an answer after a bounded number of callbacks; answers are
// put back, and the frames found so far stay.
#include <libunwind.h>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "tests/libunwind/context_words.h"
#include "tests/support/last_page.h"

namespace jitunwind::test {
namespace {

constexpr unw_word_t k_code = 0x40'0000;
constexpr unw_word_t k_stack = 0x7fff'0000;
constexpr unw_word_t k_list = 0x20000;

/// Every address has a frame of one word, with a word of code above the other on the stack: an endless chain, unless
/// the test changes it.
class HostileTarget {
 public:
  static HostileTarget& of(void* argument) { return *static_cast<HostileTarget*>(argument); }

  static unw_accessors_t accessors() {
    unw_accessors_t a{};
    a.find_proc_info = [](unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int need, void* argument) {
      HostileTarget& t = of(argument);
      ++t.calls;
      std::memset(info, 0, sizeof *info);
      info->start_ip = ip & ~unw_word_t{0xff};
      info->end_ip = info->start_ip + 0x100;
      info->unwind_info = &t.leaf;
      info->unwind_info_size = sizeof(unw_dyn_proc_info_t);
      t.needed = need != 0;
      const int returned = t.find ? t.find(ip, info) : 0;
      t.found += returned == 0 && need != 0;
      return returned;
    };
    a.put_unwind_info = [](unw_addr_space_t, unw_proc_info_t*, void* argument) { ++of(argument).put_back; };
    a.get_dyn_info_list_addr = [](unw_addr_space_t, unw_word_t* list, void* argument) {
      ++of(argument).calls;
      *list = of(argument).list;
      return 0;
    };
    a.access_mem = [](unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void* argument) {
      HostileTarget& t = of(argument);
      ++t.calls;
      if (write != 0) return -UNW_EINVAL;
      *value = k_code + at % 0x10000;
      return t.memory ? t.memory(at, value) : 0;
    };
    a.access_reg = [](unw_addr_space_t, unw_regnum_t reg, unw_word_t* value, int, void* argument) {
      ++of(argument).calls;
      *value = reg == k_pc ? k_code : k_stack;
      return 0;
    };
    a.resume = [](unw_addr_space_t, unw_cursor_t*, void*) { return 0; };
    a.get_proc_name = [](unw_addr_space_t, unw_word_t, char* buffer, size_t size, unw_word_t* offset, void*) {
      std::memset(buffer, 'x', size);  // not terminated
      *offset = ~unw_word_t{0};
      return 0;
    };
    return a;
  }

  std::function<int(unw_word_t, unw_proc_info_t*)> find;
  std::function<int(unw_word_t, unw_word_t*)> memory;
  unw_word_t list = 0;
  /// Its return address is where SP points: what a call leaves there, or what it has stored.
  struct Leaf : unw_dyn_proc_info_t {
    Leaf() : unw_dyn_proc_info_t{} {
      if (host_arch()->ra_in_memory) return;
      stored.region.insn_count = 64;
      stored.region.op_count = 3;
      stored.region.op[0] = _U_dyn_op(UNW_DYN_ADD, 0, -1, UNW_REG_SP, static_cast<unw_word_t>(-8));
      stored.rest[0] = _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, -1, host_arch()->by_dwarf(host_arch()->ra)->libunwind, 0);
      regions = &stored.region;
    }
    struct {
      unw_dyn_region_info_t region;
      unw_dyn_op_t rest[2];
    } stored{};
  } leaf;
  bool needed = false;  ///< by the last find_proc_info
  std::size_t calls = 0, found = 0, put_back = 0;
};

class HostileTargets : public testing::Test {
 protected:
  ~HostileTargets() override {
    EXPECT_EQ(target.found, target.put_back);
    if (space) unw_destroy_addr_space(space);
  }
  int start() {
    if (!space) space = unw_create_addr_space(&accessors, 0);
    return unw_init_remote(&cursor, space, &target);
  }
  unw_word_t ip() {
    unw_word_t value = 0;
    EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &value), 0);
    return value;
  }
  /// Makes one step from the start, with no more callbacks than that.
  int step_within(std::size_t calls) {
    EXPECT_EQ(start(), 0);
    target.calls = 0;
    const int moved = unw_step(&cursor);
    EXPECT_LE(target.calls, calls);
    if (moved <= 0) {
      EXPECT_EQ(ip(), k_code) << "the frame that was found stays";
    }
    return moved;
  }

  HostileTarget target;
  unw_accessors_t accessors = HostileTarget::accessors();
  unw_addr_space_t space = nullptr;
  unw_cursor_t cursor;
};

TEST_F(HostileTargets, MayMissEveryCallback) {
  accessors = {};
  EXPECT_EQ(start(), -UNW_EINVAL);
  accessors = HostileTarget::accessors();
  const auto without = [&](auto member) {
    if (space) unw_destroy_addr_space(space);
    space = nullptr;
    accessors = HostileTarget::accessors();
    accessors.*member = nullptr;
    const int started = start();
    return started != 0 ? started : unw_step(&cursor);
  };
  EXPECT_EQ(without(&unw_accessors_t::access_reg), -UNW_EINVAL);
  EXPECT_EQ(without(&unw_accessors_t::access_mem), -UNW_EINVAL);
  EXPECT_LE(without(&unw_accessors_t::find_proc_info), 0) << "nothing is known";
  EXPECT_EQ(without(&unw_accessors_t::get_dyn_info_list_addr), 1);
  EXPECT_EQ(without(&unw_accessors_t::access_fpreg), 1);
  EXPECT_EQ(without(&unw_accessors_t::resume), 1);
  EXPECT_EQ(unw_resume(&cursor), -UNW_EINVAL);
  EXPECT_EQ(without(&unw_accessors_t::get_proc_name), 1);
  std::array<char, 8> name;
  EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), nullptr), -UNW_ENOINFO);
  const std::size_t found = target.found;
  EXPECT_EQ(without(&unw_accessors_t::put_unwind_info), 1);
  target.found = found;
}

TEST_F(HostileTargets, FramesFollowEachOtherForEver) {
  ASSERT_EQ(start(), 0);
  for (int i = 0; i < 10'000; ++i) {
    target.calls = 0;
    ASSERT_EQ(unw_step(&cursor), 1) << i;
    ASSERT_LE(target.calls, 8u);
  }
}

/// Any word of the stack may be unreadable. The error is that word's, if it was needed, and the frames before it are
/// found.
TEST_F(HostileTargets, FailAtAnyWordOfTheStack) {
  unsigned errors = 0;
  for (int which = 0; which < 40; ++which) {
    int reads = 0;
    target.memory = [&](unw_word_t at, unw_word_t*) { return at >= k_stack && reads++ == which ? -4711 : 0; };
    ASSERT_EQ(start(), 0);
    int steps = 0, moved = 1;
    while (steps < 64 && (moved = unw_step(&cursor)) > 0) ++steps;
    if (moved > 0) continue;
    ++errors;
    EXPECT_EQ(moved, -4711) << which;
    EXPECT_EQ(ip(), k_code + static_cast<unw_word_t>(steps == 0 ? 0 : 8 * (steps - 1))) << which;
    EXPECT_EQ(unw_step(&cursor), -4711) << "it stays so";
  }
  EXPECT_GT(errors, 15u);
}

/// Words of a list whose every procedure is followed by another, elsewhere.
int word_of_endless_list(unw_word_t at, unw_word_t* value, bool cyclic) {
  if (at == k_list) return *value = 1, 0;
  if (at == k_list + 8) return *value = k_list + 0x1000, 0;
  if (at < k_list + 0x1000 || at >= 0x2000'0000) return 0;
  const unw_word_t descriptor = at & ~unw_word_t{0x7f};
  *value = 0;
  if (at == descriptor) *value = cyclic ? k_list + 0x1000 : descriptor + 0x80;  // next
  if (at == descriptor + 16) *value = 0x10;
  if (at == descriptor + 24) *value = 0x20;
  return 0;
}

TEST_F(HostileTargets, ListsHaveNoEnd) {
  target.list = k_list;
  for (const bool cyclic : {true, false}) {
    target.memory = [=](unw_word_t at, unw_word_t* value) { return word_of_endless_list(at, value, cyclic); };
    EXPECT_LT(step_within(std::size_t{1} << 25), 0) << cyclic;
    std::array<char, 8> name;
    EXPECT_LT(unw_get_proc_name(&cursor, name.data(), name.size(), nullptr), 0);
  }
}

/// A list that changes at every look.
TEST_F(HostileTargets, ListsChangeUnderTheReader) {
  target.list = k_list;
  for (const bool cyclic : {true, false}) {
    unw_word_t looks = 0;
    target.memory = [&](unw_word_t at, unw_word_t* value) {
      if (at == k_list) return *value = 1 | ++looks << 33, 0;  // version, generation
      return word_of_endless_list(at, value, cyclic);
    };
    EXPECT_LT(step_within(std::size_t{1} << 24), 0) << cyclic;
    EXPECT_GT(looks, 1u);
  }
}

TEST_F(HostileTargets, RegionsOfAListHaveNoEnd) {
  target.list = k_list;
  for (const unw_word_t op_count : {unw_word_t{1}, unw_word_t{0xffff'ffff}}) {
    target.memory = [=](unw_word_t at, unw_word_t* value) {
      *value = 0;
      if (at == k_list) *value = 1;
      if (at == k_list + 8) *value = k_list + 0x1000;
      if (at == k_list + 0x1010) *value = k_code;
      if (at == k_list + 0x1018) *value = k_code + 0x100;
      if (at == k_list + 0x1048) *value = k_list + 0x2000;             // regions
      if (at == k_list + 0x2000) *value = k_list + 0x2000;             // next: itself
      if (at == k_list + 0x2008) *value = 0 | op_count << 32;          // of no instructions
      if (at >= k_list + 0x2010 && at < 0x1'0000'0000) *value = 0x04;  // ADD, for ever
      return 0;
    };
    EXPECT_LT(step_within(std::size_t{1} << 25), 0) << op_count;
  }
}

/// A callback's regions in host memory may form a circle.
TEST_F(HostileTargets, RegionsInHostMemoryRunInCircles) {
  unw_dyn_region_info_t first{}, second{};
  first.next = &second;
  second.next = &first;
  unw_dyn_proc_info_t circle{};
  circle.regions = &first;
  target.find = [&](unw_word_t, unw_proc_info_t* info) { return info->unwind_info = &circle, 0; };
  EXPECT_LT(step_within(16), 0);
  first.next = &first;
  EXPECT_LT(step_within(16), 0);
}

TEST_F(HostileTargets, SizesInHostMemoryAreLies) {
  const LastPage page;
  auto* const region = page.last<unw_dyn_region_info_t>(_U_dyn_region_info_size(1));
  region->op_count = 1u << 20;
  region->op[0] = _U_dyn_op(UNW_DYN_ADD, 0, 0, UNW_REG_SP, static_cast<unw_word_t>(-8));
  unw_dyn_proc_info_t described{};
  described.regions = region;
  target.find = [&](unw_word_t, unw_proc_info_t* info) { return info->unwind_info = &described, 0; };
  EXPECT_LT(step_within(16), 0);

  unw_dyn_table_info_t table{};
  table.table_len = 1u << 20;
  table.table_data = page.last<unw_word_t>();
  target.find = [&](unw_word_t, unw_proc_info_t* info) {
    info->format = UNW_INFO_FORMAT_TABLE;
    info->unwind_info = &table;
    info->unwind_info_size = sizeof table;
    return 0;
  };
  EXPECT_LE(step_within(64), 0);
}

TEST_F(HostileTargets, TablesAreLongerThanMemory) {
  unw_dyn_remote_table_info_t table{0, 0, ~unw_word_t{0}, 0x1000};
  for (const int format : {UNW_INFO_FORMAT_REMOTE_TABLE, UNW_INFO_FORMAT_REMOTE_TABLE_64, UNW_INFO_FORMAT_IP_OFFSET}) {
    for (const unw_word_t length : {unw_word_t{1}, unw_word_t{1} << 40, ~unw_word_t{0}}) {
      table.table_len = length;
      target.find = [&](unw_word_t, unw_proc_info_t* info) {
        info->format = format;
        info->unwind_info = &table;
        info->unwind_info_size = sizeof table;
        return 0;
      };
      EXPECT_LE(step_within(2048), 0) << format << " " << length;
    }
  }
}

TEST_F(HostileTargets, ProceduresAreNotWhereTheyWereAskedFor) {
  for (const auto& range :
       {std::pair<unw_word_t, unw_word_t>{0, 0}, {k_code + 0x100, k_code}, {1, 2}, {0, ~unw_word_t{0}}}) {
    target.find = [range](unw_word_t, unw_proc_info_t* info) {
      info->start_ip = range.first;
      info->end_ip = range.second;
      return 0;
    };
    (void)step_within(16);
    unw_proc_info_t info;
    EXPECT_EQ(unw_get_proc_info_by_ip(space, k_code, &info, &target), 0);
  }
}

/// A procedure as large as memory, of which each answer describes one instruction.
TEST_F(HostileTargets, StatesOfRegistersHaveNoEnd) {
  target.find = [this](unw_word_t ip, unw_proc_info_t* info) {
    info->start_ip = target.needed ? ip : 0;
    info->end_ip = target.needed ? ip + host_arch()->unit : ~unw_word_t{0};
    return 0;
  };
  ASSERT_EQ(start(), 0);
  std::size_t states = 0;
  const auto count = [](void* into, void*, size_t, unw_word_t, unw_word_t) {
    return ++*static_cast<std::size_t*>(into), 0;
  };
  EXPECT_EQ(unw_reg_states_iterate(&cursor, count, &states), -UNW_EBADFRAME);
  EXPECT_EQ(states, std::size_t{1} << 20);
}

TEST_F(HostileTargets, NamesAreNotTerminated) {
  ASSERT_EQ(start(), 0);
  std::array<char, 16> name;
  for (std::size_t size = 1; size < name.size(); ++size) {
    name.fill('?');
    unw_word_t offset = 0;
    EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), size, &offset), 0);
    EXPECT_EQ(std::string(name.data()), std::string(size - 1, 'x'));
    EXPECT_EQ(name[size], '?') << "overrun";
  }
  EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), 0, nullptr), 0);
}

}  // namespace
}  // namespace jitunwind::test
