// CIEs that were read before, by their bytes. Compilers make a handful of them, and linkers put those into every
// module: what one says and where its initial instructions lead is the same wherever it stands, so that nothing of this
// depends on which modules are loaded.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "unwind_core/sources/cfi.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What rows need of a CIE.
struct KnownCie {
  static constexpr std::size_t k_max_state = 112;

  const Arch* arch = nullptr;
  Cie cie{};  ///< but for its place, its personality and its instructions
  std::size_t state_size = 0;
  alignas(8) std::array<std::byte, k_max_state> state{};  ///< CfiProgram::initial_state()
};

/// Eight of them, the first ones that were met; others are read each time. Entries stay as they are. Thread-safe,
/// signal-safe, nobody waits. Constant-initialised.
class KnownCies {
 public:
  /// `bytes` from a CIE's length on, and what is behind it. Null: it is none of them, or too few bytes are there.
  [[gnu::always_inline]] const KnownCie* find(std::span<const std::byte> bytes, const Arch& arch) const noexcept {
    if (bytes.size() < sizeof(Words)) return nullptr;
    const std::uint64_t head = word(bytes, 0), second = word(bytes, 1), third = word(bytes, 2), fourth = word(bytes, 3);
    for (const Entry& entry : entries_) {
      if (entry.head.load(std::memory_order_acquire) != head) continue;
      const std::uint64_t different = (second ^ entry.words[1]) | ((third ^ entry.words[2]) & entry.mask[2]) |
                                      ((fourth ^ entry.words[3]) & entry.mask[3]);
      if (different == 0 && entry.known.arch == &arch) return &entry.known;
    }
    return nullptr;
  }

  /// If it is one whose rows depend on its bytes alone, and FDEs of which read_known_fde() understands. `initial`: the
  /// row that its initial instructions lead to; `state`: the same.
  void keep(const Cie& cie, const CfiContext& context, const FrameRow& initial,
            std::span<const std::byte> state) noexcept;

 private:
  using Words = std::array<std::uint64_t, 4>;
  struct Entry {
    std::atomic<std::uint64_t> head{0};  // the first word: length and CIE id. 0: there is nothing yet
    Words words{};
    Words mask{};  // what of them has to be the same: all of the first two
    KnownCie known{};
  };

  static std::uint64_t word(std::span<const std::byte> bytes, std::size_t number) noexcept {
    std::uint64_t value;
    std::memcpy(&value, bytes.data() + number * sizeof value, sizeof value);
    return value;
  }

  std::array<Entry, 8> entries_{};
  std::atomic<bool> is_written_{false};
};

/// Of FDEs as compilers make them: the call frame instructions, if its CIE is known and it covers `pc`. `segment` is
/// what both lie in. False: it has to be read in the general way, whatever that comes to.
bool read_known_fde(const SectionBytes& segment, Addr at, Addr pc, const CfiContext& context, CfiCode& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
