// Random procedures as rows: every kind of rule on every kind of register.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/support/whole_procedure.h"

namespace jitunwind::test {

class RandomRows {
 public:
  /// Offsets have up to `offset_bits` bits, sign included.
  RandomRows(std::mt19937_64& random, const Arch& arch, ExpressionPool& pool, unsigned offset_bits = 64)
      : random_(random), arch_(arch), pool_(pool), offset_bits_(offset_bits) {}

  /// Returns up to 16 rows at growing distances, each a few changes away from the one before.
  std::vector<OffsetRow> procedure() {
    FrameRow row = entry_row(arch_);
    std::uint64_t offset = 0;
    std::vector<OffsetRow> rows;
    for (unsigned count = 1 + below(16); count > 0; --count) {
      for (unsigned changes = below(5); changes > 0; --changes) change(row);
      rows.push_back({offset, row});
      offset += arch_.unit * (1 + (std::uint64_t{1} << below(20)) * below(3));
    }
    return rows;
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  template <class... T>
  auto one_of(T... values) {
    const std::common_type_t<T...> list[] = {values...};
    return list[below(sizeof...(values))];
  }

  RegNum reg() { return arch_.registers[below(static_cast<unsigned>(arch_.registers.size()))].dwarf; }
  /// Returns an offset of any size; most are multiples of words.
  std::int64_t offset() {
    const auto value = static_cast<std::int64_t>(random_()) >> (64 - offset_bits_ + below(offset_bits_));
    return below(8) == 0 ? value : value / 8 * 8;
  }
  /// Returns operations that the engine does not know in another form.
  Expression expression() {
    std::vector<std::byte> bytes{std::byte{0x96}};
    for (unsigned count = below(6); count > 0; --count) bytes.push_back(static_cast<std::byte>(0x30 + below(32)));
    return pool_.add(std::move(bytes));
  }

  void change(FrameRow& row) {
    switch (below(8)) {
      case 0:
        row.cfa = CfaRule::at(reg(), offset());
        break;
      case 1:
        row.cfa = below(2) == 0 ? CfaRule::deref(reg(), offset(), offset()) : CfaRule::of(expression());
        break;
      case 2:
        row.args_size = one_of(0u, 8u, 16u, 1u << 20);
        break;
      default:
        change_rule(row, below(3) == 0 ? arch_.ra : reg());
        break;
    }
  }

  void change_rule(FrameRow& row, RegNum which) {
    RegRule rule;
    if (which == arch_.sign_state) {
      const std::int64_t state = below(4);
      if (state != 0) rule = RegRule::constant(state);
    } else {
      rule = any_rule();
    }
    if (which == arch_.ra && arch_.ra_in_memory && rule.kind == RegRule::Kind::unspecified) return;
    (void)row.set(which, rule);  // a full row stays as it is
  }

  RegRule any_rule() {
    switch (below(12)) {
      case 0:
        return RegRule::undefined();
      case 1:
        return RegRule::same();
      case 2:
        return RegRule::is_cfa(offset());
      case 3:
        return RegRule::in_reg(reg());
      case 4:
        return RegRule::at_reg(reg(), offset());
      case 5:
        return RegRule::is_reg(reg(), offset());
      case 6:
        return RegRule::at(expression());
      case 7:
        return RegRule::is(expression());
      case 8:
        return RegRule::constant(offset());
      case 9:
        return {};
      default:
        return RegRule::at_cfa(offset());
    }
  }

  std::mt19937_64& random_;
  const Arch& arch_;
  ExpressionPool& pool_;
  unsigned offset_bits_;
};

}  // namespace jitunwind::test
