// An address space made of callbacks, in a target of three frames that write down how they are called.
#pragma once

#include <gtest/gtest.h>
#include <libunwind.h>

#include "jitunwind/unwind_core/arch/arch.h"
#include "tests/address_spaces/recording_target.h"
#include "tests/libunwind/context_words.h"

namespace jitunwind::test {

inline constexpr unw_word_t k_code = 0x40'0000;
inline constexpr unw_word_t k_stack = 0x7fff'0000;

inline const Arch& k_arch = *host_arch();
/// The size of a frame's return address if a call has pushed it.
inline const unw_word_t k_pushed_by_call = k_arch.ra_in_memory ? 8 : 0;
/// A register that calls do not preserve.
inline constexpr int k_scratch = UNW_REG_EH;

/// Regions in host memory of a frame with a frame pointer, which points at its caller's; above that is its return
/// address: push rbp; mov rbp,rsp; ... or stp x29, x30, [sp, #-16]!; mov x29, sp; ...
struct FrameWithFp {
  FrameWithFp() {
    region.insn_count = static_cast<int>(64 / k_arch.unit);
    region.op_count = 5;
    ops[0] = _U_dyn_op(UNW_DYN_ADD, 0, 0, UNW_REG_SP, k_pushed_by_call - 16);
    ops[1] = _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 0, k_fp, 0);
    ops[2] = _U_dyn_op(UNW_DYN_SAVE_REG, 0, static_cast<int>(4 / k_arch.unit), UNW_REG_SP, k_fp);
    ops[3] = ops[4] = _U_dyn_op(UNW_DYN_STOP, 0, 0, 0, 0);
    if (!k_arch.ra_in_memory) {
      ops[3] = ops[2];
      ops[2] = _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 0, k_arch.by_dwarf(k_arch.ra)->libunwind, 8);
    }
    info.regions = &region;
  }
  // A region, and the directives behind its first one.
  unw_dyn_region_info_t region{};
  unw_dyn_op_t rest[4]{};
  unw_dyn_op_t* const ops = region.op;
  unw_dyn_proc_info_t info{};
};

class AddressSpaces : public testing::Test {
 protected:
  AddressSpaces() {
    accessors = RecordingTarget::accessors();
    // Three frames, each 0x1000 of code apart and 0x100 of stack, the last one without a caller.
    for (unw_word_t i = 0; i < 3; ++i) {
      const unw_word_t fp = k_stack + 0x100 * i;
      target.memory[fp] = fp + 0x100;
      target.memory[fp + 8] = i == 2 ? 0 : k_code + 0x1000 * (i + 1) + 0x20;
    }
    target.registers = {
        {k_pc, k_code + 0x20}, {UNW_REG_SP, k_stack - 0x40}, {k_fp, k_stack}, {k_kept, 0xb}, {k_scratch, 0xa}};
    target.find = [this](unw_word_t ip, unw_proc_info_t* info, int need) {
      if (ip < k_code || ip >= k_code + 0x3000) return -UNW_ENOINFO;
      info->start_ip = ip & ~unw_word_t{0xfff};
      info->end_ip = info->start_ip + 0x40;
      info->gp = 0;
      info->lsda = info->handler = 0;
      info->flags = 0;
      if (need) describe(info);
      return 0;
    };
    describe = [this](unw_proc_info_t* info) {
      info->format = UNW_INFO_FORMAT_DYNAMIC;
      info->unwind_info = &frame.info;
      info->unwind_info_size = sizeof frame.info;
    };
  }
  ~AddressSpaces() override {
    EXPECT_EQ(target.mistakes, "");
    EXPECT_TRUE(target.held.empty()) << "not put back";
    if (space) unw_destroy_addr_space(space);
  }
  void create() {
    space = unw_create_addr_space(&accessors, 0);
    ASSERT_NE(space, nullptr);
    target.expected_space = space;
  }
  int start(unw_cursor_t& cursor) {
    if (!space) create();
    return unw_init_remote(&cursor, space, &target);
  }
  /// Writes the return address of code without a frame, whose stack pointer is `sp`.
  void return_from_leaf(unw_word_t sp, unw_word_t address) {
    if (k_arch.ra_in_memory)
      target.memory[sp] = address;
    else
      target.registers[k_arch.by_dwarf(k_arch.ra)->libunwind] = address;
  }
  static unw_word_t reg(unw_cursor_t& cursor, int number) {
    unw_word_t value = 0;
    EXPECT_EQ(unw_get_reg(&cursor, number, &value), 0) << number;
    return value;
  }
  /// Returns the IPs of a walk, and the result that ended it.
  std::pair<std::vector<unw_word_t>, int> walk() {
    unw_cursor_t cursor;
    EXPECT_EQ(start(cursor), 0);
    std::vector<unw_word_t> ips;
    int moved = 1;
    while (moved > 0) {
      ips.push_back(reg(cursor, UNW_REG_IP));
      moved = unw_step(&cursor);
    }
    return {ips, moved};
  }
  static std::vector<unw_word_t> all_ips() { return {k_code + 0x20, k_code + 0x1020, k_code + 0x2020}; }

  FrameWithFp frame;
  std::function<void(unw_proc_info_t*)> describe;
  RecordingTarget target;
  unw_accessors_t accessors;
  unw_addr_space_t space = nullptr;
};

}  // namespace jitunwind::test
