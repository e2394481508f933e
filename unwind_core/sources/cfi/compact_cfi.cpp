// Call frame instructions (DWARF 5, 6.4.2), as far as a CompactRow can say their result.
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_p.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"

namespace jitunwind {
namespace {

using namespace dwarf;

/// The state that instructions change: the words of a CompactRow, in registers. A processor waits for bytes that are
/// stored and then loaded as words. The CFA's offset is a member of its own, and finish() finds the deepest slot.
struct State {
  std::array<std::uint64_t, 2> words;
  std::uint64_t cfa_offset;

  static constexpr unsigned k_base_at = 8 * offsetof(CompactRow, base);
  static constexpr unsigned k_deepest_at = 8 * offsetof(CompactRow, deepest);

  explicit State(const CompactRow& row) noexcept
      : words(std::bit_cast<std::array<std::uint64_t, 2>>(row)), cfa_offset(row.cfa_words * CompactRow::k_word) {
    words[0] &= ~(std::uint64_t{0xffff} | std::uint64_t{0xff} << k_deepest_at);
  }
  State() noexcept {}  // words stay as they are

  std::uint64_t slot(std::size_t number) const noexcept {
    const std::size_t byte = offsetof(CompactRow, slots) + number;
    return words[byte / 8] >> 8 * (byte % 8) & 0xff;
  }
  void set_slot(std::size_t number, std::uint64_t value) noexcept {
    const std::size_t byte = offsetof(CompactRow, slots) + number;
    words[byte / 8] = put(words[byte / 8], 8 * static_cast<unsigned>(byte % 8), value);
  }
  void set_base(std::uint64_t column) noexcept { words[0] = put(words[0], k_base_at, column); }

  static std::uint64_t put(std::uint64_t word, unsigned bit, std::uint64_t byte) noexcept {
    return (word & ~(std::uint64_t{0xff} << bit)) | byte << bit;
  }
};
static_assert(std::endian::native == std::endian::little);

bool are_nops(std::span<const std::byte> instructions) noexcept {
  return std::ranges::all_of(instructions, [](std::byte op) { return op == std::byte{cfa_nop}; });
}

/// The next action after an instruction.
enum class Then { next, row_found, failed };

class Program {
 public:
  Program(const CompactCode& code, const CompactLayout& layout, Addr at) noexcept
      : layout_(layout),
        initial_(*code.initial),
        deepest_(code.initial->deepest),
        end_(code.instructions.data() + code.instructions.size()),
        alignment_(code.cie->code_alignment),
        at_(at),
        begin_(code.range.begin),
        state_(*code.initial) {}

  /// Runs as far as the row at `at`. The instructions that nearly all programs consist of are here, in registers.
  [[gnu::always_inline]] bool run(const std::byte* const first) noexcept {
    const std::byte* next = first;
    while (next != end_) {
      const unsigned op = std::to_integer<unsigned>(*next++);
      const unsigned operand = op & 0x3f;
      Then then = Then::next;
      if ((op & 0xc0) == cfa_advance_loc) {
        then = advance(operand);
      } else if ((op & 0xc0) == cfa_offset && next != end_ && *next < std::byte{0x80}) {
        then = save(operand, std::to_integer<std::uint64_t>(*next++));
      } else if (op == cfa_def_cfa_offset && next != end_ && *next < std::byte{0x80}) {
        state_.cfa_offset = std::to_integer<std::uint64_t>(*next++);
      } else if (op == cfa_nop) {
        continue;
      } else {
        next_ = next;
        then = execute(op, operand);
        next = next_;
      }
      if (then != Then::next) return then == Then::row_found;
    }
    return true;
  }

  /// False: no compact row says it.
  bool finish(CompactRow& out) const noexcept {
    const std::uint64_t words = state_.cfa_offset / CompactRow::k_word;
    if (state_.cfa_offset % CompactRow::k_word != 0 || words > 0xffff || args_size_ != 0) return false;
    std::uint64_t deepest = deepest_;
    if (has_restored_) {
      deepest = 0;
      for (std::size_t i = 0; i < layout_.size(); ++i) deepest = std::max(deepest, state_.slot(i));
    }
    std::array<std::uint64_t, 2> all = state_.words;
    all[0] |= words | deepest << State::k_deepest_at;
    out = std::bit_cast<CompactRow>(all);
    return true;
  }
  bool is_outermost() const noexcept { return is_outermost_; }
  /// The instructions of a CIE must do neither.
  bool has_advanced_or_remembered() const noexcept { return end_of_row_ != ~Addr{0} || remembered_ != 0; }
  /// The range of the row; it may end behind the FDE.
  AddrRange range() const noexcept { return {begin_, end_of_row_}; }

 private:
  [[gnu::always_inline]] Then advance(std::uint64_t units) noexcept {
    std::uint64_t distance = 0;
    Addr to = 0;
    if (__builtin_mul_overflow(units, alignment_, &distance) || __builtin_add_overflow(begin_, distance, &to))
      return Then::failed;
    if (to > at_) return end_of_row_ = to, Then::row_found;
    begin_ = to;
    return Then::next;
  }
  [[gnu::always_inline]] Then save(std::uint64_t reg, std::uint64_t words) noexcept {
    const std::size_t slot = layout_.slot_or_size(reg);
    if (slot >= layout_.size() || words - 1 >= 255) return Then::failed;
    state_.set_slot(slot, words);
    deepest_ = std::max(deepest_, words);
    return Then::next;
  }
  Then restore(std::uint64_t reg) noexcept {
    const std::size_t slot = layout_.slot_or_size(reg);
    if (slot >= layout_.size()) return Then::failed;
    state_.set_slot(slot, initial_.slots[slot]);
    has_restored_ = true;
    return Then::next;
  }
  Then set_cfa(std::uint64_t reg, std::uint64_t offset) noexcept {
    const int column = reg < k_no_reg ? layout_.arch().column(static_cast<RegNum>(reg)) : -1;
    if (column < 0) return Then::failed;
    state_.set_base(static_cast<std::uint64_t>(column));
    state_.cfa_offset = offset;
    return Then::next;
  }

  // Operands. An operand that is cut off, or longer than need be, sets has_failed_.

  std::uint64_t fixed(std::size_t size) noexcept {
    std::uint64_t value = 0;
    if (static_cast<std::size_t>(end_ - next_) < size) return has_failed_ = true, 0;
    std::memcpy(&value, next_, size);  // little-endian: compact rows are of no others
    next_ += size;
    return value;
  }
  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 28 && next_ != end_; shift += 7) {
      const auto part = std::to_integer<std::uint64_t>(*next_++);
      value |= (part & 0x7f) << shift;
      if (part < 0x80) return value;
    }
    has_failed_ = true;
    return 0;
  }

  [[gnu::hot, gnu::noinline]] Then execute(unsigned op, unsigned operand) noexcept {
    const Then then = execute_one(op, operand);
    return has_failed_ ? Then::failed : then;
  }
  Then execute_one(unsigned op, unsigned operand) noexcept {
    if ((op & 0xc0) == cfa_offset) return save(operand, uleb());
    if ((op & 0xc0) == cfa_restore) return restore(operand);
    switch (op) {
      case cfa_advance_loc1:
        return advance_unless_failed(fixed(1));
      case cfa_advance_loc2:
        return advance_unless_failed(fixed(2));
      case cfa_advance_loc4:
        return advance_unless_failed(fixed(4));
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
        is_outermost_ = uleb() == layout_.arch().ra && are_nops({next_, end_});
        return is_outermost_ ? Then::next : Then::failed;
      case cfa_remember_state:
        if (remembered_ == saved_.size()) return Then::failed;
        saved_[remembered_++] = state_;
        return Then::next;
      case cfa_restore_state:
        if (remembered_ == 0) return Then::failed;
        state_ = saved_[--remembered_];
        has_restored_ = true;
        return Then::next;
      case cfa_gnu_args_size:
        args_size_ = uleb();
        return Then::next;
      default:
        return Then::failed;
    }
  }
  Then advance_unless_failed(std::uint64_t units) noexcept { return has_failed_ ? Then::failed : advance(units); }

  const CompactLayout& layout_;
  const CompactRow& initial_;
  std::uint64_t deepest_;  // slot of all that were saved
  const std::byte* end_;
  std::uint64_t alignment_;
  Addr at_;
  Addr begin_;  // of the row
  Addr end_of_row_ = ~Addr{0};
  State state_;
  const std::byte* next_ = nullptr;
  bool has_failed_ = false;
  bool has_restored_ = false;
  bool is_outermost_ = false;
  std::uint64_t args_size_ = 0;
  std::size_t remembered_ = 0;
  std::array<State, 4> saved_;  // uninitialised
};

constexpr auto k_data_alignment = -static_cast<std::int64_t>(CompactRow::k_word);

bool can_be_compact(const Cie& cie, const CompactLayout& layout) noexcept {
  return cie.data_alignment == k_data_alignment && cie.return_address == layout.arch().ra && !cie.signal_frame;
}

}  // namespace

[[gnu::hot]] bool find_compact_row(const CompactCode& code, const CompactLayout& layout, Addr at, CompactRow& out,
                                   AddrRange& range) noexcept {
  if (code.known && code.known->is_outermost) return false;
  Program program(code, layout, at);
  if (!program.run(code.instructions.data()) || program.is_outermost() || !program.finish(out)) return false;
  range = {program.range().begin, std::min(program.range().end, code.range.end)};
  const unsigned return_address = out.slots[CompactLayout::k_return_address];
  // One below SP and its red zone is for the full row to judge (fde_source.cpp).
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
  Program program(code, layout, 0);
  if (!program.run(code.instructions.data()) || program.has_advanced_or_remembered()) return false;
  is_outermost = program.is_outermost();
  return program.finish(out);
}

bool is_plain(const Fde& fde, const Arch& arch) noexcept {
  const CompactLayout layout(arch);
  CompactRow initial, last;
  AddrRange range;
  bool is_outermost = false;
  if (!find_initial_row(fde.cie, layout, initial, is_outermost) || is_outermost) return false;
  // libgcc takes a register that DW_CFA_restore names for one that is not saved, whatever the CIE says.
  for (std::size_t slot = 0; slot < layout.size(); ++slot)
    if (slot != CompactLayout::k_return_address && initial.slots[slot] != 0) return false;
  return find_compact_row({&fde.cie, &initial, fde.range, fde.instructions.bytes}, layout, fde.range.end - 1, last,
                          range);
}

}  // namespace jitunwind
