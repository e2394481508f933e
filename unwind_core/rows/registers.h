// The registers of one frame: values, which are known, and where each was saved.
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

/// Where the value of a register of an outer frame lives; writing there changes what the frame sees on return.
struct SaveLocation {
  enum class Kind : std::uint8_t {
    none,    ///< computed or unknown: it has no place of its own
    memory,  ///< at `at` in the target's memory
    reg,     ///< in register `reg` of the innermost frame (of the context the walk started from)
  };
  Kind kind = Kind::none;
  RegNum reg = k_no_reg;
  Addr at = 0;
  friend bool operator==(const SaveLocation&, const SaveLocation&) = default;
};

/// Values and save locations of one frame's registers, addressed by column (RegisterInfo::column). Plain data.
class RegisterFile {
 public:
  RegisterFile() noexcept {}  // values of unknown columns stay as they are

  /// Whether there is room for it: of -1 and of columns behind k_max_values there is no value, ever.
  static constexpr bool has(int column) noexcept { return static_cast<unsigned>(column) < k_max_values; }
  bool known(int column) const noexcept { return column >= 0 && (known_ >> column & 1) != 0; }
  /// Precondition: known(column).
  std::uint64_t value(int column) const noexcept {
    return (in_place_ >> column & 1) != 0 ? read_in_place(column) : values_[static_cast<std::size_t>(column)];
  }
  std::optional<std::uint64_t> get(int column) const noexcept {
    return known(column) ? std::optional(value(column)) : std::nullopt;
  }
  /// The same for a rule of this frame's own unwind information. Registers that calls need not preserve have the value
  /// of the frame further in that had one last: code whose rule needs such a register calls only what leaves it alone.
  std::optional<std::uint64_t> get_for_rule(int column) const noexcept {
    return known(column) || (left_ & left_bit(column)) != 0 ? std::optional(value(column)) : std::nullopt;
  }
  SaveLocation location(int column) const noexcept;

  /// A computed value without a place. Precondition of the setters: has(column).
  void set(int column, std::uint64_t value) noexcept { put(column, value, Where::none, 0); }
  /// Read from memory.
  void set_from_memory(int column, std::uint64_t value, Addr at) noexcept { put(column, value, Where::memory, at); }
  /// What set_from_memory() would make of words of this process's own memory, which are read when they are asked for:
  /// column is columns[i], at is CFA - words_below[i] words, for each i from `first` on where that is not 0.
  template <std::size_t N>
  void set_in_place(const std::array<std::int8_t, N>& columns, const std::array<std::uint8_t, N>& words_below,
                    std::size_t first, std::size_t end, Addr cfa) noexcept {
    std::uint64_t saved = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (words_below[i] == 0) continue;
      const auto column = static_cast<std::size_t>(columns[i]);
      places_[column] = cfa - sizeof(std::uintptr_t) * std::uint64_t{words_below[i]};
      saved |= std::uint64_t{1} << column;
    }
    known_ |= saved;
    in_place_ |= saved;
  }
  /// Still in register `reg` of the innermost frame. Nothing for a column that has no value here.
  void set_from_register(int column, std::uint64_t value, RegNum reg) noexcept {
    if (has(column)) put(column, value, Where::reg, reg);
  }
  /// The same of all that a ucontext_t holds, and nothing else.
  template <class Word>
  void set_from_context(const ContextColumns& columns, const std::byte* ucontext) noexcept {
    // By fours: columns behind the last have offset 0, and no value.
    for (std::size_t first = 0; first < columns.count; first += 4)
      for (std::size_t i = first; i < first + 4; ++i) {
        Word value;
        std::memcpy(&value, ucontext + columns.offsets[i], sizeof value);
        values_[i] = value;
      }
    known_ = in_itself_ = (std::uint64_t{1} << columns.count) - 1;
    in_place_ = left_ = 0;
  }
  /// Value and place of another column, perhaps of another frame.
  void set_from(int column, const RegisterFile& other, int other_column) noexcept;
  /// What the frame that this one calls leaves of a register that calls need not preserve: a value for rules alone.
  void set_left(int column, const RegisterFile& callee) noexcept;
  /// Another value in the same place, if it has one; the caller has written it there. Nothing for column -1.
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
  /// All columns but those whose bits are set have values for rules alone from now on.
  void keep_only(std::uint64_t columns) noexcept {
    left_ |= static_cast<std::uint32_t>(known_ & ~columns);
    known_ &= columns;
  }

 private:
  enum class Where : std::uint8_t { none, memory, reg };

  /// 0: of a register that no rule is about; CPUs have their general ones first.
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
  std::uint64_t in_place_ = 0;  // the same: values_ and where_ have nothing, the value is in memory at places_
  // The same, unless it is in place: places_ and where_ have nothing, the value is still in the register of this
  // number.
  std::uint64_t in_itself_ = 0;
  std::array<std::uint64_t, k_max_values> values_;
  std::array<std::uint64_t, k_max_values> places_;
  std::array<Where, k_max_values> where_;
  std::uint32_t left_ = 0;  // bit per column: no value, but one for rules
};
static_assert(k_max_columns <= 64);  // a bit each

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
