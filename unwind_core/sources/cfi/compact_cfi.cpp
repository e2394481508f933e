// Call frame instructions (DWARF 5, 6.4.2), as far as a CompactRow can say their result.
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"

namespace jitunwind {
namespace {

using namespace dwarf;

/// The part of the state that a processor has in registers; the rest is in the row.
struct State {
  State() noexcept {}  // uninitialised
  explicit State(const std::byte* first, const CompactRow& row) noexcept
      : next(first), cfa_offset(row.cfa_words * CompactRow::k_word), deepest(row.deepest), position(0) {}

  /// A byte of what follows.
  unsigned byte(std::size_t number) const noexcept { return std::to_integer<unsigned>(next[number]); }

  const std::byte* next;
  std::uint64_t cfa_offset;
  std::uint64_t deepest;   ///< slot of all that were saved
  std::uint64_t position;  ///< of the row, from the begin of the code on, in units of the code alignment
};
static_assert(std::endian::native == std::endian::little);

bool are_nops(std::span<const std::byte> instructions) noexcept {
  return std::ranges::all_of(instructions, [](std::byte op) { return op == std::byte{cfa_nop}; });
}

/// The next action after an instruction.
enum class Then { next, row_found, failed };

class Program {
 public:
  /// `row` is worked on in place: bytes that are stored and then copied as words are waited for.
  Program(const CompactCode& code, const CompactLayout& layout, Addr at, CompactRow& row) noexcept
      : code_(code), layout_(layout), row_(row), wanted_(position_of(at - code.range.begin, code.cie->code_alignment)) {
    row_ = *code.initial;
  }

  /// Runs as far as the row at `at`, and completes it. The instructions that nearly all programs consist of are here.
  /// They take an operand of one byte or none, which is there in front of the last byte.
  [[gnu::always_inline]] bool run(AddrRange& range) noexcept {
    const auto end = reinterpret_cast<std::uintptr_t>(this->end());
    const std::uint64_t wanted = wanted_;
    State now(code_.instructions.data(), *code_.initial);
    const CompactLayout& layout = layout_;
    CompactRow& row = row_;
    const auto has = [&](std::uintptr_t bytes) { return reinterpret_cast<std::uintptr_t>(now.next) + bytes <= end; };
    const auto saves = [](unsigned op, unsigned operand) { return op - cfa_offset < 0x40 && operand - 1 < 0x7f; };
    const auto save = [&](unsigned op, unsigned operand) {
      const std::size_t slot = layout.slot_or_size(op - cfa_offset);
      if (slot >= layout.size()) return false;
      row.slots[slot] = static_cast<std::uint8_t>(operand);
      now.deepest = std::max<std::uint64_t>(now.deepest, operand);
      return true;
    };
    while (has(2)) {
      const unsigned op = now.byte(0), operand = now.byte(1);
      if (const std::uint64_t units = op - cfa_advance_loc; units < 0x40) {
        if (now.position + units > wanted) return ends(now, units) && finish(now, range);
        now.position += units;
        // A push follows nearly always: the CFA's offset changes, and a register is saved.
        if (operand == cfa_def_cfa_offset && has(5) && now.byte(2) < 0x80) {
          now.cfa_offset = now.byte(2);
          if (saves(now.byte(3), now.byte(4))) {
            if (!save(now.byte(3), now.byte(4))) return false;
            now.next += 2;
          }
          now.next += 2;
        }
        now.next += 1;
      } else if (saves(op, operand)) {
        if (!save(op, operand)) return false;
        now.next += 2;
      } else if (op == cfa_def_cfa_offset && operand < 0x80) {
        now.cfa_offset = operand;
        now.next += 2;
      } else if (op == cfa_advance_loc1) {
        if (now.position + operand > wanted) return ends(now, operand) && finish(now, range);
        now.position += operand;
        now.next += 2;
      } else if (op == cfa_nop) {
        now.next += 1;
      } else {
        state_ = now;
        if (const Then then = execute(); then != Then::next) return then == Then::row_found && finish(state_, range);
        now = state_;
      }
    }
    return run_on(now) && finish(state_, range);
  }
  /// Does the same for any instructions, one by one.
  [[gnu::noinline]] bool run_on(State from) noexcept {
    state_ = from;
    while (state_.next != end())
      if (const Then then = execute(); then != Then::next) return then == Then::row_found;
    return true;
  }

  /// Completes the row, and says where it holds. False: no compact row says it.
  [[gnu::always_inline]] bool finish(const State& state, AddrRange& range) noexcept {
    const std::uint64_t words = state.cfa_offset / CompactRow::k_word;
    if (state.cfa_offset % CompactRow::k_word != 0 || words > 0xffff || args_size_ != 0) return false;
    row_.cfa_words = static_cast<std::uint16_t>(words);
    row_.deepest = static_cast<std::uint8_t>(state.deepest);
    range = {code_.range.begin + state.position * code_.cie->code_alignment, std::min(end_of_row_, code_.range.end)};
    return true;
  }
  const State& state() const noexcept { return state_; }
  bool is_outermost() const noexcept { return is_outermost_; }
  /// The instructions of a CIE must do neither.
  bool has_advanced_or_remembered() const noexcept { return end_of_row_ != ~Addr{0} || remembered_ != 0; }

 private:
  const std::byte* end() const noexcept { return code_.instructions.data() + code_.instructions.size(); }
  static std::uint64_t position_of(Addr distance, std::uint64_t alignment) noexcept {
    if (alignment == 1) return distance;
    return alignment == 0 ? ~std::uint64_t{0} : distance / alignment;
  }
  /// The row at `at` ends so many units on. False: no address is there.
  bool ends(const State& now, std::uint64_t units) noexcept {
    Addr distance = 0;
    return !__builtin_mul_overflow(now.position + units, code_.cie->code_alignment, &distance) &&
           !__builtin_add_overflow(code_.range.begin, distance, &end_of_row_);
  }
  Then advance(std::uint64_t units) noexcept {
    if (has_failed_) return Then::failed;
    if (state_.position + units > wanted_) return ends(state_, units) ? Then::row_found : Then::failed;
    state_.position += units;
    return Then::next;
  }
  Then save(std::uint64_t reg, std::uint64_t words) noexcept {
    const std::size_t slot = layout_.slot_or_size(reg);
    if (slot >= layout_.size() || words - 1 >= 255) return Then::failed;
    row_.slots[slot] = static_cast<std::uint8_t>(words);
    state_.deepest = std::max(state_.deepest, words);
    return Then::next;
  }
  Then restore(std::uint64_t reg) noexcept {
    const std::size_t slot = layout_.slot_or_size(reg);
    if (slot >= layout_.size()) return Then::failed;
    row_.slots[slot] = code_.initial->slots[slot];
    state_.deepest = *std::ranges::max_element(row_.slots);
    return Then::next;
  }
  Then set_cfa(std::uint64_t reg, std::uint64_t offset) noexcept {
    const int column = reg < k_no_reg ? layout_.arch().column(static_cast<RegNum>(reg)) : -1;
    if (column < 0) return Then::failed;
    row_.base = static_cast<std::uint8_t>(column);
    state_.cfa_offset = offset;
    return Then::next;
  }

  // Operands. An operand that is cut off, or longer than need be, sets has_failed_.

  std::uint64_t fixed(std::size_t size) noexcept {
    std::uint64_t value = 0;
    if (static_cast<std::size_t>(end() - state_.next) < size) return has_failed_ = true, 0;
    std::memcpy(&value, state_.next, size);  // little-endian: compact rows are of no others
    state_.next += size;
    return value;
  }
  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 28 && state_.next != end(); shift += 7) {
      const auto part = std::to_integer<std::uint64_t>(*state_.next++);
      value |= (part & 0x7f) << shift;
      if (part < 0x80) return value;
    }
    has_failed_ = true;
    return 0;
  }

  [[gnu::hot, gnu::noinline]] Then execute() noexcept {
    const unsigned op = std::to_integer<unsigned>(*state_.next++);
    const Then then = execute_one(op, op & 0x3f);
    return has_failed_ ? Then::failed : then;
  }
  Then execute_one(unsigned op, unsigned operand) noexcept {
    if ((op & 0xc0) == cfa_advance_loc) return advance(operand);
    if ((op & 0xc0) == cfa_offset) return save(operand, uleb());
    if ((op & 0xc0) == cfa_restore) return restore(operand);
    switch (op) {
      case cfa_nop:
        return Then::next;
      case cfa_advance_loc1:
        return advance(fixed(1));
      case cfa_advance_loc2:
        return advance(fixed(2));
      case cfa_advance_loc4:
        return advance(fixed(4));
      case cfa_def_cfa: {
        const std::uint64_t reg = uleb();
        return set_cfa(reg, uleb());
      }
      case cfa_def_cfa_register:
        return set_cfa(uleb(), state_.cfa_offset);
      case cfa_def_cfa_offset:
        state_.cfa_offset = uleb();
        return Then::next;
      case cfa_offset_extended: {
        const std::uint64_t reg = uleb();
        return save(reg, uleb());
      }
      case cfa_restore_extended:
        return restore(uleb());
      case cfa_undefined:
        is_outermost_ = uleb() == layout_.arch().ra && are_nops({state_.next, end()});
        return is_outermost_ ? Then::next : Then::failed;
      case cfa_remember_state:
        if (remembered_ == saved_.size()) return Then::failed;
        saved_[remembered_++] = {std::bit_cast<Words>(row_), state_.cfa_offset, state_.deepest};
        return Then::next;
      case cfa_restore_state:
        if (remembered_ == 0) return Then::failed;
        --remembered_;
        row_ = std::bit_cast<CompactRow>(saved_[remembered_].row);
        state_.cfa_offset = saved_[remembered_].cfa_offset;
        state_.deepest = saved_[remembered_].deepest;
        return Then::next;
      case cfa_gnu_args_size:
        args_size_ = static_cast<std::uint32_t>(uleb());
        return Then::next;
      default:
        return Then::failed;
    }
  }

  using Words = std::array<std::uint64_t, 2>;
  struct Remembered {
    Words row;
    std::uint64_t cfa_offset;
    std::uint64_t deepest;
  };

  const CompactCode& code_;
  const CompactLayout& layout_;
  CompactRow& row_;
  std::uint64_t wanted_;  // the position of `at`
  Addr end_of_row_ = ~Addr{0};
  State state_;
  bool has_failed_ = false;
  bool is_outermost_ = false;
  std::uint16_t remembered_ = 0;
  std::uint32_t args_size_ = 0;
  std::array<Remembered, 4> saved_;  // uninitialised
};

constexpr auto k_data_alignment = -static_cast<std::int64_t>(CompactRow::k_word);

bool can_be_compact(const Cie& cie, const CompactLayout& layout) noexcept {
  return cie.data_alignment == k_data_alignment && cie.return_address == layout.arch().ra && !cie.signal_frame;
}

}  // namespace

[[gnu::hot]] bool find_compact_row(const CompactCode& code, const CompactLayout& layout, Addr at, CompactRow& out,
                                   AddrRange& range) noexcept {
  if (code.known && code.known->is_outermost) return false;
  Program program(code, layout, at, out);
  if (!program.run(range) || program.is_outermost()) return false;
  const unsigned return_address = out.slots[CompactLayout::k_return_address];
  // One below SP and its red zone is for the full row to judge (eh_frame.cpp).
  if (return_address > out.cfa_words && out.base == layout.sp_column())
    return (return_address - out.cfa_words) * CompactRow::k_word <= layout.arch().red_zone;
  return return_address != 0;
}

[[gnu::hot]] bool is_outermost(const CompactCode& code) noexcept {
  return code.known->is_outermost && are_nops(code.instructions);
}

[[gnu::hot]] FrameRow outermost_row(const CompactCode& code, const CompactLayout& layout) noexcept {
  FrameRow row = expand(*code.initial, layout);
  (void)row.set(layout.arch().ra, RegRule::undefined());
  row.range = code.range;
  return row;
}

[[gnu::hot]] bool find_initial_row(const Cie& cie, const CompactLayout& layout, CompactRow& out,
                                   bool& is_outermost) noexcept {
  if (layout.size() == 0 || !can_be_compact(cie, layout)) return false;
  static constexpr CompactRow k_nothing{};
  const CompactCode code{&cie, &k_nothing, {0, ~Addr{0}}, cie.instructions.bytes};
  Program program(code, layout, 0, out);
  AddrRange range;
  if (!program.run_on(State(code.instructions.data(), *code.initial)) || program.has_advanced_or_remembered())
    return false;
  is_outermost = program.is_outermost();
  return program.finish(program.state(), range);
}

bool find_compact_row(const Fde& fde, const CompactLayout& layout, Addr at, CompactRow& out,
                      AddrRange& range) noexcept {
  CompactRow initial;
  bool is_outermost = false;
  if (!find_initial_row(fde.cie, layout, initial, is_outermost) || is_outermost) return false;
  return find_compact_row({&fde.cie, &initial, fde.range, fde.instructions.bytes}, layout, at, out, range);
}

bool is_plain(const CompactCode& code, const CompactLayout& layout) noexcept {
  // libgcc takes a register that DW_CFA_restore names for one that is not saved, whatever the CIE says.
  for (std::size_t slot = 0; slot < layout.size(); ++slot)
    if (slot != CompactLayout::k_return_address && code.initial->slots[slot] != 0) return false;
  CompactCode everywhere = code;  // so that it does not depend on the length of the code
  everywhere.range = {0, ~Addr{0}};
  CompactRow last;
  AddrRange range;
  return find_compact_row(everywhere, layout, everywhere.range.end - 1, last, range);
}

}  // namespace jitunwind
