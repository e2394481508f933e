// Input: a byte of options, the number of rows, then 4 bytes for each row, and code. Options: bits 0 and 1 the CPU,
// bit 2: the second half of the code is its language-specific data, too; bits 3 and 4: the number of parts in which the
// code is checked, less 1. Tables of switches are in the code.
// A row: the number of instruction units to the next one, and three bytes that choose its rules.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/check/check.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "tests/fuzz/fuzz_memory.h"

using namespace jitunwind;

namespace {

constexpr Addr k_code = 0x10000;
const std::array<const Arch*, 4> k_arches{&arch::x86_64, &arch::aarch64, &arch::x86, &arch::riscv};

/// The expression of linkage tables, of which rows may have a part.
constexpr std::array<std::uint8_t, 11> k_linkage{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};

/// A rule of any kind, with numbers that code often has and with the largest.
RegRule rule_of(unsigned choice, const Arch& arch) {
  const auto offset = static_cast<std::int64_t>(choice >> 4) * -arch.word_size;
  const RegNum other = arch.registers[choice % arch.registers.size()].dwarf;
  switch (choice & 7) {
    case 1:
      return RegRule::at_cfa(offset);
    case 2:
      return RegRule::in_reg(other);
    case 3:
      return RegRule::at_reg(other, offset);
    case 4:
      return RegRule::undefined();
    case 5:
      return RegRule::at_cfa(INT64_MIN - offset);
    case 6:
      return RegRule::constant(choice >> 3 & 1);
    default:
      return RegRule::same();
  }
}

FrameRow row_of(const std::uint8_t* chosen, const Arch& arch) {
  FrameRow row;
  const RegNum reg = arch.registers[chosen[1] % arch.registers.size()].dwarf;
  const std::int64_t offset = std::int64_t{chosen[2]} * arch.word_size;
  row.cfa = (chosen[1] & 0x80) != 0 ? CfaRule::deref(reg, offset, 8) : CfaRule::at(reg, offset);
  if (chosen[1] >= 0xf0)
    row.cfa = CfaRule::of(std::as_bytes(std::span(k_linkage)).first(chosen[2] % (k_linkage.size() + 1)));
  row.ra = arch.ra;
  if (arch.ra_in_memory) (void)row.set(arch.ra, RegRule::at_cfa(arch.entry_ra));
  (void)row.set(arch.registers[chosen[3] % arch.registers.size()].dwarf, rule_of(chosen[3], arch));
  return row;
}

void expect_sound(const CheckReport& report, AddrRange code) {
  const std::uint64_t reasons = std::accumulate(report.reasons.begin(), report.reasons.end(), std::uint64_t{0});
  fuzz::check(reasons == report.undecided, "what is not told has a reason");
  fuzz::check((report.verdict == Verdict::disagrees) == (report.disagreed != 0), "the worst counts");
  fuzz::check(report.findings.size() <= CheckReport::k_most_findings, "findings are few");
  Addr last = code.begin;
  for (const CheckFinding& finding : report.findings) {
    fuzz::check(finding.verdict != Verdict::agrees, "a finding is one");
    fuzz::check((finding.verdict == Verdict::cannot_tell) == (finding.why != CannotTell::none), "it has a reason");
    fuzz::check(finding.range.begin >= last && finding.range.begin < code.end, "findings are in the code, in order");
    last = finding.range.begin;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Arch& arch = *k_arches[data[0] & 3];
  const std::size_t count = data[1], head = 2 + 4 * count;
  if (size <= head) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(head);
  const AddrRange code{k_code, k_code + bytes.size()};
  const BytesMemory memory({{k_code, bytes}});
  std::vector<Addr> begins;
  for (std::size_t i = 0, at = 0; i < count; at += (std::size_t{data[2 + 4 * i]} + 1) * arch.unit, ++i)
    begins.push_back(k_code + at);
  const auto row_at = [&](Addr at, FrameRow& out) -> Found {
    for (std::size_t i = count; i-- > 0;) {
      if (begins[i] > at) continue;
      out = row_of(data + 2 + 4 * i, arch);
      out.range = {begins[i], i + 1 < count ? begins[i + 1] : ~Addr{0}};
      return true;
    }
    return false;
  };
  const fuzz::MemoryLimit limit(64 * size);
  const Addr lsda = (data[0] & 4) != 0 ? k_code + bytes.size() / 2 : 0;
  const std::size_t count_of_parts = (data[0] >> 3 & 3) + std::size_t{1}, part_size = bytes.size() / count_of_parts + 1;
  CheckedParts parts;
  unsigned rounds = 0;
  do {
    for (Addr begin = code.begin; begin < code.end; begin += part_size) {
      const AddrRange part{begin, std::min<Addr>(begin + part_size, code.end)};
      if (rounds != 0 && !parts.is_due(part)) continue;
      const CheckReport report = check({arch, part, memory, lsda}, row_at, count_of_parts == 1 ? nullptr : &parts);
      expect_sound(report, part);
      for (const CheckFinding& finding : report.findings) (void)text(finding, arch, part.begin);
    }
    fuzz::check(++rounds < 10, "it ends");
  } while (parts.begin_round());
  return 0;
}
