// Rows in the form in which they are compared: what each says about places, without expressions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/check/check.h"
#include "jitunwind/unwind_core/check/code_values_p.h"

namespace jitunwind::check_code {

/// The rule of a row for one register.
struct RegisterClaim {
  RegNum reg = k_no_reg;
  Place place = k_no_place;
  RegRule::Kind kind = RegRule::Kind::same;
  Place base = k_no_place;  ///< for rules with another register
  std::int32_t offset = 0;
  friend bool operator==(const RegisterClaim&, const RegisterClaim&) = default;
};

struct RowClaims {
  enum class Cfa : std::uint8_t { offset, deref, not_followed };

  std::uint32_t begin = 0, end = 0;   ///< offsets in the code
  CannotTell why = CannotTell::none;  ///< there is no row to compare
  Cfa cfa = Cfa::not_followed;
  Place cfa_base = k_no_place;
  std::int32_t cfa_offset = 0, cfa_add = 0;
  CodeValues::Signature signature = CodeValues::Signature::none;
  bool is_outermost = false;
  bool is_of_linkage = false;          ///< its CFA was an expression of the pc: each entry of a linkage table is called
  std::uint32_t uses = 0;              ///< places of registers that it speaks of, a bit for each
  std::uint32_t first = 0, count = 0;  ///< its claims
};

/// The comparison of a row with the values before one instruction.
struct Judgement {
  Verdict verdict = Verdict::agrees;
  CannotTell why = CannotTell::none;
  RegNum reg = k_no_reg;
  Value seen{};            ///< what is in the place that the row names, if it disagrees
  std::uint64_t also = 0;  ///< other registers that disagree: a bit for each place, and for the signature
  bool same_as(const Judgement& o) const noexcept {
    return verdict == o.verdict && why == o.why && reg == o.reg && also == o.also && seen.same_as(o.seen);
  }
};

/// All rows of some code.
class ClaimedRows {
 public:
  ClaimedRows(const Machine& machine, AddrRange code) noexcept : machine_(machine), code_(code) {}

  /// Reads on until the rows cover the first `size` bytes of the code.
  void read(const RowAt& rows, Addr size);
  /// Never beyond the last: there is a row, perhaps an empty one, for every offset in the code.
  std::uint32_t index_at(std::uint32_t offset) const noexcept;
  const RowClaims& operator[](std::uint32_t index) const noexcept { return rows_[index]; }
  /// Whether two rows say the same.
  bool are_equal(std::uint32_t a, std::uint32_t b) const noexcept;

  Judgement judge(const RowClaims& row, const CodeValues& values) const noexcept;
  /// The values that must be there if the row is right.
  CodeValues values_of(const RowClaims& row) const noexcept;
  bool is_entry_row(const RowClaims& row) const noexcept;
  /// Whether a CFA is an expression, which may depend on the pc.
  bool has_expression() const noexcept { return has_expression_; }

 private:
  std::span<const RegisterClaim> claims_of(const RowClaims& row) const noexcept {
    return std::span(claims_).subspan(row.first, row.count);
  }
  void add(const FrameRow& row, RowClaims& out);
  bool replace_expression(FrameRow& row, Addr at) const;
  Result<std::int64_t> distance_by(Expression expression, Addr at) const;
  std::uint32_t uses(const RowClaims& row) const noexcept;
  void add_register(RegNum reg, const RegRule& rule);
  Judgement judge_cfa(const RowClaims& row, const CodeValues& values) const noexcept;
  Judgement judge_register(const RegisterClaim& claim, const CodeValues& values) const noexcept;
  Value place_of_claim(const RegisterClaim& claim, const CodeValues& values) const noexcept;

  const Machine& machine_;
  AddrRange code_;
  std::vector<RowClaims> rows_;
  std::vector<RegisterClaim> claims_;
  bool has_expression_ = false;
};

}  // namespace jitunwind::check_code
