// The matrix checks preserved registers of integers alone, for x86-64 has no others: no vector register survives a call
// there (AMD64 ABI, 3.2.3, figure 3.4). AArch64 preserves d8 to d15 (AAPCS64, 6.1.2): what an unwinder is told of them.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "jitunwind/builders/registers_aarch64.h"
#include "tests/cfi/rows_of.h"
#include "tests/support/whole_procedure.h"

namespace jitunwind::test {
namespace {

std::set<std::string> preserved_vectors(const Arch& arch) {
  std::set<std::string> names;
  for (const RegisterInfo& reg : arch.registers)
    if (reg.preserved && reg.reg_class == RegClass::vector) names.insert(reg.name);
  return names;
}

TEST(VectorRegisters, ThatCallsPreserve) {
  EXPECT_EQ(preserved_vectors(arch::x86_64), std::set<std::string>());
  EXPECT_EQ(preserved_vectors(arch::aarch64),
            (std::set<std::string>{"v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15"}));
}

/// stp x29,x30,[sp,#-80]!; mov x29,sp; stp d8,d9,[sp,#16]; ... stp d14,d15,[sp,#64]; blr x0; and back.
// covers: EX14
TEST(VectorRegisters, OfAArch64ReachTheFde) {
  using namespace aarch64;
  constexpr std::uint64_t k_size = 0x34;
  const auto description = describe()
                               .store_pair_pre({0, 4}, x29, x30, -80)
                               .set_frame_pointer({4, 8}, x29)
                               .store_pair({8, 12}, v8, v9, 16)
                               .store_pair({12, 16}, v10, v11, 32)
                               .store_pair({16, 20}, v12, v13, 48)
                               .store_pair({20, 24}, v14, v15, 64)
                               .load_pair_post({0x2c, 0x30}, x29, x30, 80)
                               .size(k_size)
                               .build();
  ASSERT_TRUE(description) << description.error().text();
  std::vector<OffsetRow> rows;
  for (std::uint64_t at = 0; at < k_size; at += 4) {
    const auto row = description->row(at, k_size);
    ASSERT_TRUE(row) << at;
    rows.push_back({at, *row});
  }
  const AddrRange code{0x7f0000001000, 0x7f0000001000 + k_size};
  const auto bytes = emit_eh_frame({.code = code, .rows = rows}, arch::aarch64);
  ASSERT_TRUE(bytes) << bytes.error().what;
  SectionView view({*bytes, 0x5000});
  const CfiContext context{.arch = arch::aarch64};
  FdeScan scan(view, context, {0x5000, 0x5000 + bytes->size()});
  Fde fde;
  ASSERT_TRUE(scan.next(fde).value());
  EXPECT_EQ(rows_of(fde, context), R"(+0: cfa=sp
+4: cfa=sp+80 x29=[cfa-80] ra=[cfa-72]
+8: cfa=x29+80 x29=[cfa-80] ra=[cfa-72]
+c: cfa=x29+80 x29=[cfa-80] v8=[cfa-64] v9=[cfa-56] ra=[cfa-72]
+10: cfa=x29+80 x29=[cfa-80] v8=[cfa-64] v9=[cfa-56] v10=[cfa-48] v11=[cfa-40] ra=[cfa-72]
+14: cfa=x29+80 x29=[cfa-80] v8=[cfa-64] v9=[cfa-56] v10=[cfa-48] v11=[cfa-40] v12=[cfa-32] v13=[cfa-24] ra=[cfa-72]
+18: cfa=x29+80 x29=[cfa-80] v8=[cfa-64] v9=[cfa-56] v10=[cfa-48] v11=[cfa-40] v12=[cfa-32] v13=[cfa-24] v14=[cfa-16] v15=[cfa-8] ra=[cfa-72]
+30: cfa=sp)");
}

}  // namespace
}  // namespace jitunwind::test
