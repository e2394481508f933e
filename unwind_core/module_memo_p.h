// Modules that were found before. The dynamic linker names the object of an address with a few loads; what its program
// headers add costs reading them behind proofs that they can be read, at every frame of every walk.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "unwind_core/hash.h"
#include "unwind_core/module.h"

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
  friend bool operator==(const LoadedObjectKey&, const LoadedObjectKey&) = default;
};

struct RememberedModule {
  Module module;
  Addr identity = 0;  ///< 8 bytes of its build id in the first page of its mapping; 0: there are none
};

/// A direct-mapped cache behind sequence locks that nobody waits for: a reader that meets a writer finds nothing, a
/// writer that meets another leaves. Thread-safe and signal-safe; constant-initialised, never freed.
class ModuleMemo {
 public:
  bool find(const LoadedObjectKey& key, RememberedModule& out) const noexcept;
  void keep(const LoadedObjectKey& key, const RememberedModule& module) noexcept;

 private:
  struct Contents {
    LoadedObjectKey key;
    RememberedModule remembered;
  };
  static constexpr std::size_t k_words = sizeof(Contents) / sizeof(std::uint64_t);
  static constexpr unsigned k_slot_bits = 6;

  struct Slot {
    std::atomic<std::uint32_t> version{0};  // odd while it is written
    std::array<std::atomic<std::uint64_t>, k_words> words{};
  };

  static std::size_t slot_of(const LoadedObjectKey& key) noexcept {
    return table_place(key.map_begin >> 12, k_slot_bits);
  }

  std::array<Slot, std::size_t{1} << k_slot_bits> slots_{};
};

}  // namespace jitunwind
