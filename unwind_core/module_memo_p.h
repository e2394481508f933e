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
  AddrRange identity{};  ///< its build id, words in the first page of its mapping; empty: there is none
};

/// Room for a thousand, two places for each, in memory that is touched where it is used. Thread-safe and signal-safe,
/// nobody waits: see SequencedEntry. Constant-initialised, never freed.
class ModuleMemo {
 public:
  bool find(const LoadedObjectKey& key, RememberedModule& out) const noexcept {
    const Set& set = sets_[place_of(key)];
    return set[0].find(key, out) || set[1].find(key, out);
  }
  void keep(const LoadedObjectKey& key, const RememberedModule& module) noexcept {
    Set& set = sets_[place_of(key)];
    // What was there before, or the place that was written less often.
    const bool second = set[0].first_word_of_key() != key.map_begin &&
                        (set[1].first_word_of_key() == key.map_begin || set[1].times_kept() < set[0].times_kept());
    set[second ? 1 : 0].keep(key, module);
  }

 private:
  static constexpr unsigned k_set_bits = 9;
  using Set = std::array<SequencedEntry<LoadedObjectKey, RememberedModule>, 2>;

  static std::size_t place_of(const LoadedObjectKey& key) noexcept {
    return table_place(key.map_begin / k_page_size, k_set_bits);
  }

  std::array<Set, std::size_t{1} << k_set_bits> sets_{};
};

}  // namespace jitunwind
