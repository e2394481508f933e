#include <cstring>
#include <span>

#include "jitunwind/unwind_core/kept/compact_step_p.h"

namespace jitunwind {

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
  return true;
}

void restore(const CompactRow& row, const CompactLayout& layout, const CopiedCaller& caller,
             RegisterFile& frame) noexcept {
  const auto set = [&](int column, std::size_t slot, std::uint64_t value) {
    frame.set_from_memory(column, value, caller.cfa - row.slots[slot] * CompactRow::k_word);
  };
  frame.keep_only(layout.preserved());
  for (std::size_t slot = CompactLayout::k_return_address + 1; slot < layout.size(); ++slot)
    if (row.slots[slot] != 0) set(layout.columns()[slot], slot, caller.saved[slot]);
  set(layout.pc_column(), CompactLayout::k_return_address, caller.signed_pc);
  frame.set(layout.sp_column(), caller.sp);
}

}  // namespace jitunwind
