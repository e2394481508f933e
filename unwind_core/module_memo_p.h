// Modules that were found before. The dynamic linker names the object of an address with a few loads; what its program
// headers add costs reading them behind proofs that they can be read, at every frame of every walk.
#pragma once

#include <array>
#include <cstddef>

#include "unwind_core/hash.h"
#include "unwind_core/module.h"
#include "unwind_core/page_p.h"
#include "unwind_core/sequenced_entry.h"

namespace jitunwind {

/// What the dynamic linker says of a loaded object. What is remembered under all of it is of that object, or of one
/// that is laid out alike and took its place: places are remembered, never contents.
struct LoadedObjectKey {
  Addr map_begin = 0;
  Addr map_end = 0;
  Addr link_map = 0;
  Addr load_bias = 0;
  Addr dynamic = 0;       ///< its dynamic section
  Addr eh_frame_hdr = 0;  ///< PT_GNU_EH_FRAME
};

struct RememberedModule {
  Module module;
  Addr identity = 0;  ///< 8 bytes of its build id in the first page of its mapping; 0: there are none
};

/// A direct-mapped cache. Thread-safe and signal-safe, nobody waits: see SequencedEntry. Constant-initialised, never
/// freed.
class ModuleMemo {
 public:
  bool find(const LoadedObjectKey& key, RememberedModule& out) const noexcept {
    return slots_[slot_of(key)].find(key, out);
  }
  void keep(const LoadedObjectKey& key, const RememberedModule& module) noexcept {
    slots_[slot_of(key)].keep(key, module);
  }

 private:
  static constexpr unsigned k_slot_bits = 6;

  static std::size_t slot_of(const LoadedObjectKey& key) noexcept {
    return table_place(key.map_begin / k_page_size, k_slot_bits);
  }

  std::array<SequencedEntry<LoadedObjectKey, RememberedModule>, std::size_t{1} << k_slot_bits> slots_{};
};

}  // namespace jitunwind
