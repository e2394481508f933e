// Shapes of registered code: procedures whose descriptions have equal contents have one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"

namespace jitunwind {

/// Adds a region of directives to CodeShape's units. False: it is counted from the end, and is not the last one.
inline bool add_length(const unw_dyn_region_info_t& region, std::uint64_t& front, std::uint64_t& tail) noexcept {
  (region.insn_count < 0 ? tail : front) += static_cast<std::uint64_t>(std::abs(std::int64_t{region.insn_count}));
  return region.insn_count >= 0 || region.next == nullptr;
}

/// The contents of directives are compared, not their addresses. So their owner may free them at any time, and no shape
/// becomes invalid. Shapes are never freed. The contents follow in memory.
struct CodeShape {
  std::uint32_t number;
  std::uint64_t head;   ///< the kind and size of the contents
  std::uint64_t front;  ///< instruction units in front of a stretch of which each has the row before that stretch
  std::uint64_t tail;   ///< instruction units that are counted from the procedure's end, behind that stretch
  int unit_bits;        ///< of the size of instruction units, a power of two
  bool has_facts;       ///< AlikePlace::has_facts()
  std::array<std::atomic<CallerRule>, 2> first_rules{};  ///< AlikePlace::first()
  std::atomic<const DerivedRecord*> fde{nullptr};        ///< for whoever encodes one of all code alike

  /// Whether code is as long as the contents say at least, in whole units.
  bool has_room(AddrRange procedure) const noexcept {
    return !matches_nothing(procedure, 1u << unit_bits) && procedure.size() >> unit_bits >= front + tail;
  }
  std::byte* contents() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* contents() const noexcept { return reinterpret_cast<const std::byte*>(this + 1); }
  /// The place of code at `at`. There is none too far from the procedure's begin.
  AlikePlace place(AddrRange procedure, Addr at) noexcept {
    const std::uint64_t position = (at - procedure.begin) >> unit_bits, end = (procedure.size() >> unit_bits) - tail;
    const std::uint64_t offset = position < end ? std::min(position, front) : front + 1 + (position - end);
    if (offset > AlikePlace::k_most_offset) return {};
    return {number, offset, has_facts, first_rules[static_cast<std::size_t>(offset) % first_rules.size()]};
  }
};

/// The shape of a procedure in directives, which is compared with all others when it is asked for the first time. Null:
/// there is an ALIAS, there are many directives, or there is no room for another shape. Signal-safe.
[[gnu::visibility("default")]] CodeShape* find_shape(const ProcedureHold& hold) noexcept;

/// The place of code at `at`, which the held procedure covers; none if it has no shape. Signal-safe.
AlikePlace place_of(const ProcedureHold& hold, Addr at) noexcept;

/// Whether there is room for another record that is never freed. Shapes and their FDEs share it.
bool has_room_for_shared() noexcept;
void count_shared(const DerivedRecord& record) noexcept;

/// The shapes of the registered procedures of this process.
const CodeShapes& registered_shapes() noexcept;

}  // namespace jitunwind
