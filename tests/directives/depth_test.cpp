// Lists of any size: many regions, many labels, long distances back to a state, and the limits.
#include <gtest/gtest.h>

#include <algorithm>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "tests/directives/naive_directives.h"

namespace jitunwind::test {
namespace {

using rows::CaseRegion;

constexpr const Arch& k_arch = arch::x86_64;
constexpr Addr k_code = 0x100000;

unw_dyn_op_t op(const std::string& text) { return rows::parse_directive(text, k_arch); }

std::string row_at(const std::vector<CaseRegion>& regions, std::uint64_t size, std::uint64_t offset) {
  const rows::CaseProcedure procedure(regions, {k_code, k_code + size});
  FrameRow row;
  const Status status =
      directive_row(procedure.info(), k_arch, CodeAddress::interrupted(k_code + offset), nullptr, row);
  return rows::outcome_text(status, row, k_arch);
}

void expect_naive(const std::vector<CaseRegion>& regions, std::uint64_t size) {
  for (std::uint64_t offset = 0; offset < size; offset += 7) {
    const NaiveAnswer naive = naive_row(k_arch, size, regions, offset, false);
    const Status status = naive.error == ErrorCode::unspecified ? Status(Done{}) : Status(Error{naive.error, 0, ""});
    ASSERT_EQ(row_at(regions, size, offset), rows::outcome_text(status, naive.row, k_arch)) << offset;
  }
}

/// Every region pushes one more register. The end pops all of it at once, from more regions back than stretches are
/// kept.
TEST(DirectiveDepth, PopsOverManyRegions) {
  std::vector<CaseRegion> regions;
  for (int i = 0; i < 300; ++i) regions.push_back({3, {op("ADD rsp,-8 @0"), op("SPILL_SP_REL rbx,0 @1")}, 0, -1});
  regions.push_back({3, {op("POP_FRAMES 250 @1")}, 0, -1});
  regions.push_back({3, {op("POP_FRAMES 1 @1")}, 0, -1});
  regions.push_back({3, {op("POP_FRAMES 51 @1")}, 0, -1});
  regions.push_back({3, {}, 0, -1});
  expect_naive(regions, 3 * regions.size());
  const std::uint64_t behind = 3 * 301;
  EXPECT_EQ(row_at(regions, 3 * regions.size(), behind), "cfa=rsp+416 rbx=[cfa-416] ra=[cfa-8]");
  EXPECT_EQ(row_at(regions, 3 * regions.size(), behind + 3), "cfa=rsp+416 rbx=[cfa-416] ra=[cfa-8]");
  EXPECT_EQ(row_at(regions, 3 * regions.size(), behind + 6), "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
}

// covers: DY38 DY57
TEST(DirectiveDepth, ManyLabelsEachLeadingToTheNext) {
  std::vector<CaseRegion> regions;
  for (int i = 0; i < 200; ++i) {
    const std::string label = std::to_string(1000 + i);
    regions.push_back({4, {op("ADD rsp,-8 @0"), op("LABEL_STATE " + label + " @1"), op("ADD rsp,-800 @2")}, 0, -1});
    regions.push_back({2, {op("COPY_STATE " + label)}, 0, -1});
  }
  for (int i = 0; i < 200; i += 13)
    regions.push_back({2, {op("COPY_STATE " + std::to_string(1000 + i)), op("ADD rsp,-16 @0")}, 0, -1});
  regions.push_back({2, {op("COPY_STATE 1100"), op("POP_FRAMES 40 @0")}, 0, -1});
  regions.push_back({2, {}, 0, -1});
  std::uint64_t size = 0;
  for (const CaseRegion& r : regions) size += static_cast<std::uint64_t>(r.insn_count);
  expect_naive(regions, size);
}

/// One large function with an early return every few instructions.
TEST(DirectiveDepth, ManyEarlyReturns) {
  std::vector<CaseRegion> regions{
      {20004, {op("ADD rsp,-8 @0"), op("SPILL_SP_REL rbx,0 @0"), op("LABEL_STATE 1 @0")}, 0, -1}};
  for (int i = 0; i < 2000; ++i) {
    regions[0].ops.push_back(_U_dyn_op(UNW_DYN_ADD, 0, 10 * i + 5, 7, 8));
    regions[0].ops.push_back(_U_dyn_op(UNW_DYN_COPY_STATE, 0, 10 * i + 6, 0, 1));
  }
  EXPECT_EQ(row_at(regions, 20004, 20003), "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
  EXPECT_EQ(row_at(regions, 20004, 19996), "cfa=rsp+8 ra=[cfa-8]");
}

TEST(DirectiveDepth, FourThousandRegionsAndNoMore) {
  std::vector<CaseRegion> regions(k_max_regions, {1, {op("ADD rsp,-8 @0")}, 0, -1});
  EXPECT_EQ(row_at(regions, 5000, 4999), "cfa=rsp+32776 ra=[cfa-8]");
  regions.push_back({1, {}, 0, -1});
  EXPECT_EQ(row_at(regions, 5000, 0), "error E_CYCLE");
}

TEST(DirectiveDepth, ALoopOfRegionsEnds) {
  EXPECT_EQ(row_at({{1, {}, 0, 0}}, 100, 0), "error E_CYCLE");
  EXPECT_EQ(row_at({{1, {}, 0, -1}, {0, {}, 0, -1}, {0, {}, 0, 1}}, 100, 0), "error E_CYCLE");
}

TEST(DirectiveDepth, SixtyFourThousandDirectivesAndNoMore) {
  std::vector<CaseRegion> regions{{100, std::vector<unw_dyn_op_t>(k_max_ops, op("ADD rsp,-8 @3")), 0, -1}};
  EXPECT_EQ(row_at(regions, 100, 50), "cfa=rsp+524296 ra=[cfa-8]");
  regions[0].ops.push_back(op("ADD rsp,-8 @3"));
  EXPECT_EQ(row_at(regions, 100, 50), "error TOO_DEEP");
  regions[0].ops[10] = op("STOP");
  EXPECT_EQ(row_at(regions, 100, 50), "cfa=rsp+88 ra=[cfa-8]");
}

/// The work is bounded: the longest lists in the worst order end with an error.
TEST(DirectiveDepth, WorkIsBounded) {
  std::vector<unw_dyn_op_t> ops;
  for (int i = 0; i < static_cast<int>(k_max_ops); ++i) ops.push_back(_U_dyn_op(UNW_DYN_ADD, 0, 70000 - i, 7, -8));
  EXPECT_EQ(row_at({{80000, ops, 0, -1}}, 80000, 79999), "error TOO_DEEP");
}

/// More registers than a row has room for cannot be saved; as many as there are can.
TEST(DirectiveDepth, EveryRegisterSaved) {
  for (const Arch* arch : all_arches()) {
    CaseRegion region{4, {}, 0, -1};
    std::size_t saved = 0;
    for (const RegisterInfo& r : arch->registers) {
      const auto spill = _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 0, r.libunwind, 8 * r.dwarf);
      FrameRow row;
      const rows::CaseProcedure alone({{4, {spill}, 0, -1}}, {k_code, k_code + 4 * arch->unit});
      const bool can_be_saved =
          r.dwarf != arch->sp &&
          directive_row(alone.info(), *arch, CodeAddress::interrupted(k_code + arch->unit), nullptr, row);
      if (!can_be_saved) continue;
      region.ops.push_back(spill);
      ++saved;
    }
    if (arch->sign_state != k_no_reg)
      region.ops.push_back(_U_dyn_op(UNW_DYN_ADD, 0, 0, arch->by_dwarf(arch->sign_state)->libunwind, 1));
    const rows::CaseProcedure procedure({region}, {k_code, k_code + 4 * arch->unit});
    FrameRow row;
    ASSERT_TRUE(directive_row(procedure.info(), *arch, CodeAddress::interrupted(k_code + arch->unit), nullptr, row));
    EXPECT_EQ(row.entries().size(), saved + (arch->sign_state != k_no_reg));
    EXPECT_GE(saved, 8u);
  }
}

/// Regions that arrive a few directives at a time, as a reader of another process delivers them.
class PiecewiseReader final : public RegionReader {
 public:
  explicit PiecewiseReader(std::uint64_t fail_at = ~std::uint64_t{0}) : left_(fail_at) {}

  Status read_header(Addr at, RegionHeader& out) const noexcept override {
    if (left_-- == 0) return Error{ErrorCode::unreadable_memory, at, "region"};
    return local_.read_header(at, out);
  }
  Result<std::span<const unw_dyn_op_t>> read_ops(const RegionHeader& region, std::uint32_t first,
                                                 std::span<unw_dyn_op_t> buffer) const noexcept override {
    if (left_-- == 0) return Error{ErrorCode::unreadable_memory, region.at, "directives"};
    const auto all = local_.read_ops(region, first, {});
    const std::size_t n = std::min<std::size_t>({all->size(), buffer.size(), 3});
    std::copy_n(all->begin(), n, buffer.begin());
    return std::span<const unw_dyn_op_t>(buffer.first(n));
  }

 private:
  LocalRegionReader local_;
  mutable std::uint64_t left_;
};

TEST(DirectiveReader, RegionsNeedNotBeInHostMemory) {
  std::size_t rows_compared = 0, failures = 0;
  for (const char* path : {"worked_examples.case", "further_rows.case", "hard_frames.case", "regions.case"}) {
    const auto file = rows::load_cases(path);
    for (const rows::RowCase& c : file->cases) {
      const rows::CaseProcedure procedure(c);
      const Addr first = reinterpret_cast<std::uintptr_t>(procedure.info().u.pi.regions);
      for (Addr at = c.range.begin; at < c.range.end; at += c.arch->unit) {
        DirectiveOutcome whole(*c.arch), pieces(*c.arch);
        const Status expected = run_directives(procedure.info(), *c.arch, at, whole);
        ASSERT_EQ(run_directives(PiecewiseReader(), first, c.range, *c.arch, at, pieces).has_value(),
                  expected.has_value());
        if (!expected || whole.state.alias()) continue;
        FrameRow a, b;
        ASSERT_TRUE(make_row(whole, a).has_value() == make_row(pieces, b).has_value());
        ASSERT_EQ(a, b) << c.name;
        ++rows_compared;
        // The error is that of the failed read, wherever that is.
        for (std::uint64_t n = 0;; ++n) {
          const Status read = run_directives(PiecewiseReader(n), first, c.range, *c.arch, at, pieces);
          if (read) break;
          ASSERT_EQ(read.error().code, ErrorCode::unreadable_memory);
          ++failures;
        }
      }
    }
  }
  EXPECT_GT(rows_compared, 500u);
  EXPECT_GT(failures, 1000u);
}

}  // namespace
}  // namespace jitunwind::test
