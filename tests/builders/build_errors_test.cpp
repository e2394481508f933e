// build() refuses mistakes and says where they are: every code of docs/directives.md "Validation" that a builder can
// reach. It cannot reach E_FORMAT and E_FLAGS, because it writes these fields itself.
#include <gtest/gtest.h>

#include <vector>

#include "tests/builders/described.h"

namespace jitunwind {
namespace {

template <class Builder>
struct Refusal {
  Builder builder;
  const char* text;  ///< BuildError::text()
};

template <class Builder>
void expect_refused(const std::vector<Refusal<Builder>>& refusals) {
  for (const auto& r : refusals) {
    const auto built = r.builder.build();
    EXPECT_EQ(built ? "built" : built.error().text(), r.text);
  }
}

namespace x64 {
using namespace x86_64;

Builder with_frame() { return describe().region(32).push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp); }

// covers: DY41
TEST(BuildErrors, OfDirectives) {
  unw_dyn_op_t odd{};
  odd.tag = 99;
  unw_dyn_op_t predicated{};
  predicated.tag = UNW_DYN_ADD;
  predicated.qp = 5;
  predicated.reg = 7;
  predicated.when = 1;
  predicated.val = static_cast<unw_word_t>(-8);
  const Builder balanced = describe().region(8).push({0, 1}, rbx).pop({6, 7}, rbx);
  Builder endless = describe();
  for (int i = 0; i < 4097; ++i) endless.region(0);

  expect_refused<Builder>({
      {describe().size(0).push({0, 1}, rbx),
       "push({0, 1}, rbx): E_WHEN: behind the end of the procedure, which has 0 bytes\n"},
      {describe().region(4).op(odd),
       "region 0, directive 0 (TAG_99 rax,0 @0), offset +1: E_TAG: unknown directive before STOP\n"},
      {describe().region(4).op(predicated).pop({2, 3}),
       "region 0, directive 0 (ADD rsp,-8 ?5 @1), offset +2: E_QP: this CPU has no predicates\n"},
      {describe().region(-4).region(4), "region 0: E_NEG: negative insn_count in a region that is not the last\n"},
      {Builder(balanced).size(7),
       "region 0: E_OVERLAP: regions are longer than the procedure\n"
       "region 0, offset +8: W_UNBALANCED: the last region ends with the frame still allocated\n"},
      {describe().region(4).add(9, rsp, -8).ends_without_return(),
       "region 0, directive 0 (ADD rsp,-8 @9), offset +4: E_WHEN: the region has 4 instruction units\n"},
      {describe().region(4).spill_sp_rel(1, xmm0, -16),
       "region 0, directive 0: E_REG: xmm0 has no libunwind number: rows can name it, directives cannot\n"},
      {describe().region(4).add(1, rbx, 8),
       "region 0, directive 0 (ADD rbx,8 @1), offset +2: E_ADD_REG: ADD to a register that is neither SP nor the frame "
       "pointer\n"},
      {describe().region(4).add(1, rsp, -12).add(2, rsp, 12),
       "region 0, directive 0 (ADD rsp,-12 @1), offset +2: E_ADD_ALIGN: not a multiple of 8 bytes\n"
       "region 0, directive 1 (ADD rsp,12 @2), offset +3: E_ADD_ALIGN: not a multiple of 8 bytes\n"},
      {describe().region(4).spill_fp_rel(1, rbx, -8),
       "region 0, directive 0 (SPILL_FP_REL rbx,-8 @1), offset +2: E_NO_FP: SPILL_FP_REL without a frame pointer\n"},
      {describe().region(4).save_reg(1, rsp, rbp),
       "region 0, directive 0 (SAVE_REG rsp,rbp @1), offset +2: E_FP_CLOBBER: frame pointer register overwritten "
       "before it is saved\n"},
      {with_frame().realign({4, 8}).save_reg(12, rsp, rax).leave({30, 31}),
       "region 0, directive 4 (SAVE_REG rsp,rax @c), offset +d: E_FP_UNKNOWN: frame pointer set from an SP of unknown "
       "distance\n"},
      {describe().region(8).realign({0, 4}).ends_without_return(),
       "realign({0, 4}): E_SP_LOST: SP relation lost and no frame pointer\n"},
      {describe().region(8).deallocate({0, 4}, 8).ends_without_return(),
       "deallocate({0, 4}, 8): E_SP_HIGH: stack pointer raised above its value at entry\n"},
      {describe().region(8).save_at_sp({0, 4}, rbx, -136),
       "save_at_sp({0, 4}, rbx, -136): E_SPILL_LOW: slot at SP-136, red zone 128 bytes\n"},
      {describe().region(8).save_at_sp({0, 4}, rbx, 0),
       "save_at_sp({0, 4}, rbx, 0): E_SPILL_RA: slot overlaps the return address\n"},
      {describe().region(8).pop_frames(3, 0),
       "region 0, directive 0 (POP_FRAMES 0 @3), offset +4: E_POP: POP_FRAMES of 0\n"},
      {describe().region(8).copy_state(3, 7),
       "region 0, directive 0 (COPY_STATE 7 @3), offset +4: E_LABEL: COPY_STATE of an unknown or later label\n"},
      {describe().region(8).alias(0x1000).add(3, rsp, -8).add(4, rsp, 8),
       "region 0, directive 0 (ALIAS 0x1000), offset +0: E_ALIAS: ALIAS is not the only directive of its region\n"},
      {endless, "procedure: E_CYCLE: region list longer than 4096 or cyclic\n"},
  });
}

TEST(BuildErrors, OfIdiomsAndPlaces) {
  const char* const code = "region 0, directive 0: ";
  expect_refused<Builder>({
      {describe().push({4, 4}, rbx), "push({4, 4}, rbx): E_RANGE: no bytes between begin and end\n"},
      {describe().allocate({1, 0}, 8), "allocate({1, 0}, 8): E_RANGE: no bytes between begin and end\n"},
      {describe().allocate({5, -1}, 8), "allocate({5, -1}, 8): E_RANGE: no bytes between begin and end\n"},
      {describe().allocate({0, 0}, 8), "allocate({0, 0}, 8): E_RANGE: no bytes between begin and end\n"},
      {describe().region(4).allocate({2, 6}, 8), "allocate({2, 6}, 8): E_WHEN: outside of its region +0..+4\n"},
      {describe().region(4).region(-4).deallocate({-6, -2}, 8),
       "deallocate({-6, -2}, 8): E_WHEN: outside of its region end-4..end\n"},
      {describe().region(4).deallocate({-2, -1}, 8),
       "deallocate({-2, -1}, 8): E_WHEN: its region begins at the other end of a procedure of unknown size\n"},
      {describe().allocate({-2, 3}, 8), "allocate({-2, 3}, 8): E_WHEN: reaches across the end of the procedure\n"},
      {describe().allocate({std::int64_t{1} << 32, (std::int64_t{1} << 32) + 4}, 8),
       "allocate({4294967296, 4294967300}, 8): E_RANGE: code offset beyond 2 GiB\n"},
      {describe().region(8).push({0, 1}, Reg(99)),
       "push({0, 1}, Reg(99)): E_REG: x86-64 has no register with DWARF number 99\n"},
      {describe().restore({0, 1}), "restore(): E_LABEL: nothing was remembered\n"},
      {describe().push({0, 1}, rbx).region(8),
       "region(): INVALID_ARGUMENT: behind directives or instructions that are in no region\n"},
  });
  (void)code;
}

TEST(BuildErrors, SeveralAtOnce) {
  EXPECT_EQ(codes_of(describe().region(4).spill_fp_rel(1, rbx, 0).add(9, rsp, -12)),
            "e_when e_add_align e_no_fp w_unbalanced ");
}

TEST(BuildErrors, OfNumbersAtTheirLimits) {
  EXPECT_EQ(codes_of(describe().add(INT32_MAX, rsp, -8)), "e_when w_unbalanced ");
  EXPECT_EQ(codes_of(describe().add(INT32_MIN, rsp, INT64_MIN + 8).pop_frames(1, INT64_MIN)),
            "e_sp_high e_pop w_unbalanced ");
  EXPECT_EQ(codes_of(describe().allocate({0, 4}, INT64_MIN).enter({4, 8}, INT64_MIN).ends_without_return()),
            "e_fp_unknown e_add_reg e_spill_low e_sp_lost ");
  for (const std::int64_t at : {INT64_MIN, INT64_MIN + 1})
    EXPECT_EQ(codes_of(describe().allocate({0, 4}, 64).save_at_sp({4, 8}, rbx, at).ends_without_return()),
              "e_spill_low ");
  EXPECT_EQ(codes_of(describe().size(~std::uint64_t{0}).push({0, 1}, rbx)), "e_range ");
  EXPECT_EQ(codes_of(describe().region(INT32_MIN).region(INT32_MAX)), "e_neg ");
  EXPECT_EQ(codes_of(describe().region(INT32_MIN).pop({-2, -1}).ends_without_return()), "e_sp_high ");
  EXPECT_EQ(codes_of(describe().push({INT64_MIN, INT64_MAX}, rbx)), "e_range ");
  EXPECT_EQ(codes_of(describe().restore({INT64_MAX, INT64_MIN})), "e_label ");
  EXPECT_EQ(codes_of(describe().row_at(INT64_MIN, "cfa=rsp+8 ra=[cfa-8]")), "e_range ");
  EXPECT_EQ(codes_of(describe().entry_state("cfa=rsp+9223372036854775807 rbx=[cfa-9223372036854775808] ra=[cfa-8]")),
            "invalid_argument ");
  EXPECT_EQ(codes_of(describe().entry_state("cfa=rbp-9223372036854775808 rbp=[cfa-9223372036854775808] ra=[cfa-8]")),
            "invalid_argument ");
  // The region is 8 GiB long: too far for a region from the end.
  EXPECT_EQ(rows_of(describe().size(std::uint64_t{1} << 33).push({0, 1}, rbx).pop({4, 5}, rbx), std::uint64_t{1} << 33),
            "\n+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+5: cfa=rsp+8 ra=[cfa-8]\n");
}

TEST(BuildErrors, AliasOfItself) {
  // The check puts the procedure at address 0, so offset 0 is an alias of offset 0.
  EXPECT_EQ(codes_of(describe().region(4).alias(0)), "e_alias_depth ");
}

}  // namespace x64

namespace a64 {
using namespace aarch64;

TEST(BuildErrors, OfAArch64) {
  expect_refused<Builder>({
      {describe().allocate({0, 3}, 16),
       "allocate({0, 3}, 16): E_RANGE: not on the boundaries of the CPU's instructions\n"},
      {describe().size(10).allocate({0, 4}, 16), "procedure: E_RANGE: length is not a multiple of 4 bytes\n"},
      {describe().allocate({0, 4}, 8).deallocate({4, 8}, 8).save_at_sp({8, 12}, pc, 0),
       "allocate({0, 4}, 8): E_ADD_ALIGN: not a multiple of 16 bytes\ndeallocate({4, 8}, 8): E_ADD_ALIGN: not a "
       "multiple of 16 bytes\nsave_at_sp({8, 12}, pc, 0): E_REG: register that cannot be saved\n"},
      {describe().size(16).move_to({0, 4}, x30, x17).call({4, 8}).reload({8, 12}, x30),
       "offset +8: E_LR: the call that ends at +8 overwrites the return address\n"},
      {describe().size(16).call({-8, -4}), "offset +c: E_LR: the call that ends at +c overwrites the return address\n"},
      {describe().save_at_sp({0, 4}, x19, -8),
       "save_at_sp({0, 4}, x19, -8): E_SPILL_LOW: slot at SP-8, red zone 0 bytes\n"},
  });
  Builder good =
      describe().size(24).store_pair_pre({0, 4}, x29, x30, -16).call({4, 8}).load_pair_post({8, 12}, x29, x30, 16);
  EXPECT_TRUE(good.build());
}

}  // namespace a64
}  // namespace
}  // namespace jitunwind
