// dyn_info/libunwind-dynamic.h in C and in C++: both write the same bytes.
#include "jitunwind/dyn_info/libunwind-dynamic.h"
// The header is included a second time, as the headers of two libraries may include it.
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "tests/directives/header_ops.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

struct Wanted {
  int tag, qp, reg, when;
  std::int64_t val;
};

constexpr Wanted k_wanted[HEADER_OPS] = {
    {1, 0, 7, 3, 6},         {2, 0, 3, 4, -24}, {3, 0, 6, 0, 0},       {4, 0, 7, 8, -24},
    {4, 0, 7, 9, INT64_MIN}, {5, 0, 0, 5, 1},   {6, 0, 0, -1, 100402}, {7, 0, 0, -1, 100402},
    {8, 0, 0, -1, -4096},    {0, 0, 0, -1, 0},  {-1, -2, -4, -3, -5},  {4, 0, 7, -1, -8},
};

// covers: DY32 DY39
TEST(DynamicHeader, MacrosGiveTheSameInBothLanguages) {
  unw_dyn_op_t in_c[HEADER_OPS], in_cpp[HEADER_OPS];
  std::memset(in_c, 0x5a, sizeof in_c);
  std::memset(in_cpp, 0x5a, sizeof in_cpp);
  ops_made_by_c(in_c);
  FILL_OPS(in_cpp);
  EXPECT_EQ(std::memcmp(in_c, in_cpp, sizeof in_c), 0);
  for (int i = 0; i < HEADER_OPS; ++i) {
    const unw_dyn_op_t& op = in_cpp[i];
    const Wanted& wanted = k_wanted[i];
    EXPECT_EQ(op.tag, wanted.tag) << i;
    EXPECT_EQ(op.qp, wanted.qp) << i;
    EXPECT_EQ(op.reg, wanted.reg) << i;
    EXPECT_EQ(op.when, wanted.when) << i;
    EXPECT_EQ(static_cast<std::int64_t>(op.val), wanted.val) << i;
  }
}

// covers: DY15 DY32
TEST(DynamicHeader, LayoutIsThatOfEveryReader) {
  EXPECT_EQ(sizeof(unw_dyn_op_t), 16u);
  EXPECT_EQ(offsetof(unw_dyn_op_t, tag), 0u);
  EXPECT_EQ(offsetof(unw_dyn_op_t, qp), 1u);
  EXPECT_EQ(offsetof(unw_dyn_op_t, reg), 2u);
  EXPECT_EQ(offsetof(unw_dyn_op_t, when), 4u);
  EXPECT_EQ(offsetof(unw_dyn_op_t, val), 8u);
  EXPECT_EQ(sizeof(unw_dyn_info_t), 80u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, next), 0u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, prev), 8u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, start_ip), 16u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, end_ip), 24u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, gp), 32u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, format), 40u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u), 48u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.pi.name_ptr), 48u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.pi.handler), 56u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.pi.flags), 64u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.pi.regions), 72u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.rti.segbase), 56u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.rti.table_len), 64u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.ti.table_data), 72u);
  EXPECT_EQ(offsetof(unw_dyn_info_t, u.rti.table_data), 72u);
  EXPECT_EQ(offsetof(unw_dyn_region_info_t, insn_count), 8u);
  EXPECT_EQ(offsetof(unw_dyn_region_info_t, op_count), 12u);
  EXPECT_EQ(offsetof(unw_dyn_region_info_t, op), 16u);
  EXPECT_EQ(offsetof(unw_dyn_info_list_t, generation), 4u);
  EXPECT_EQ(offsetof(unw_dyn_info_list_t, first), 8u);
}

TEST(DynamicHeader, EnumeratorsHaveTheirNumbers) {
  EXPECT_EQ(UNW_DYN_STOP, 0);
  EXPECT_EQ(UNW_DYN_SAVE_REG, 1);
  EXPECT_EQ(UNW_DYN_SPILL_FP_REL, 2);
  EXPECT_EQ(UNW_DYN_SPILL_SP_REL, 3);
  EXPECT_EQ(UNW_DYN_ADD, 4);
  EXPECT_EQ(UNW_DYN_POP_FRAMES, 5);
  EXPECT_EQ(UNW_DYN_LABEL_STATE, 6);
  EXPECT_EQ(UNW_DYN_COPY_STATE, 7);
  EXPECT_EQ(UNW_DYN_ALIAS, 8);
  EXPECT_EQ(UNW_INFO_FORMAT_DYNAMIC, 0);
  EXPECT_EQ(UNW_INFO_FORMAT_TABLE, 1);
  EXPECT_EQ(UNW_INFO_FORMAT_REMOTE_TABLE, 2);
  EXPECT_EQ(UNW_INFO_FORMAT_ARM_EXIDX, 3);
  EXPECT_EQ(UNW_INFO_FORMAT_IP_OFFSET, 4);
  EXPECT_EQ(UNW_INFO_FORMAT_REMOTE_TABLE_64, 5);
  EXPECT_EQ(_U_QP_TRUE, 0);
}

// covers: DY30
TEST(DynamicHeader, RegionsAreAsLargeAsTheirDirectives) {
  for (const int n : {0, 1, 5, 1000}) {
    EXPECT_EQ(_U_dyn_region_info_size(n), 16u + 16u * static_cast<unsigned>(n));
    EXPECT_EQ(_U_dyn_region_size(n), _U_dyn_region_info_size(n));
  }
}

}  // namespace
