// FrameRow: how to get from one frame to its caller at one address. Every source of unwind information produces rows;
// everything that uses unwind information uses rows. Rows have one text form, which prints, parses and compares.
//
//   x86-64, after push rbp; mov rbp,rsp; push rbx        text of this row
//
//      CFA ->  |  caller's frame   |                     cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
//       -8     |  return address   |  ra=[cfa-8]
//      -16     |  caller's rbp     |  rbp=[cfa-16]  <- rbp
//      -24     |  caller's rbx     |  rbx=[cfa-24]  <- rsp
//
// CFA: the caller's SP at the call (DWARF 5, 6.4), constant during one activation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/arch/arch.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A DWARF expression (DWARF 5, 2.5) in host memory. The bytes belong to the maker of the row: they are in the mapped
/// section or in the caller's buffer. They must outlive the row, unless it owns them (FrameRow::own_expressions).
using Expression = std::span<const std::byte>;

/// How the CFA is computed.
struct CfaRule {
  enum class Kind : std::uint8_t {
    none,        ///< not known; a row without CFA cannot be applied
    offset,      ///< reg + offset
    deref,       ///< *(reg + offset) + add
    expression,  ///< value of the expression, evaluated with an empty stack
  };
  Kind kind = Kind::none;
  RegNum reg = k_no_reg;
  std::int64_t offset = 0;
  std::int64_t add = 0;
  Expression expression{};

  /// The constructor functions, one for each kind.
  static CfaRule at(RegNum reg, std::int64_t offset) noexcept { return {Kind::offset, reg, offset, 0, {}}; }
  static CfaRule deref(RegNum reg, std::int64_t offset, std::int64_t add) noexcept {
    return {Kind::deref, reg, offset, add, {}};
  }
  static CfaRule of(Expression e) noexcept { return {Kind::expression, k_no_reg, 0, 0, e}; }
};

/// The rule for the caller's value of one register. `at_` loads from memory, `is_` computes (DWARF 5, 6.4.1).
struct RegRule {
  enum class Kind : std::uint8_t {
    unspecified,    ///< the row does not mention it: preserved registers keep their value, others have none
    undefined,      ///< the caller's value is lost; for the return address: the outermost frame
    same,           ///< unchanged
    at_cfa,         ///< *(CFA + offset)
    is_cfa,         ///< CFA + offset
    in_reg,         ///< value of reg
    at_reg,         ///< *(reg + offset)
    is_reg,         ///< reg + offset
    at_expression,  ///< *(expression), evaluated with the CFA on the stack
    is_expression,  ///< expression, evaluated with the CFA on the stack
    constant,       ///< offset itself (pseudo registers)
  };
  Kind kind = Kind::unspecified;
  RegNum reg = k_no_reg;

 private:
  std::uint32_t expression_size_ = 0;

 public:
  std::int64_t offset = 0;  ///< an expression's address is also kept here: 16 bytes per rule keep a row near 1 KiB

  bool has_expression() const noexcept { return kind == Kind::at_expression || kind == Kind::is_expression; }
  /// Empty unless has_expression().
  Expression expression() const noexcept {
    if (!has_expression()) return {};
    return {reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(offset)), expression_size_};
  }

  /// The constructor functions, one for each kind.
  static RegRule undefined() noexcept { return {Kind::undefined, k_no_reg, 0}; }
  static RegRule same() noexcept { return {Kind::same, k_no_reg, 0}; }
  static RegRule at_cfa(std::int64_t offset) noexcept { return {Kind::at_cfa, k_no_reg, offset}; }
  static RegRule is_cfa(std::int64_t offset) noexcept { return {Kind::is_cfa, k_no_reg, offset}; }
  static RegRule in_reg(RegNum reg) noexcept { return {Kind::in_reg, reg, 0}; }
  static RegRule at_reg(RegNum reg, std::int64_t offset) noexcept { return {Kind::at_reg, reg, offset}; }
  static RegRule is_reg(RegNum reg, std::int64_t offset) noexcept { return {Kind::is_reg, reg, offset}; }
  static RegRule at(Expression e) noexcept { return {Kind::at_expression, e}; }
  static RegRule is(Expression e) noexcept { return {Kind::is_expression, e}; }
  static RegRule constant(std::int64_t value) noexcept { return {Kind::constant, k_no_reg, value}; }

  RegRule() noexcept = default;

 private:
  RegRule(Kind k, RegNum r, std::int64_t o) noexcept : kind(k), reg(r), offset(o) {}
  RegRule(Kind k, Expression e) noexcept
      : kind(k),
        expression_size_(static_cast<std::uint32_t>(e.size())),
        offset(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(e.data()))) {}
};
static_assert(sizeof(RegRule) == 16);

bool operator==(const CfaRule& a, const CfaRule& b) noexcept;
bool operator==(const RegRule& a, const RegRule& b) noexcept;

/// The origin of a row. Guesses may be wrong, and the frame says so.
enum class RowOrigin : std::uint8_t {
  none,
  dyn_directives,  ///< registered procedure, format DYNAMIC
  dyn_table,       ///< registered procedure, one of the table formats
  eh_frame,
  debug_frame,
  signal_frame,   ///< recognised signal trampoline
  plt_stub,       ///< recognised procedure linkage stub
  callback,       ///< what a callback of the address space's owner found
  followed_code,  ///< guess: what the code does from the procedure's entry to here, and from here to its return
  bad_call,       ///< guess: pc is not code; the return address is taken to be where the call left it
  frame_pointer,  ///< bold guess: a frame record was found where the frame pointer points
  leaf,           ///< bold guess: code that nothing knows, taken for a procedure that touches no stack
  arm_exidx,      ///< .ARM.exidx
};

/// The name of an origin, such as "eh_frame". Never null. Signal-safe.
const char* origin_name(RowOrigin origin) noexcept;
constexpr bool is_guess(RowOrigin origin) noexcept {
  return origin >= RowOrigin::followed_code && origin <= RowOrigin::leaf;
}
constexpr bool is_registered(RowOrigin origin) noexcept {
  return origin == RowOrigin::dyn_directives || origin == RowOrigin::dyn_table;
}

/// The event that ends a kept row's validity. The row's source states it: docs/caches.md.
enum class KeepsBy : std::uint8_t {
  nothing,  ///< not at all: it depends on registers, on bytes of the code, or on other code
  module,   ///< until the module is unloaded, or something is registered at the address
  code,     ///< until something is registered at the address, or cancelled
};

/// A value with 56 rules of fixed storage; it allocates nothing. Registers that are not mentioned are unspecified.
class FrameRow {
 public:
  static constexpr std::size_t k_max_rules = 56;
  static constexpr std::size_t k_max_owned_bytes = 256;

  /// A rule and its register.
  struct Entry {
    RegNum reg;
    RegRule rule;
  };

  FrameRow() noexcept {}  // leaves entries_ uninitialised
  FrameRow(const FrameRow& other) noexcept { *this = other; }
  FrameRow& operator=(const FrameRow& other) noexcept;

  CfaRule cfa;
  AddrRange range;              ///< addresses that the row holds for; empty if unknown
  std::uint32_t args_size = 0;  ///< DW_CFA_GNU_args_size: bytes of pushed arguments, added to SP on resume only
  RegNum ra = k_no_reg;         ///< return address column
  RowOrigin origin = RowOrigin::none;
  KeepsBy keeps_by = KeepsBy::nothing;
  bool signal_frame = false;  ///< the caller was interrupted: its pc is exact, and the row recovers all its registers
  SigningKey signing_key = SigningKey::any;  ///< for a return address that Arch::sign_state marks as signed

  /// The rule of a register; unspecified when the row does not mention it.
  RegRule rule(RegNum reg) const noexcept;
  /// Sets a rule. RegRule::Kind::unspecified removes the entry. Returns false when the row is full.
  [[nodiscard]] bool set(RegNum reg, const RegRule& rule) noexcept {
    if (rule.kind == RegRule::Kind::unspecified) return remove(reg);
    Entry* const entry = entry_of(reg);
    if (entry) *entry = {reg, rule};
    return entry != nullptr;
  }
  /// The entries in the order of register numbers.
  std::span<const Entry> entries() const noexcept { return {first_entry(), count_}; }
  void clear_rules() noexcept { count_ = 0; }
  /// Restores the rules from the bytes of a former row's entries(). Precondition: count <= k_max_rules.
  void set_rules(const std::byte* entries, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count * sizeof(Entry); i += sizeof(Entry))
      std::memcpy(entries_.data() + i, entries + i, sizeof(Entry));
    count_ = static_cast<std::uint16_t>(count);
  }

  /// Copies the bytes of all expressions into the row, for bytes that may go away before the row does. Returns false
  /// and leaves the row unchanged when they are more than k_max_owned_bytes.
  [[nodiscard]] bool own_expressions() noexcept;

  /// Compares all members except range, origin, keeps_by and signing_key.
  friend bool operator==(const FrameRow& a, const FrameRow& b) noexcept;

 private:
  static_assert(std::is_trivially_copyable_v<Entry>);
  Entry* first_entry() noexcept { return std::launder(reinterpret_cast<Entry*>(entries_.data())); }
  const Entry* first_entry() const noexcept { return std::launder(reinterpret_cast<const Entry*>(entries_.data())); }
  /// Returns the register's entry, made if there was none, or null when the row is full.
  Entry* entry_of(RegNum reg) noexcept;
  bool remove(RegNum reg) noexcept;
  template <class Place>
  void place_expressions(Place place) noexcept;

  // The bytes behind count_ entries are uninitialised, since constructing 56 rules would cost more than most rows do.
  // An array of bytes begins the lifetime of objects that are put into it (C++20, [intro.object]).
  alignas(Entry) std::array<std::byte, k_max_rules * sizeof(Entry)> entries_;
  std::uint16_t count_ = 0;
  std::uint16_t owned_size_ = 0;
  std::array<std::byte, k_max_owned_bytes> owned_;  // uninitialised behind owned_size_
};

bool operator==(const FrameRow& a, const FrameRow& b) noexcept;

/// The row at the first instruction of any procedure of this CPU.
FrameRow entry_row(const Arch& arch) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
