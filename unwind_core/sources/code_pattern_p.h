// Known machine code at an address, and the question whether a number is a return address.
#pragma once

#include "unwind_core/address_space.h"

namespace jitunwind {

/// The first pattern that the code around `pc` matches, `pc` standing at the pattern's offset; null when there is none.
const CodePattern* find_pattern(std::span<const CodePattern> patterns, Addr pc, const Memory& memory,
                                MemoryWindow& window) noexcept;

/// Where the code of a matching pattern lies.
inline AddrRange range_of(const CodePattern& pattern, Addr pc) noexcept {
  const Addr begin = pc - pattern.pc_offset;
  return {begin, begin + pattern.bytes.size()};
}

/// What is known of the procedure at `pc`, where the code matched a pattern: where it lies. False where it did not.
inline bool procedure_of(const CodePattern* matching, Addr pc, RowOrigin origin, ProcedureInfo& out) noexcept {
  if (!matching) return false;
  out = {};
  out.range = range_of(*matching, pc);
  out.origin = origin;
  return true;
}

/// Whether `at` is code. In a module: whether it is in an executable segment. Elsewhere the memory's word; where it has
/// none, anything readable is taken for code made at run time.
bool is_code(const AddressSpace& space, MemoryWindow& window, Addr at) noexcept;

/// Whether a call could have pushed `address`: the instruction before it is a call, and it is code. Of random numbers
/// that happen to be addresses of code, about one in 150 passes.
bool is_after_call(const AddressSpace& space, MemoryWindow& window, Addr address) noexcept;

}  // namespace jitunwind
