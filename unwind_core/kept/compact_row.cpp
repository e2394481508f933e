#include "jitunwind/unwind_core/kept/compact_row_internal.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "jitunwind/unwind_core/kept/compact_step_p.h"

namespace jitunwind {
namespace {

/// Number of words from `offset` up to the CFA; 0: not such an offset.
std::uint8_t words_below_cfa(std::int64_t offset) noexcept {
  const std::uint64_t below = 0 - static_cast<std::uint64_t>(offset);
  if (below % CompactRow::k_word != 0 || below > 255 * CompactRow::k_word) return 0;
  return static_cast<std::uint8_t>(below / CompactRow::k_word);
}

bool compact_cfa(const FrameRow& row, const CompactLayout& layout, CompactRow& out) noexcept {
  constexpr std::int64_t k_word = CompactRow::k_word;
  const CfaRule& cfa = row.cfa;
  if (cfa.kind != CfaRule::Kind::offset || cfa.offset < 0 || cfa.offset % k_word != 0) return false;
  if (cfa.offset / k_word > 0xffff) return false;
  const int column = layout.arch().column(cfa.reg);
  if (column < 0) return false;
  out.base = static_cast<std::uint8_t>(column);
  out.cfa_words = static_cast<std::uint16_t>(cfa.offset / k_word);
  return true;
}

[[gnu::always_inline]] inline bool compact_without(RegNum left_out, const FrameRow& row, const CompactLayout& layout,
                                                   CompactRow& out) noexcept {
  if (layout.size() == 0 || row.signal_frame || row.args_size != 0) return false;
  if (row.ra != k_no_reg && row.ra != layout.arch().ra) return false;
  out = {};
  if (!compact_cfa(row, layout, out)) return false;
  std::uint8_t deepest = 0;
  for (const FrameRow::Entry& entry : row.entries()) {
    if (entry.reg == left_out) continue;
    const std::size_t slot = layout.slot_or_size(entry.reg);
    if (slot >= layout.size()) return false;
    std::uint8_t words = 0;
    if (entry.rule.kind == RegRule::Kind::at_cfa) {
      words = words_below_cfa(entry.rule.offset);
      if (words == 0) return false;
    } else if (entry.rule.kind != RegRule::Kind::same) {
      return false;
    }
    out.slots[slot] = words;
    deepest = std::max(deepest, words);
  }
  out.deepest = deepest;
  return out.slots[CompactLayout::k_return_address] != 0;
}

}  // namespace

[[gnu::hot]] CompactLayout::CompactLayout(const Arch& arch) noexcept : arch_(&arch) {
  slots_.fill(k_no_slot);
  libunwind_slots_.fill(k_no_slot);
  const auto add = [&](const RegisterInfo& reg) {
    if (size_ == regs_.size() || reg.dwarf >= slots_.size()) return false;
    slots_[reg.dwarf] = static_cast<std::uint8_t>(size_);
    const auto number = static_cast<std::size_t>(reg.libunwind);
    if (number < libunwind_slots_.size()) libunwind_slots_[number] = slots_[reg.dwarf];
    regs_[size_] = reg.dwarf;
    columns_[size_] = reg.column;
    ++size_;
    return true;
  };
  sp_column_ = arch.column(arch.sp);
  pc_column_ = arch.column(arch.pc);
  const RegisterInfo* const ra = arch.by_dwarf(arch.ra);
  bool fits = arch.word_size == CompactRow::k_word && !arch.big_endian && ra && add(*ra);
  for (const RegisterInfo& reg : arch.registers) {
    if (!reg.preserved || reg.column < 0) continue;
    preserved_ |= std::uint64_t{1} << reg.column;
    if (reg.reg_class == RegClass::general && reg.dwarf != arch.ra) fits = fits && add(reg);
  }
  if (!fits) size_ = 0;
  fp_slot_ = slot_or_size(arch.fp);
  fp_column_ = arch.column(arch.fp);
}

bool compact(const FrameRow& row, const CompactLayout& layout, CompactRow& out) noexcept {
  return compact_without(k_no_reg, row, layout, out);
}

bool compact_but_signed(const FrameRow& row, const CompactLayout& layout, CompactRow& out) noexcept {
  const RegNum state = layout.arch().sign_state;
  return state != k_no_reg && row.rule(state).kind == RegRule::Kind::constant &&
         compact_without(state, row, layout, out);
}

FrameRow expand(const CompactRow& row, const CompactLayout& layout) noexcept {
  FrameRow out;
  const RegisterInfo* const base = layout.arch().by_column(row.base);
  out.cfa = CfaRule::at(base ? base->dwarf : k_no_reg, row.cfa_words * static_cast<std::int64_t>(CompactRow::k_word));
  out.ra = layout.arch().ra;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (row.slots[i] == 0) continue;
    (void)out.set(layout.reg(i), RegRule::at_cfa(-row.slots[i] * static_cast<std::int64_t>(CompactRow::k_word)));
  }
  return out;
}

bool copy_caller(const CompactRow& row, const CompactLayout& layout, const Memory& memory, MemoryWindow& window,
                 const RegisterFile& frame, CopiedCaller& out) noexcept {
  // Compilers push registers next to the return address; the few rows that save one deeper are apply_row()'s.
  constexpr std::size_t k_most = 32 * CompactRow::k_word;
  std::array<std::byte, k_most> bytes;
  const std::size_t size = row.deepest * CompactRow::k_word;
  if (!frame.known(row.base) || size > k_most) return false;
  out.cfa = frame.value(row.base) + row.cfa_words * CompactRow::k_word;
  out.sp = out.cfa + static_cast<std::uint64_t>(std::int64_t{layout.arch().caller_sp_bias});
  if (memory.read(out.cfa - size, std::span(bytes).first(size), window) != size) return false;
  for (std::size_t slot = 0; slot < layout.size(); ++slot) {
    std::uintptr_t word = 0;
    static_assert(sizeof word == CompactRow::k_word);
    if (row.slots[slot] == 0) continue;
    std::memcpy(&word, &bytes[size - row.slots[slot] * sizeof word], sizeof word);
    out.saved[slot] = word;
  }
  out.signed_pc = out.saved[CompactLayout::k_return_address];
  out.pc = out.signed_pc & layout.arch().address_mask;
  out.pc_at = out.cfa - row.slots[CompactLayout::k_return_address] * CompactRow::k_word;
  return true;
}

void restore(const CompactRow& row, const CompactLayout& layout, const CopiedCaller& caller,
             RegisterFile& frame) noexcept {
  for (std::size_t slot = CompactLayout::k_return_address + 1; slot < layout.size(); ++slot)
    if (const std::uint64_t below = row.slots[slot] * CompactRow::k_word; below != 0)
      frame.set_from_memory(layout.columns()[slot], caller.saved[slot], caller.cfa - below);
  restore_others(layout, caller, frame);
}

}  // namespace jitunwind
