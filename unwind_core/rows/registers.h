// The registers of one frame: their values, which of them are known, and where each was saved.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "jitunwind/unwind_core/arch/arch.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The place of an outer frame's register. Writing there changes the value that the frame sees on return.
struct SaveLocation {
  enum class Kind : std::uint8_t {
    none,    ///< computed or unknown, so it has no place of its own
    memory,  ///< at `at` in the target's memory
    reg,     ///< in register `reg` of the innermost frame, that is of the context where the walk started
  };
  Kind kind = Kind::none;
  RegNum reg = k_no_reg;
  Addr at = 0;
  friend bool operator==(const SaveLocation&, const SaveLocation&) = default;
};

/// Values and save locations of one frame's registers, addressed by column (RegisterInfo::column). Plain data.
class RegisterFile {
 public:
  RegisterFile() noexcept {}  // leaves the values uninitialised

  /// Whether there is room for the column. Columns below 0 or from k_max_values on never have a value.
  static constexpr bool has(int column) noexcept { return static_cast<unsigned>(column) < k_max_values; }
  bool known(int column) const noexcept { return column >= 0 && (known_ >> column & 1) != 0; }
  /// Precondition: known(column).
  std::uint64_t value(int column) const noexcept {
    return (in_place_ >> column & 1) != 0 ? read_in_place(column) : values_[static_cast<std::size_t>(column)];
  }
  std::optional<std::uint64_t> get(int column) const noexcept {
    return known(column) ? std::optional(value(column)) : std::nullopt;
  }
  /// Returns a value for a rule of this frame's own unwind information. A scratch register has the value that the last
  /// inner frame knew for it: code whose rule needs it calls only functions that leave it alone.
  std::optional<std::uint64_t> get_for_rule(int column) const noexcept {
    return known(column) || (left_ & left_bit(column)) != 0 ? std::optional(value(column)) : std::nullopt;
  }
  SaveLocation location(int column) const noexcept;

  /// Sets a computed value without a place. Precondition of the setters: has(column).
  void set(int column, std::uint64_t value) noexcept { put(column, value, Where::none, 0); }
  /// Sets a value that was read from memory.
  void set_from_memory(int column, std::uint64_t value, Addr at) noexcept { put(column, value, Where::memory, at); }
  /// Does the same as set_from_memory() for words of this process's own memory that are read on demand: columns[i] is
  /// at CFA - n words, where n is byte i of `words_below`, or nowhere if that is 0.
  void set_in_place(const std::int8_t* columns, std::uint64_t words_below, Addr cfa) noexcept {
    std::uint64_t saved = 0;
    for (; words_below != 0; words_below >>= 8, ++columns) {
      const int zeros = std::countr_zero(words_below) / 8;  // most bytes are 0
      words_below >>= 8 * zeros, columns += zeros;
      const auto column = static_cast<std::size_t>(*columns);
      places_[column] = cfa - sizeof(std::uintptr_t) * (words_below & 0xff);
      saved |= std::uint64_t{1} << column;
    }
    known_ |= saved;
    in_place_ |= saved;
  }
  /// Sets a value that is still in register `reg` of the innermost frame. Does nothing for a column without a value.
  void set_from_register(int column, std::uint64_t value, RegNum reg) noexcept {
    if (has(column)) put(column, value, Where::reg, reg);
  }
  /// Sets the values of all registers in a ucontext_t and forgets all others.
  template <class Word>
  void set_from_context(const ContextColumns& columns, const std::byte* ucontext) noexcept {
    // Four at a time: columns behind the last one have offset 0 and get no value.
    for (std::size_t first = 0; first < columns.count; first += 4)
      for (std::size_t i = first; i < first + 4; ++i) {
        Word value;
        std::memcpy(&value, ucontext + columns.offsets[i], sizeof value);
        values_[i] = value;
      }
    known_ = in_itself_ = (std::uint64_t{1} << columns.count) - 1;
    in_place_ = left_ = 0;
  }
  /// Sets value and place from another column, perhaps of another frame.
  void set_from(int column, const RegisterFile& other, int other_column) noexcept;
  /// Sets the value that the called frame leaves in a register that calls need not preserve. Only rules may use it.
  void set_left(int column, const RegisterFile& callee) noexcept;
  /// Changes the value; the caller has written it to the register's place, if it has one. Ignores column -1.
  void change(int column, std::uint64_t value) noexcept {
    if (column < 0) return;
    const SaveLocation place = location(column);
    if (place.kind == SaveLocation::Kind::none) return set(column, value);
    if (place.kind == SaveLocation::Kind::memory) return set_from_memory(column, value, place.at);
    set_from_register(column, value, place.reg);
  }
  void forget(int column) noexcept {
    known_ &= ~(std::uint64_t{1} << column);
    left_ &= ~left_bit(column);
  }
  void clear() noexcept { known_ = left_ = 0; }
  /// Restricts all columns whose bits are not set: from now on only rules may use their values.
  void keep_only(std::uint64_t columns) noexcept {
    left_ |= static_cast<std::uint32_t>(known_ & ~columns);
    known_ &= columns;
  }

 private:
  enum class Where : std::uint8_t { none, memory, reg };

  /// Returns 0 for columns that no rule uses; CPUs have their general registers first.
  static constexpr std::uint32_t left_bit(int column) noexcept {
    return static_cast<unsigned>(column) < 32 ? std::uint32_t{1} << column : 0;
  }
  std::uint64_t read_in_place(int column) const noexcept;
  void put(int column, std::uint64_t value, Where where, std::uint64_t place) noexcept {
    const auto i = static_cast<std::size_t>(column);
    const std::uint64_t bit = std::uint64_t{1} << i;
    known_ |= bit;
    in_place_ &= ~bit;
    in_itself_ &= ~bit;
    values_[i] = value;
    places_[i] = place;
    where_[i] = where;
  }

  std::uint64_t known_ = 0;     // bit per column
  std::uint64_t in_place_ = 0;  // bit per column: values_ and where_ are unused, the value is in memory at places_
  // One bit per column, if it is not in place: places_ and where_ are unused, and the value is still in the register of
  // this number.
  std::uint64_t in_itself_ = 0;
  std::array<std::uint64_t, k_max_values> values_;
  std::array<std::uint64_t, k_max_values> places_;
  std::array<Where, k_max_values> where_;
  std::uint32_t left_ = 0;  // bit per column: not known, but rules may use values_
};
static_assert(k_max_columns <= 64);  // one bit each

inline SaveLocation RegisterFile::location(int column) const noexcept {
  if (!known(column)) return {};
  const auto i = static_cast<std::size_t>(column);
  if ((in_place_ >> i & 1) != 0) return {SaveLocation::Kind::memory, k_no_reg, places_[i]};
  if ((in_itself_ >> i & 1) != 0) return {SaveLocation::Kind::reg, static_cast<RegNum>(i), 0};
  switch (where_[i]) {
    case Where::memory:
      return {SaveLocation::Kind::memory, k_no_reg, places_[i]};
    case Where::reg:
      return {SaveLocation::Kind::reg, static_cast<RegNum>(places_[i]), 0};
    case Where::none:
      break;
  }
  return {};
}

}  // namespace jitunwind
#pragma GCC visibility pop
