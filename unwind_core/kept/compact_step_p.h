// A step by a compact row, inline: what walks do at nearly every frame.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/rows/registers.h"

namespace jitunwind {

/// The caller to which a compact row leads.
struct CompactCaller {
  Addr cfa = 0;
  Addr sp = 0;
  Addr pc = 0;         ///< signature bits stripped
  Addr signed_pc = 0;  ///< as it is in memory
  Addr pc_at = 0;      ///< its place
};

/// Whether [at, at + size) is memory of this process that can be read at the same address.
inline bool can_read_in_place(Addr at, std::size_t size, const Memory& memory, MemoryWindow& window) noexcept {
  if (at >= window.proven.begin && at + size <= window.proven.end && at < at + size) [[likely]]
    return true;
  const std::byte* const seen = memory.view(at, size, window);
  return seen && seen == reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(at));
}

/// False where apply_row() must decide what is known: the saved registers cannot be seen in place. `base` is the value
/// of the row's base. Signal-safe when the memory is.
inline bool find_caller(const CompactRow& row, Addr base, const CompactLayout& layout, const Memory& memory,
                        MemoryWindow& window, CompactCaller& out) noexcept {
  out.cfa = base + row.cfa_words * CompactRow::k_word;
  out.sp = out.cfa + static_cast<std::uint64_t>(std::int64_t{layout.arch().caller_sp_bias});
  const std::size_t size = row.deepest * CompactRow::k_word;
  if (!can_read_in_place(out.cfa - size, size, memory, window)) return false;
  out.pc_at = out.cfa - row.slots[CompactLayout::k_return_address] * CompactRow::k_word;
  out.signed_pc = raw_word(reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(out.pc_at)));
  out.pc = out.signed_pc & layout.arch().address_mask;
  return true;
}
/// False, too, where the base has no value.
inline bool find_caller(const CompactRow& row, const CompactLayout& layout, const Memory& memory, MemoryWindow& window,
                        const RegisterFile& frame, CompactCaller& out) noexcept {
  return frame.known(row.base) && find_caller(row, frame.value(row.base), layout, memory, window, out);
}

// These two make the caller's registers of a frame's, as apply_row() would with the same row.

/// Those that the row saves.
inline void restore_saved(const CompactRow& row, const CompactLayout& layout, Addr cfa, RegisterFile& frame) noexcept {
  // The row was stored as two words, and is loaded as two: a processor waits for others.
  static_assert(CompactLayout::k_return_address == 0 && offsetof(CompactRow, slots) == 4);
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(row);
  frame.set_in_place(&layout.columns()[1], words[0] >> 40, cfa);
  frame.set_in_place(&layout.columns()[4], words[1], cfa);
}
/// All others.
inline void restore_others(const CompactLayout& layout, const CompactCaller& caller, RegisterFile& frame) noexcept {
  frame.keep_only(layout.preserved());
  frame.set_from_memory(layout.pc_column(), caller.signed_pc, caller.pc_at);
  frame.set(layout.sp_column(), caller.sp);
}

struct CopiedCaller : CompactCaller {
  std::array<std::uint64_t, CompactRow::k_slots> saved;  ///< by slots, of those that the row saves
};

/// False where apply_row() must decide: the base has no value, or the saved registers cannot be read, or lie too deep
/// for one small read.
bool copy_caller(const CompactRow& row, const CompactLayout& layout, const Memory& memory, MemoryWindow& window,
                 const RegisterFile& frame, CopiedCaller& out) noexcept;
void restore(const CompactRow& row, const CompactLayout& layout, const CopiedCaller& caller,
             RegisterFile& frame) noexcept;

}  // namespace jitunwind
