// The rows that compact rows hold, and those that they refuse. compact_caller_test.cpp applies them.
#include "jitunwind/unwind_core/kept/compact_row_internal.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/fake_space.h"

namespace jitunwind::test {
namespace {

constexpr const Arch& k_x86 = arch::x86_64;

FrameRow row_of(const std::string& text, const Arch& arch, ExpressionPool& pool) {
  const auto parsed = parse_row(text, arch, pool);
  if (!parsed) throw std::runtime_error(text + ": " + parsed.error().what);
  return parsed->row;
}

/// Returns "" if the row does not fit.
std::string round_trip(const std::string& text, const Arch& arch = k_x86) {
  ExpressionPool pool;
  const CompactLayout layout(arch);
  CompactRow compacted;
  if (!compact(row_of(text, arch, pool), layout, compacted)) return "";
  return to_text(expand(compacted, layout), arch);
}

TEST(CompactRow, HoldsOrdinaryFrames) {
  for (const char* text :
       {"cfa=rsp+8 ra=[cfa-8]", "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]",
        "cfa=rsp+524280 rbx=[cfa-56] rbp=[cfa-48] r12=[cfa-40] r13=[cfa-32] r14=[cfa-24] r15=[cfa-16] ra=[cfa-8]",
        "cfa=r10 rbp=[cfa-2040] ra=[cfa-8]"})
    EXPECT_EQ(round_trip(text), text);
  EXPECT_EQ(round_trip("cfa=rsp+8 rbx=same ra=[cfa-8]"), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(round_trip("cfa=sp+32 x19=[cfa-16] x29=[cfa-32] x30=[cfa-24]", arch::aarch64),
            "cfa=sp+32 x19=[cfa-16] x29=[cfa-32] ra=[cfa-24]");
}

TEST(CompactRow, RefusesWhatItCannotSay) {
  for (const char* text :
       {"cfa=rsp+4 ra=[cfa-8]", "cfa=rsp-8 ra=[cfa-8]", "cfa=rsp+524288 ra=[cfa-8]", "cfa=rsp+8",
        "cfa=rsp+8 ra=undefined", "cfa=rsp+8 ra=rax", "cfa=rsp+8 rbx=[cfa-2048] ra=[cfa-8]",
        "cfa=rsp+8 rbx=[cfa-12] ra=[cfa-8]", "cfa=rsp+8 rbx=[cfa+8] ra=[cfa-8]", "cfa=rsp+8 rbx=undefined ra=[cfa-8]",
        "cfa=rsp+8 rbx=r12 ra=[cfa-8]", "cfa=rsp+8 rax=[cfa-16] ra=[cfa-8]", "cfa=rsp+8 rsp=[cfa-16] ra=[cfa-8]",
        "cfa=rsp+8 xmm6=[cfa-16] ra=[cfa-8]", "cfa=rsp+8 rbx=[rsp-16] ra=[cfa-8]", "cfa=[rbp+8]+0 ra=[cfa-8]"})
    EXPECT_EQ(round_trip(text), "") << text;
  // The pseudo register that says whether the return address is signed.
  EXPECT_EQ(round_trip("cfa=sp+16 x30=[cfa-8] ra_sign_state=1", arch::aarch64), "");
  const CompactLayout layout(k_x86);
  CompactRow out;
  FrameRow row = entry_row(k_x86);
  EXPECT_TRUE(compact(row, layout, out));
  row.signal_frame = true;
  EXPECT_FALSE(compact(row, layout, out));
  row = entry_row(k_x86);
  row.args_size = 16;
  EXPECT_FALSE(compact(row, layout, out));
}

}  // namespace
}  // namespace jitunwind::test
