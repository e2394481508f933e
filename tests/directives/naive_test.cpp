// The library's machine against a plain reading of the same rules, on random descriptions. The check of descriptions is
// compared with both: it finds everything that ends a lookup, and what it accepts has rows.
#include <gtest/gtest.h>

#include <algorithm>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "tests/directives/naive_directives.h"
#include "tests/directives/random_description.h"
#include "tests/support/emulated.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x40000;
constexpr int k_descriptions = 6000;

std::string text_of(const RandomDescription& d, const Arch& arch) {
  std::string text = "size " + std::to_string(d.size);
  for (const rows::CaseRegion& r : d.regions) {
    text += "\nregion " + std::to_string(r.insn_count);
    for (const unw_dyn_op_t& op : r.ops) text += "\n  " + directive_text(op, arch);
  }
  return text;
}

std::string text_of(const NaiveAnswer& a, const Arch& arch) {
  const Status status = a.error == ErrorCode::unspecified ? Status(Done{}) : Status(Error{a.error, 0, ""});
  return rows::outcome_text(status, a.row, arch);
}

/// Codes that say something is wrong without ending a look-up.
bool is_accepted(ErrorCode code) {
  using enum ErrorCode;
  return is_warning(code) || code == e_when || code == e_add_align || code == e_fp_clobber || code == e_spill_low ||
         code == e_spill_ra;
}

void compare(const Arch& arch, const RandomDescription& d) {
  const rows::CaseProcedure procedure(d.regions, {k_code, k_code + d.size});
  const std::vector<Finding> findings = validate(procedure.info(), arch);
  const auto found = [&](ErrorCode code) {
    return std::ranges::any_of(findings, [code](const Finding& f) { return f.code == code; });
  };
  bool failed = false;
  for (std::uint64_t offset = 0; offset <= d.size; offset += arch.unit) {
    for (const bool of_call : {false, true}) {
      const Addr at = k_code + offset;
      if (of_call ? offset == 0 : offset == d.size) continue;
      const NaiveAnswer naive = naive_row(arch, d.size, d.regions, offset, of_call);
      FrameRow row;
      const Status status = directive_row(
          procedure.info(), arch, of_call ? CodeAddress::returned_to(at) : CodeAddress::interrupted(at), nullptr, row);
      const ErrorCode code = status ? ErrorCode::unspecified : status.error().code;
      ASSERT_TRUE(code == naive.error && (!status || row == naive.row))
          << text_of(d, arch) << "\n+" << std::hex << offset << ": " << rows::outcome_text(status, row, arch)
          << "\nnaive: " << text_of(naive, arch);
      ASSERT_TRUE(!status || row.range.contains(of_call ? at - 1 : at));
      failed |= !status && code != ErrorCode::e_fp_clobber;
      ASSERT_TRUE(status || found(code)) << text_of(d, arch) << "\n" << finding_name(code);
    }
  }
  const bool harmless = std::ranges::all_of(findings, [](const Finding& f) { return is_accepted(f.code); });
  ASSERT_TRUE(!harmless || !failed) << text_of(d, arch);
}

TEST(Directives, EqualAPlainReading) {
  for (const Arch* arch : all_arches()) {
    std::mt19937_64 random(20240601);
    for (int i = 0; i < k_descriptions && !testing::Test::HasFatalFailure(); ++i)
      compare(*arch, random_description(*arch, random, i % 4 == 0 ? Extremes::all : Extremes::none));
  }
}

std::string text_of(const Status& status, const DirectiveOutcome& outcome, const Arch& arch) {
  FrameRow row;
  if (status && outcome.state.alias()) return "alias " + std::to_string(*outcome.state.alias());
  const Status made = status ? make_row(outcome, row) : status;
  return rows::outcome_text(made, row, arch) + " from " + std::to_string(row.range.begin) + " to " +
         std::to_string(row.range.end);
}

/// Makes some directives those of the instruction before, and saves some registers in what that instruction frees.
void join_instructions(RandomDescription& d, std::mt19937_64& random) {
  for (rows::CaseRegion& region : d.regions)
    for (std::size_t i = 1; i < region.ops.size(); ++i) {
      unw_dyn_op_t &op = region.ops[i], &before = region.ops[i - 1];
      if (random() % 4 != 0) continue;
      op.when = before.when;
      if (op.tag != UNW_DYN_SPILL_SP_REL || before.tag != UNW_DYN_ADD || random() % 4 != 0) continue;
      before.val = 16;
      op.val = static_cast<unw_word_t>(-8);
    }
}

/// The short way to a compact row gives the machine's, and where it holds, or leaves it to the machine.
TEST(Directives, CompactRowsAreTheMachines) {
  for (const Arch* arch : all_arches()) {
    const CompactLayout layout(*arch);
    std::mt19937_64 random(20261127);
    std::size_t compacted = 0, told = 0;
    for (std::size_t i = 0; i < repetitions(8000); ++i) {
      RandomDescription d = random_description(*arch, random, i % 8 == 0 ? Extremes::all : Extremes::none);
      if (i % 2 == 0) join_instructions(d, random);
      const rows::CaseProcedure procedure(d.regions, {k_code, k_code + d.size});
      for (Addr at = k_code; at < k_code + d.size; at += arch->unit) {
        FrameRow row;
        const Status status = directive_row(procedure.info(), *arch, CodeAddress::interrupted(at), nullptr, row);
        CompactRow expected, found;
        AddrRange range;
        const bool is_compact = status && compact(row, layout, expected);
        compacted += is_compact;
        if (!find_compact_row(procedure.info(), layout, at, found, range)) continue;
        ++told;
        ASSERT_TRUE(is_compact && found == expected && range == row.range)
            << text_of(d, *arch) << "\n+" << std::hex << at - k_code << ": " << rows::outcome_text(status, row, *arch)
            << "\nfound: " << to_text(expand(found, layout), *arch) << " from " << range.begin << " to " << range.end
            << ", not from " << row.range.begin << " to " << row.range.end;
      }
    }
    EXPECT_GE(2 * told, compacted) << arch->name;
    EXPECT_EQ(told == 0, layout.size() == 0) << arch->name;
  }
}

/// One run through all addresses gives at each what a run to it alone gives, even if some addresses are left out.
TEST(Directives, OneRunSaysWhatManySay) {
  for (const Arch* arch : all_arches()) {
    std::mt19937_64 random(20261123);
    std::size_t aliases = 0;
    for (int i = 0; i < 2000; ++i) {
      RandomDescription d = random_description(*arch, random, i % 4 == 0 ? Extremes::all : Extremes::none);
      if (i % 3 == 0) {
        const auto before = d.regions.begin() + static_cast<std::ptrdiff_t>(random() % (d.regions.size() + 1));
        const auto when = static_cast<std::int32_t>(random() % 5) - 1;
        d.regions.insert(
            before, {static_cast<std::int32_t>(random() % 6), {_U_dyn_op(UNW_DYN_ALIAS, 0, when, 0, 0x9000)}, 0, -1});
      }
      const rows::CaseProcedure procedure(d.regions, {k_code, k_code + d.size});
      DirectiveRun every(procedure.info(), *arch), some(procedure.info(), *arch);
      for (Addr at = k_code; at < k_code + d.size; at += arch->unit) {
        DirectiveOutcome alone(*arch), in_turn(*arch);
        const Status expected = run_directives(procedure.info(), *arch, at, alone);
        const std::string text = text_of(expected, alone, *arch);
        aliases += expected && alone.state.alias();
        Status got = every.go_to(at, in_turn);
        ASSERT_EQ(text_of(got, in_turn, *arch), text) << text_of(d, *arch) << "\n+" << std::hex << at - k_code;
        if (random() % 3 != 0) continue;
        got = some.go_to(at, in_turn);
        ASSERT_EQ(text_of(got, in_turn, *arch), text) << text_of(d, *arch) << "\n+" << std::hex << at - k_code;
      }
    }
    EXPECT_GT(aliases, 100u);
  }
}

/// All rows of a procedure together cost what the last one does.
TEST(Directives, OneRunLooksAtADirectiveSoOften) {
  for (const std::uint64_t size : {1'000u, 10'000u, 60'000u}) {
    rows::CaseRegion region{static_cast<std::int32_t>(size), {}, 0, -1};
    for (std::uint64_t i = 0; i < size; ++i)
      region.ops.push_back(_U_dyn_op(UNW_DYN_ADD, 0, static_cast<std::int32_t>(i), 7, i % 2 == 0 ? -8ul : 8ul));
    const rows::CaseProcedure procedure({region}, {k_code, k_code + size});
    DirectiveRun run(procedure.info(), arch::x86_64), last(procedure.info(), arch::x86_64);
    DirectiveOutcome outcome(arch::x86_64);
    for (Addr at = k_code; at < k_code + size; ++at) ASSERT_TRUE(run.go_to(at, outcome));
    ASSERT_TRUE(last.go_to(k_code + size - 1, outcome));
    EXPECT_EQ(run.work(), last.work());
    EXPECT_LT(run.work(), 8 * size);
  }
}

/// The range that comes with a row is one in which it holds.
TEST(Directives, RowsHoldInTheirRange) {
  const Arch& arch = arch::x86_64;
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const RandomDescription d = random_description(arch, random, Extremes::none);
    const rows::CaseProcedure procedure(d.regions, {k_code, k_code + d.size});
    FrameRow row, other;
    for (Addr at = k_code; at < k_code + d.size; ++at) {
      if (!directive_row(procedure.info(), arch, CodeAddress::interrupted(at), nullptr, row)) continue;
      ASSERT_TRUE(k_code <= row.range.begin && row.range.end <= k_code + d.size);
      for (Addr near = row.range.begin; near < row.range.end; ++near) {
        ASSERT_TRUE(directive_row(procedure.info(), arch, CodeAddress::interrupted(near), nullptr, other));
        ASSERT_EQ(row, other) << text_of(d, arch) << "\n" << at - k_code << " and " << near - k_code;
      }
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
