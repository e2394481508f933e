// Parts of modules that were found before. The dynamic linker names the object of an address with a few loads. Its
// program headers say more, but each look at them needs proofs that they can be read, at every frame of every walk.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/kept/sequenced_entry_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// The dynamic linker's record of a loaded object. Parts that are kept under this key are of that object, or of one
/// that is laid out alike and took its place. Places are kept, never contents.
struct LoadedObjectKey {
  Addr map_begin = 0;
  Addr map_end = 0;
  Addr link_map = 0;
  Addr load_bias = 0;
  Addr dynamic = 0;       ///< its dynamic section
  Addr eh_frame_hdr = 0;  ///< PT_GNU_EH_FRAME
};

/// Parts of a module by its program headers, as offsets from LoadedObjectKey::map_begin.
struct KeptParts {
  struct Part {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    bool empty() const noexcept { return begin == end; }
    AddrRange from(Addr base) const noexcept { return {base + begin, base + end}; }
  };

  Part text{};        ///< the executable segment of the address that was asked for
  Part eh_segment{};  ///< the segment of .eh_frame_hdr; empty: there is none
  Part identity{};    ///< its build id, words in the first page; empty: there is none
  Part whole{};       ///< all that is mapped
};

/// Room for a thousand, two places for each, in memory that is mapped when it is needed and touched where it is used:
/// entries are taken one after the other. Nothing is kept while there is no memory. Thread-safe and signal-safe, nobody
/// waits: see SequencedEntry. Constant-initialised, never freed.
class ModuleMemo {
 public:
  bool find(const LoadedObjectKey& key, KeptParts& out) const noexcept {
    for (const std::atomic<std::uint16_t>& number : places_[place_of(key)]) {
      const Entry* const entry = entry_of(number);
      if (entry && entry->find(key, out)) return true;
    }
    return false;
  }

  void keep(const LoadedObjectKey& key, const KeptParts& parts) noexcept {
    Entry* chosen = nullptr;
    // It goes where its module was before, or into a free place, or into the one that was written less often.
    for (std::atomic<std::uint16_t>& number : places_[place_of(key)]) {
      Entry* const entry = number_or_take(number);
      if (!entry) continue;
      const bool is_free = entry->times_kept() == 0;
      if (is_free || entry->first_word_of_key() == key.map_begin) return entry->keep(key, parts);
      if (!chosen || entry->times_kept() < chosen->times_kept()) chosen = entry;
    }
    if (chosen) chosen->keep(key, parts);
  }

  /// Maps the memory now, which a walk in a signal handler of a sandbox must not do.
  void make_ready() noexcept { (void)entries_.get(); }

 private:
  static constexpr unsigned k_set_bits = 9;
  static constexpr std::size_t k_size = std::size_t{2} << k_set_bits;
  using Entry = SequencedEntry<LoadedObjectKey, KeptParts>;
  using Entries = std::array<Entry, k_size>;
  /// Numbers of entries, from 1 on; 0: none yet.
  using Set = std::array<std::atomic<std::uint16_t>, 2>;

  static std::size_t place_of(const LoadedObjectKey& key) noexcept {
    return table_place(key.map_begin / k_page_size, k_set_bits);
  }

  const Entry* entry_of(const std::atomic<std::uint16_t>& number) const noexcept {
    const std::size_t n = number.load(std::memory_order_acquire);
    return n == 0 ? nullptr : &(*entries_.if_made())[n - 1];
  }

  /// The entry of a place, which takes a new one where it has none. Null: there are no more, or there is no memory. An
  /// entry that two threads took for the same place is lost.
  Entry* number_or_take(std::atomic<std::uint16_t>& number) noexcept {
    Entries* const entries = entries_.get();
    if (!entries) return nullptr;
    if (number.load(std::memory_order_relaxed) == 0) {
      const std::size_t taken = taken_.fetch_add(1, std::memory_order_relaxed);
      std::uint16_t none = 0;
      if (taken < k_size)
        number.compare_exchange_strong(none, static_cast<std::uint16_t>(taken + 1), std::memory_order_release);
    }
    const std::size_t n = number.load(std::memory_order_relaxed);
    return n == 0 ? nullptr : &(*entries)[n - 1];
  }

  std::array<Set, std::size_t{1} << k_set_bits> places_{};
  std::atomic<std::size_t> taken_{0};
  MadeOnce<Entries> entries_;
};

}  // namespace jitunwind
