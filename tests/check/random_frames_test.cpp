// Random procedures of the builders' tests, whose descriptions are right: single steps have shown it. All rows agree
// with the code, and a change of one rule that makes a row wrong is noticed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "jitunwind/builders/described_rows.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/check_procedure.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/builders/random_frame.h"

namespace jitunwind::test {
namespace {

std::size_t how_many() {
  const char* const wanted = std::getenv("RANDOM_FRAMES");
  return wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 1000;
}

Addr address_of(const RandomFrame& frame) { return reinterpret_cast<std::uintptr_t>(frame.code.data()); }

std::string text_of(const CheckReport& report, Addr start) {
  std::string all;
  for (const CheckFinding& finding : report.findings) all += text(finding, arch::x86_64, start) + "\n";
  return all;
}

TEST(CheckedRandomFrames, Agree) {
  std::mt19937_64 random(1);
  std::uint64_t agreed = 0, undecided = 0;
  for (std::size_t i = 0; i < how_many(); ++i) {
    const RandomFrame frame = random_frame(random);
    const auto description = described(frame.said, frame.code.size());
    ASSERT_TRUE(description) << description.error().text();
    const auto live = register_code(*description, frame.code.data(), frame.code.size());
    ASSERT_TRUE(live);
    const CheckReport report = check(*live->info());
    // The code does not tell that a callee pops arguments. Rows that find the CFA by SP do.
    const Verdict worst = frame.helper_pops && frame.has_pointer ? Verdict::cannot_tell : Verdict::agrees;
    undecided += report.verdict == Verdict::cannot_tell;
    ASSERT_LE(report.verdict, worst) << i << "\n" << text_of(report, address_of(frame)) << description->to_text();
    agreed += report.agreed;
  }
  std::printf("%llu instructions, %llu procedures undecided\n", static_cast<unsigned long long>(agreed),
              static_cast<unsigned long long>(undecided));
}

using Rows = std::vector<FrameRow>;

/// Returns the rows of a description, each with its range.
Rows rows_of(const Description& description, AddrRange code) {
  DescribedRows described(description, code.size());
  Rows rows;
  for (Addr at = code.begin; at < code.end; ++at) {
    FrameRow row;
    if (!described.row(at - code.begin, row)) return {};
    if (!rows.empty() && rows.back() == row) {
      rows.back().range.end = at + 1;
    } else {
      rows.push_back(row);
      rows.back().range = {at, at + 1};
    }
  }
  return rows;
}

/// Changes one rule of a row so that it is wrong wherever the row was right. Empty: there is no such rule.
const char* break_rule(FrameRow& row, std::mt19937_64& random) {
  const std::int64_t by = random() % 2 == 0 ? 8 : -8;
  if (random() % 3 == 0) {
    (row.cfa.kind == CfaRule::Kind::deref ? row.cfa.add : row.cfa.offset) += by;
    return "CFA";
  }
  const auto entries = row.entries();
  const FrameRow::Entry entry = entries[random() % entries.size()];
  RegRule rule = entry.rule;
  if (rule.kind != RegRule::Kind::at_cfa && rule.kind != RegRule::Kind::at_reg) return "";
  if (random() % 2 == 0) {
    rule.offset += by;
    return row.set(entry.reg, rule) ? "slot" : "";
  }
  const FrameRow::Entry other = entries[random() % entries.size()];
  if (other.reg == entry.reg || other.rule.kind != RegRule::Kind::at_cfa) return "";
  return row.set(entry.reg, other.rule) ? "slot of another register" : "";
}

/// Whether some register is stored by two of its instructions.
bool is_saved_twice(const RandomFrame& frame) {
  std::array<int, 16> stores{};
  for (const Said& said : frame.said)
    if (said.kind == Said::Kind::push || said.kind == Said::Kind::save_at_sp || said.kind == Said::Kind::save_at_fp ||
        said.kind == Said::Kind::enter)
      if (++stores[said.kind == Said::Kind::enter ? 6 : said.reg.dwarf()] == 2) return true;
  return false;
}

TEST(CheckedRandomFrames, WithOneWrongRuleDisagree) {
  std::mt19937_64 random(2);
  const LocalMemory memory;
  std::size_t undecided = 0, right = 0, by_frame_pointer = 0;
  for (std::size_t made = 0; made < how_many();) {
    const RandomFrame frame = random_frame(random);
    if (frame.helper_pops) continue;  // a row that begins behind a call may be that of another path
    const auto description = described(frame.said, frame.code.size());
    ASSERT_TRUE(description);
    const AddrRange code{address_of(frame), address_of(frame) + frame.code.size()};
    Rows rows = rows_of(*description, code);
    ASSERT_FALSE(rows.empty());
    FrameRow& changed = rows[random() % rows.size()];
    const std::string before = to_text(changed, arch::x86_64);
    const std::string how = break_rule(changed, random);
    if (how.empty()) continue;
    ++made;
    const auto row_at = [&](Addr at, FrameRow& out) -> Found {
      for (const FrameRow& row : rows)
        if (row.range.contains(at)) return out = row, true;
      return false;
    };
    const CheckReport report = check({arch::x86_64, code, memory}, row_at);
    // A register that is saved by SP behind a call may be elsewhere, if rows find the CFA by a frame pointer: the
    // callee may have popped arguments. Nothing else may leave a wrong rule undecided.
    const bool is_decidable = !frame.has_pointer;
    by_frame_pointer += frame.has_pointer;
    if (report.verdict == Verdict::cannot_tell) {
      ++undecided;
      ASSERT_EQ(report.undecided, report.reasons[static_cast<std::size_t>(CannotTell::stack_pointer)])
          << text_of(report, code.begin) << description->to_text();
    }
    // A register that is saved in two places: the changed rule names the other one.
    if (report.verdict == Verdict::agrees) {
      ++right;
      std::printf("right still: +%llx %s instead of %s\n%s\n",
                  static_cast<unsigned long long>(changed.range.begin - code.begin),
                  to_text(changed, arch::x86_64).c_str(), before.c_str(), description->to_text().c_str());
      ASSERT_TRUE(is_saved_twice(frame)) << text_of(report, code.begin) << description->to_text();
    }
    ASSERT_GE(report.verdict, how == "slot"  ? Verdict::agrees
                              : is_decidable ? Verdict::disagrees
                                             : Verdict::cannot_tell)
        << how << " at +" << std::hex << changed.range.begin - code.begin << ": " << to_text(changed, arch::x86_64)
        << " instead of " << before << "\n"
        << text_of(report, code.begin) << description->to_text();
  }
  std::printf("of %zu, %zu of them with a frame pointer, %zu not decided, %zu right still\n", how_many(),
              by_frame_pointer, undecided, right);
  // Shares, with four times the deviation of a count.
  const auto most = [](double mean) { return mean + 4 * std::sqrt(mean) + 1; };
  EXPECT_LT(static_cast<double>(undecided), most(static_cast<double>(how_many()) * 0.03));
  EXPECT_LT(static_cast<double>(right), most(static_cast<double>(how_many()) * 0.0001));
}

}  // namespace
}  // namespace jitunwind::test
