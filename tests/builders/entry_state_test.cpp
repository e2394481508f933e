// Frames that other code has built: a row becomes empty regions with the same meaning.
#include <gtest/gtest.h>

#include "tests/builders/described.h"

namespace jitunwind {
namespace {

/// Returns the row at offset 0 of a procedure with this entry state, from its directives; or the reason for a refusal.
template <class Builder>
std::string entered(Builder builder) {
  const auto built = builder.build();
  if (!built) return built.error().text();
  EXPECT_FALSE(built->shape().has_rows());
  for (const unw_dyn_region_info_t* r = built->shape().regions(); r; r = r->next) {
    if (r->insn_count != 0) ADD_FAILURE() << "region of " << r->insn_count;
  }
  return to_text(*built->row(0, 16), built->arch());
}

// covers: DY24
TEST(EntryState, SaysTheRow) {
  using namespace x86_64;
  for (const char* row : {
           "cfa=rsp+8 ra=[cfa-8]",
           "cfa=rsp+48 ra=[cfa-8]",
           "cfa=rsp+48 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]",
           "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] r15=[cfa-56] ra=[cfa-8]",
           "cfa=rbp rbp=[cfa-16] ra=[cfa-8]",
           "cfa=rbp+144 rbp=[cfa-16] ra=[cfa-8]",
           "cfa=r11+16 rbx=[cfa-16] ra=[cfa-8]",
           "cfa=[rsp+64]+16 rbx=[cfa-16] ra=[cfa-8]",
           "cfa=[rsp]+48 rbx=[cfa-56] rbp=[cfa-16] ra=[cfa-8]",
           "cfa=rsp+16 rbx=r8 ra=[cfa-8]",
           "cfa=rsp ra=rcx",
           "cfa=rsp+24 ra=[cfa-24]",
           "cfa=rbp+16 rbx=[rsp+24] rbp=[cfa-16] ra=[cfa-8]",
       })
    EXPECT_EQ(entered(describe().entry_state(row).ends_without_return()), row);
  EXPECT_EQ(entered(describe().entry_state("cfa=rbp+16 rbx=same rbp=[cfa-16] ra=[cfa-8]").ends_without_return()),
            "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
}

TEST(EntryState, OfAArch64) {
  using namespace aarch64;
  for (const char* row : {
           "cfa=sp",
           "cfa=sp+32 x19=[cfa-16] x29=[cfa-32] ra=[cfa-24]",
           "cfa=x29+32 x29=[cfa-32] ra=[cfa-24]",
           "cfa=x29+64 x29=[cfa-64] v8=[cfa-8] ra=[cfa-56] ra_sign_state=1",
           "cfa=sp ra=x17",
       })
    EXPECT_EQ(entered(describe().entry_state(row).ends_without_return()), row);
}

TEST(EntryState, WithSpKnownGoesOnWithPops) {
  using namespace x86_64;
  Builder b = describe().entry_state("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]", 24);
  b.pop({4, 5}, rbx).pop({5, 6}, rbp);
  EXPECT_EQ(regions_of(b), R"(
region 0
  ADD rsp,-16 @0
  SPILL_SP_REL rbx,0 @0
  SPILL_SP_REL rbp,8 @0
region 0
  SAVE_REG rsp,rbp @0
  ADD rbp,8 @0
region 6
  ADD rsp,8 @4
  ADD rsp,8 @5
)");
  EXPECT_EQ(rows_of(b, 7), R"(
+0: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+5: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+6: cfa=rsp+8 ra=[cfa-8]
)");
}

TEST(EntryState, WithSpUnknownNeedsTheFramePointer) {
  using namespace x86_64;
  // On-stack replacement: SP is arbitrary at the entry, and the frame is left through the frame pointer.
  Builder b = describe().entry_state("cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]").leave({-2, -1});
  EXPECT_EQ(rows_of(b, 8), "\n+0: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n+7: cfa=rsp+8 ra=[cfa-8]\n");
}

// A procedure with two entry points; the second one finds a frame that other code has built.
TEST(EntryState, BetweenRegions) {
  using namespace x86_64;
  Builder b = describe().region(8).push({0, 1}, rbx).pop({6, 7}, rbx);
  b.entry_state("cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]", 16).region(4).pop({10, 11}, rbp);
  EXPECT_EQ(rows_of(b, 12), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+7: cfa=rsp+8 ra=[cfa-8]
+8: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+b: cfa=rsp+8 ra=[cfa-8]
)");
  // The entry state does not build on the first part's frame, even if it is in the middle of that.
  Builder inside = describe().region(8).push({0, 1}, rbx);
  inside.entry_state("cfa=rsp+24 rbp=[cfa-16] ra=[cfa-8]").region(4).ends_without_return();
  EXPECT_EQ(rows_of(inside, 12), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+8: cfa=rsp+24 rbp=[cfa-16] ra=[cfa-8]
)");
}

TEST(EntryState, RefusesWhatDirectivesCannotSay) {
  using namespace x86_64;
  struct Case {
    const char* row;
    const char* text;
  };
  for (const Case& c : {
           Case{"cfa=[rbp-8] rbp=[cfa-16] ra=[cfa-8]",
                "entry_state(): INVALID_ARGUMENT: directives have no such CFA rule: cfa=[rbp-8] rbp=[cfa-16] "
                "ra=[cfa-8]; give it to row_at()\n"},
           Case{"cfa=expr(7708) ra=[cfa-8]",
                "entry_state(): INVALID_ARGUMENT: directives have no such CFA rule: cfa=expr(7708) ra=[cfa-8]; give it "
                "to row_at()\n"},
           Case{"cfa=rsp+16 rbx=undefined ra=[cfa-8]",
                "entry_state(): INVALID_ARGUMENT: directives cannot say cfa=rsp+16 rbx=undefined ra=[cfa-8], only "
                "cfa=rsp+16 ra=[cfa-8]; give it to row_at()\n"},
           Case{"cfa=rsp+16 rbx=cfa-16 ra=[cfa-8]",
                "entry_state(): INVALID_ARGUMENT: directives cannot say cfa=rsp+16 rbx=cfa-16 ra=[cfa-8], only "
                "cfa=rsp+16 ra=[cfa-8]; give it to row_at()\n"},
           Case{"cfa=rsp+16 ra=[cfa-8",
                "entry_state(): INVALID_ARGUMENT: row text \"cfa=rsp+16 ra=[cfa-8\", character "
                "20: bad register rule\n"},
       }) {
    const auto built = describe().entry_state(c.row).build();
    EXPECT_EQ(built ? "built" : built.error().text(), c.text);
  }
  // rbp cannot hold both the caller's value and the frame: the row leaves rbp alone.
  EXPECT_EQ(codes_of(describe().entry_state("cfa=rbp+16 ra=[cfa-8]").ends_without_return()), "invalid_argument ");
  EXPECT_EQ(codes_of(describe().push({0, 1}, rbx).entry_state("cfa=rsp+16 ra=[cfa-8]")), "invalid_argument ");
}

}  // namespace
}  // namespace jitunwind
