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
  Cie cie{};                  ///< but for its place, its personality and its instructions
  std::size_t data_size = 0;  ///< of the augmentation data of its FDEs: 4 where they name data of their own
  std::size_t state_size = 0;
  alignas(8) std::array<std::byte, k_max_state> state{};  ///< CfiCode::initial_state
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

  /// Has the page where it begins, lest the first walk is the first to write there.
  void touch() noexcept { entries_[0].head.fetch_or(0, std::memory_order_relaxed); }

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

  alignas(64) std::atomic<bool> is_written_{false};
  std::array<Entry, 8> entries_{};
};

/// Of FDEs as compilers make them: the call frame instructions, if its CIE is known and it covers `pc`. `segment` is
/// what both lie in. False: it has to be read in the general way, whatever that comes to, and which takes 900
/// instructions instead of 100.
[[gnu::always_inline]] inline bool read_known_fde(const SectionBytes& segment, Addr at, Addr pc,
                                                  const CfiContext& context, CfiCode& out) noexcept {
  constexpr std::size_t k_id_at = 4, k_code_at = 8, k_data_size_at = 16, k_data_at = 17;
  const std::uint64_t available = segment.bytes.size();
  const Addr place = at - segment.address;
  if (place >= available || available - place < k_data_at) return false;
  const std::byte* const fde = segment.bytes.data() + place;
  struct {
    std::uint32_t length, cie;
    std::int32_t code;
    std::uint32_t code_size;
  } head;
  std::memcpy(&head, fde, sizeof head);
  const std::size_t size = std::size_t{head.length} + k_id_at;
  const Addr cie_place = place + k_id_at - head.cie;
  if (head.length >= 0xfffffff0u || size > available - place || head.cie == 0 || cie_place >= available) return false;
  const KnownCie* const known =
      context.known->find(segment.bytes.subspan(static_cast<std::size_t>(cie_place)), context.arch);
  if (!known || head.code == 0) return false;
  // Whatever the augmentation data are, rows do not need them.
  const std::size_t data_size = known->data_size;
  const std::size_t instructions_at = k_data_at + data_size;
  if (std::to_integer<std::size_t>(fde[k_data_size_at]) != data_size || size < instructions_at) return false;
  const Addr begin = at + k_code_at + static_cast<Addr>(std::int64_t{head.code});
  if (begin > ~Addr{0} - head.code_size || pc - begin >= head.code_size) return false;
  out.cie = &known->cie;
  out.range = {begin, begin + head.code_size};
  out.instructions = {{fde + instructions_at, size - instructions_at}, at + instructions_at};
  out.initial_state = {known->state.data(), known->state_size};
  return true;
}

/// The row at `pc` of the FDE at `at`. False: as above.
bool find_row_of_known_cie(const SectionBytes& segment, Addr at, Addr pc, const CfiContext& context,
                           FrameRow& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
