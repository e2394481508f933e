// Rows behind every instruction of real code that is described by idioms.
#include <gtest/gtest.h>

#include <vector>

#include "tests/builders/described.h"

namespace jitunwind {
namespace {

template <class Builder>
struct Case {
  const char* code;  ///< the instructions, with the offset of each
  Builder builder;
  std::uint64_t bytes;
  const char* rows;
};

template <class Builder>
void expect_rows(const std::vector<Case<Builder>>& cases) {
  for (const auto& c : cases) EXPECT_EQ(rows_of(c.builder, c.bytes), c.rows) << c.code;
}

namespace x64 {
using namespace x86_64;

// covers: DY41 DY55 DY56
TEST(Idioms, FramesOfX86_64) {
  expect_rows<Builder>({
      {"push rbp@0; mov rbp,rsp@1; sub rsp,32@4; .. leave@14; ret@15",
       describe().push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).allocate({4, 8}, 32).leave({0x14, 0x15}), 0x16, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+15: cfa=rsp+8 ra=[cfa-8]
)"},
      {"enter 32,0@0; .. leave@10; ret@11", describe().enter({0, 4}, 32).leave({0x10, 0x11}), 0x12, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+11: cfa=rsp+8 ra=[cfa-8]
)"},
      {"sub rsp,24@0; mov [rsp+8],rbx@4; mov [rsp+16],r12@9; .. mov rbx,[rsp+8]; mov r12,[rsp+16]; add rsp,24@1e; "
       "ret@22",
       describe()
           .allocate({0, 4}, 24)
           .save_at_sp({4, 9}, rbx, 8)
           .save_at_sp({9, 14}, r12, 16)
           .deallocate({0x1e, 0x22}, 24),
       0x23, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+4: cfa=rsp+32 ra=[cfa-8]
+9: cfa=rsp+32 rbx=[cfa-24] ra=[cfa-8]
+e: cfa=rsp+32 rbx=[cfa-24] r12=[cfa-16] ra=[cfa-8]
+22: cfa=rsp+8 ra=[cfa-8]
)"},
      {"sub rsp,136@0; mov [rsp+128],rbp@7; lea rbp,[rsp+128]@f; .. mov rbp,[rsp+128]@20; add rsp,136@28; ret@2f",
       describe()
           .allocate({0, 7}, 136)
           .save_at_sp({7, 0xf}, rbp, 128)
           .set_frame_pointer({0xf, 0x17}, rbp, 128)
           .reload({0x20, 0x28}, rbp)
           .deallocate({0x28, 0x2f}, 136),
       0x30, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+7: cfa=rsp+144 ra=[cfa-8]
+f: cfa=rsp+144 rbp=[cfa-16] ra=[cfa-8]
+17: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+28: cfa=rsp+144 ra=[cfa-8]
+2f: cfa=rsp+8 ra=[cfa-8]
)"},
      {"push rbp@0; mov rbp,rsp@1; sub rsp,16@4; mov [rbp-8],rbx@8; .. mov rsp,rbp@14; pop rbp@17; ret@18",
       describe()
           .push({0, 1}, rbp)
           .set_frame_pointer({1, 4}, rbp)
           .allocate({4, 8}, 16)
           .save_at_fp({8, 12}, rbx, -8)
           .restore_sp({0x14, 0x17}, rbp)
           .pop({0x17, 0x18}, rbp),
       0x19, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+c: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+17: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+18: cfa=rsp+8 ra=[cfa-8]
)"},
      {"push rbp@0; mov rbp,rsp@1; push rbx@4; sub rsp,rax@5; .. lea rsp,[rbp-8]@12; pop rbx@16; pop rbp@17; ret@18",
       describe()
           .push({0, 1}, rbp)
           .set_frame_pointer({1, 4}, rbp)
           .push({4, 5}, rbx)
           .allocate_variable({5, 8})
           .restore_sp({0x12, 0x16}, rbp, -8)
           .pop({0x16, 0x17}, rbx)
           .pop({0x17, 0x18}, rbp),
       0x19, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+17: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+18: cfa=rsp+8 ra=[cfa-8]
)"},
      {"push rbx@0; mov rax,rsp@1; and rsp,-64@4; sub rsp,128@8; mov [rsp+64],rax@f; .. mov rsp,[rsp+64]@20; pop "
       "rbx@25; ret@26",
       describe()
           .push({0, 1}, rbx)
           .set_frame_pointer({1, 4}, rax)
           .realign({4, 8})
           .allocate({8, 15}, 128)
           .store_sp({15, 20}, 64)
           .reload_sp({0x20, 0x25})
           .pop({0x25, 0x26}, rbx),
       0x27, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+4: cfa=rax+16 rbx=[cfa-16] ra=[cfa-8]
+14: cfa=[rsp+64]+16 rbx=[cfa-16] ra=[cfa-8]
+25: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+26: cfa=rsp+8 ra=[cfa-8]
)"},
      {"lea r11,[rsp-65536]@0; L: sub rsp,4096@8; mov [rsp],0@f; cmp rsp,r11@17; jne L@1a; sub rsp,100@1c; .. add "
       "rsp,65636@40; ret@47",
       describe()
           .probe_loop({.bound = {0, 8}, .first_step = {8, 15}, .back = {0x1a, 0x1c}, .bytes = 65536}, r11)
           .allocate({0x1c, 0x20}, 104)
           .deallocate({0x40, 0x47}, 65640),
       0x48, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+8: cfa=r11+65544 ra=[cfa-8]
+1c: cfa=rsp+65544 ra=[cfa-8]
+20: cfa=rsp+65648 ra=[cfa-8]
+47: cfa=rsp+8 ra=[cfa-8]
)"},
      {"sub rsp,8@0; push 1@4; push 2@6; call f@8 (ret 16); add rsp,8@d; ret@11",
       describe()
           .size(0x12)
           .allocate({0, 4}, 8)
           .push({4, 6})
           .push({6, 8})
           .callee_pops({8, 13}, 16)
           .deallocate({13, 17}, 8),
       0x12, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+4: cfa=rsp+16 ra=[cfa-8]
+6: cfa=rsp+24 ra=[cfa-8]
+8: cfa=rsp+32 ra=[cfa-8]
+d: cfa=rsp+16 ra=[cfa-8]
+11: cfa=rsp+8 ra=[cfa-8]
)"},
      {"pop rcx@0; sub rsp,0; jmp rcx@4: the return address leaves its slot",
       describe().pop_return_address({0, 1}, rcx).ends_without_return(), 6, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp ra=rcx
)"},
      {"mov [rsp-64],rbx@0: red zone; push rax@5; pop rax@6: the save stays",
       describe().size(16).save_at_sp({0, 5}, rbx, -64).push({5, 6}).pop({6, 7}), 16, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+5: cfa=rsp+8 rbx=[cfa-72] ra=[cfa-8]
+6: cfa=rsp+16 rbx=[cfa-72] ra=[cfa-8]
+7: cfa=rsp+8 rbx=[cfa-72] ra=[cfa-8]
)"},
      {"push rbx@0; mov r8,r12@1 (r12 kept in a register); .. mov r12,r8@8; pop rbx@b; ret@c",
       describe().push({0, 1}, rbx).move_to({1, 4}, r12, r8).reload({8, 11}, r12).pop({11, 12}, rbx), 13, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+4: cfa=rsp+16 rbx=[cfa-16] r12=r8 ra=[cfa-8]
+b: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+c: cfa=rsp+8 ra=[cfa-8]
)"},
      {"push rbp@0; mov rbp,rsp@1; add rbp,16@4; .. sub rbp,16@10; mov rsp,rbp@14; pop rbp@17; ret@18",
       describe()
           .push({0, 1}, rbp)
           .set_frame_pointer({1, 4}, rbp)
           .move_frame_pointer({4, 8}, rbp, 16)
           .move_frame_pointer({0x10, 0x14}, rbp, -16)
           .restore_sp({0x14, 0x17}, rbp)
           .pop({0x17, 0x18}, rbp),
       0x19, R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+8: cfa=rbp rbp=[cfa-16] ra=[cfa-8]
+14: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+18: cfa=rsp+8 ra=[cfa-8]
)"},
  });
}

TEST(Idioms, SeveralEarlyReturnsWithOneRemember) {
  Builder b = describe().size(0x30).push({0, 1}, rbx).allocate({1, 5}, 16).remember();
  for (const int at : {0x10, 0x18}) b.deallocate({at, at + 4}, 16).pop({at + 4, at + 5}, rbx).restore({at + 5, at + 6});
  b.deallocate({-6, -2}, 16).pop({-2, -1}, rbx);
  EXPECT_EQ(rows_of(b, 0x30), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+5: cfa=rsp+32 rbx=[cfa-16] ra=[cfa-8]
+14: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+15: cfa=rsp+8 ra=[cfa-8]
+16: cfa=rsp+32 rbx=[cfa-16] ra=[cfa-8]
+1c: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+1d: cfa=rsp+8 ra=[cfa-8]
+1e: cfa=rsp+32 rbx=[cfa-16] ra=[cfa-8]
+2e: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+2f: cfa=rsp+8 ra=[cfa-8]
)");
}

TEST(Idioms, RememberedLabelsKeepClearOfGivenOnes) {
  Builder b = describe().region(16).remember().push({0, 1}, rbx).label_state(0, 1).remember();
  b.pop({4, 5}, rbx).restore({5, 6}).pop({8, 9}, rbx);
  EXPECT_EQ(regions_of(b), R"(
region 16
  LABEL_STATE 2
  ADD rsp,-8 @0
  SPILL_SP_REL rbx,0 @0
  LABEL_STATE 1 @0
  LABEL_STATE 3 @0
  ADD rsp,8 @4
  COPY_STATE 3 @5
  ADD rsp,8 @8
)");
}

TEST(Idioms, InAnyOrderOfCalls) {
  const Builder in_order = describe().size(32).push({0, 1}, rbx).allocate({1, 5}, 16).remember();
  Builder a = in_order;
  a.deallocate({8, 12}, 16).pop({12, 13}, rbx).restore({13, 14}).deallocate({26, 30}, 16).pop({30, 31}, rbx);
  Builder b = describe().size(32).allocate({1, 5}, 16).remember().pop({30, 31}, rbx).deallocate({26, 30}, 16);
  b.restore({13, 14}).pop({12, 13}, rbx).deallocate({8, 12}, 16).push({0, 1}, rbx);
  EXPECT_EQ(regions_of(a), regions_of(b));
  EXPECT_TRUE(b.build()->warnings().empty());
}

TEST(Idioms, MixWithDirectivesInOneRegion) {
  Builder b = describe().region(12).push({0, 1}, rbp).save_reg(3, rsp, rbp).region(-2).leave({-2, -1});
  EXPECT_EQ(rows_of(b, 40), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+27: cfa=rsp+8 ra=[cfa-8]
)");
}

TEST(Idioms, DirectivesChosenAtRunTime) {
  Builder chosen = describe().region(8);
  for (const auto& d : {DraftDirective::add(rsp.dwarf(), -8), DraftDirective::spill_sp_rel(rbx.dwarf(), 0)})
    chosen.directive(0, d);
  EXPECT_EQ(regions_of(chosen), regions_of(describe().region(8).push({0, 1}, rbx)));
}

TEST(Idioms, LeafNeedsNothing) {
  const auto leaf = describe("leaf").build();
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->shape().regions(), nullptr);
  EXPECT_EQ(leaf->to_text(3), "+0: cfa=rsp+8 ra=[cfa-8]\n");
}

TEST(Idioms, OfRegistersChosenAtRunTime) {
  Builder b = describe();
  int at = 0;
  for (const unsigned dwarf : {3u, 12u, 15u}) b.push({at, at + 2}, Reg(static_cast<RegNum>(dwarf))), at += 2;
  EXPECT_EQ(b.ends_without_return().build()->row(6, 16)->rule(12), RegRule::at_cfa(-24));
}

// covers: DY18
TEST(Idioms, FactsOfTheProcedure) {
  const auto built = describe("name").personality(0x1000).lsda(0x2000).gp(0x3000).size(8).build();
  ASSERT_TRUE(built);
  EXPECT_EQ(built->name(), "name");
  EXPECT_EQ(built->personality(), 0x1000u);
  EXPECT_EQ(built->lsda(), 0x2000u);
  EXPECT_EQ(built->gp(), 0x3000u);
  EXPECT_EQ(built->size(), 8u);
  EXPECT_EQ(built->check_size(16).error().code, ErrorCode::e_range);
}

TEST(Idioms, ProcedureThatDoesNotReturn) {
  const Builder b = describe().size(10).push({0, 1}, rbx);
  const std::string refusal =
      "procedure: W_UNBALANCED: ends with the frame still allocated: is a pop or deallocate missing? If it ends in a "
      "jump "
      "or in a call that does not return, say ends_without_return()\n";
  ASSERT_FALSE(b.build());
  EXPECT_EQ(b.build().error().text(), refusal);
  const auto meant = Builder(b).ends_without_return().build();
  EXPECT_TRUE(meant && meant->warnings().empty());
  EXPECT_EQ(b.build().error().text(), refusal) << "of a shape that is known by now";
}

}  // namespace x64

namespace a64 {
using namespace aarch64;

// covers: DY41
TEST(Idioms, FramesOfAArch64) {
  expect_rows<Builder>({
      {"stp x29,x30,[sp,#-64]!@0; mov x29,sp@4; stp x19,x20,[sp,#16]@8; str d8,[sp,#32]@c; .. ldr d8; ldp x19,x20; ldp "
       "x29,x30,[sp],#64@20; ret@24",
       describe()
           .store_pair_pre({0, 4}, x29, x30, -64)
           .set_frame_pointer({4, 8}, x29)
           .store_pair({8, 12}, x19, x20, 16)
           .save_at_sp({12, 16}, v8, 32)
           .load_pair_post({0x20, 0x24}, x29, x30, 64),
       0x28, R"(
+0: cfa=sp
+4: cfa=sp+64 x29=[cfa-64] ra=[cfa-56]
+8: cfa=x29+64 x29=[cfa-64] ra=[cfa-56]
+c: cfa=x29+64 x19=[cfa-48] x20=[cfa-40] x29=[cfa-64] ra=[cfa-56]
+10: cfa=x29+64 x19=[cfa-48] x20=[cfa-40] x29=[cfa-64] v8=[cfa-32] ra=[cfa-56]
+24: cfa=sp
)"},
      {"sub sp,sp,#64@0; stp x29,x30,[sp,#32]@4; add x29,sp,#32@8; .. ldp x29,x30,[sp,#32]@10; add sp,sp,#64@14; "
       "ret@18",
       describe()
           .allocate({0, 4}, 64)
           .store_pair({4, 8}, x29, x30, 32)
           .set_frame_pointer({8, 12}, x29, 32)
           .reload_pair({0x10, 0x14}, x29, x30)
           .deallocate({0x14, 0x18}, 64),
       0x1c, R"(
+0: cfa=sp
+4: cfa=sp+64
+8: cfa=sp+64 x29=[cfa-32] ra=[cfa-24]
+c: cfa=x29+32 x29=[cfa-32] ra=[cfa-24]
+14: cfa=sp+64
+18: cfa=sp
)"},
      {"str x30,[sp,#-16]!@0; .. ldr x30,[sp],#16@8; ret@c",
       describe().store_pre({0, 4}, x30, -16).load_post({8, 12}, x30, 16), 16, R"(
+0: cfa=sp
+4: cfa=sp+16 ra=[cfa-16]
+c: cfa=sp
)"},
      {"paciasp@0; stp x29,x30,[sp,#-16]!@4; .. ldp x29,x30,[sp],#16@c; autiasp@10; ret@14",
       describe()
           .sign_return_address({0, 4})
           .store_pair_pre({4, 8}, x29, x30, -16)
           .load_pair_post({12, 16}, x29, x30, 16)
           .authenticate_return_address({16, 20}),
       24, R"(
+0: cfa=sp
+4: cfa=sp ra_sign_state=1
+8: cfa=sp+16 x29=[cfa-16] ra=[cfa-8] ra_sign_state=1
+10: cfa=sp ra_sign_state=1
+14: cfa=sp
)"},
      {"mov x17,x30@0; bl stack_check@4; mov x30,x17@8: x30 parked",
       describe().move_to({0, 4}, x30, x17).reload({8, 12}, x30), 16, R"(
+0: cfa=sp
+4: cfa=sp ra=x17
+c: cfa=sp
)"},
      {"stp x29,x30,[sp,#-16]!@0; mov x29,sp@4; sub sp,sp,x0@8; .. mov sp,x29@10; ldp x29,x30,[sp],#16@14; ret@18",
       describe()
           .store_pair_pre({0, 4}, x29, x30, -16)
           .set_frame_pointer({4, 8}, x29)
           .allocate_variable({8, 12})
           .restore_sp({0x10, 0x14}, x29)
           .load_pair_post({0x14, 0x18}, x29, x30, 16),
       0x1c, R"(
+0: cfa=sp
+4: cfa=sp+16 x29=[cfa-16] ra=[cfa-8]
+8: cfa=x29+16 x29=[cfa-16] ra=[cfa-8]
+18: cfa=sp
)"},
  });
}

}  // namespace a64
}  // namespace
}  // namespace jitunwind
