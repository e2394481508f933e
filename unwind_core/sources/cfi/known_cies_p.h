// CIEs that were read before, by their bytes. Compilers make a handful of them, and linkers put those into every
// module. A CIE says the same wherever it stands, and its initial instructions lead to the same row. So nothing of this
// depends on which modules are loaded.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/trace/counters.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The parts of a CIE that rows need.
struct KnownCie {
  const Arch* arch = nullptr;
  Cie cie{};                  ///< but for its place, its personality and its instructions
  std::size_t data_size = 0;  ///< of the augmentation data of its FDEs: 4 where they name data of their own
  std::size_t data_at = 0;    ///< where these are in an FDE, behind their size and two pointers
  bool is_relative = false;   ///< pointers of 4 bytes, relative to their place; else absolute words
  CompactRow initial{};       ///< where its initial instructions lead to
  bool is_outermost = false;  ///< and they say that there is no caller
  std::uint8_t personality_encoding = 0;
  std::uint8_t personality_at = 0;  ///< place in the CIE; 0: it has none
  /// Whether procedures may have a personality routine, or data of their own.
  bool has_facts() const noexcept { return personality_at != 0 || data_size != 0; }
};

/// The first eight CIEs that were met whose rows are compact and depend on their bytes alone. Others are read each
/// time. Entries stay as they are. Thread-safe, signal-safe, nobody waits. Constant-initialised.
class KnownCies {
 public:
  /// The CIE at the begin of `bytes`, which go on behind it. A new one is read and kept, if it can be. Null: it is not
  /// kept, or too few bytes are there.
  [[gnu::always_inline]] const KnownCie* find_or_learn(std::span<const std::byte> bytes, const Arch& arch) noexcept {
    if (bytes.size() < sizeof(Words)) return nullptr;
    const KnownCie* const known = find_words({word(bytes, 0), word(bytes, 1), word(bytes, 2), word(bytes, 3)}, arch);
    if (!known) return learn(bytes, arch);
    count_warm_event(Counter::cie_known);
    return known;
  }

  static constexpr std::size_t k_looks_at = 4 * sizeof(std::uint64_t);  ///< bytes from a CIE's begin on

  /// Writes to its first page, so that the first walk is not the first to write there.
  void touch() noexcept { entries_[0].head.fetch_or(0, std::memory_order_relaxed); }

 private:
  using Words = std::array<std::uint64_t, 4>;
  struct Entry {
    std::atomic<std::uint64_t> head{0};  // the first word: length and CIE id. 0: there is nothing yet
    Words words{};
    Words mask{};  // what of them has to be the same: all of the first two
    KnownCie known{};
  };

  [[gnu::always_inline]] const KnownCie* find_words(const Words& words, const Arch& arch) const noexcept {
    for (const Entry& entry : entries_) {
      if (entry.head.load(std::memory_order_acquire) != words[0] || entry.words[1] != words[1]) continue;
      const std::uint64_t different =
          ((words[2] ^ entry.words[2]) & entry.mask[2]) | ((words[3] ^ entry.words[3]) & entry.mask[3]);
      if (different == 0 && entry.known.arch == &arch) return &entry.known;
    }
    return nullptr;
  }
  /// Null: it is of an unusual kind.
  const KnownCie* learn(std::span<const std::byte> bytes, const Arch& arch) noexcept;
  const KnownCie* add(const Words& words, const Words& mask, const KnownCie& known) noexcept;

  static std::uint64_t word(std::span<const std::byte> bytes, std::size_t number) noexcept {
    std::uint64_t value;
    std::memcpy(&value, bytes.data() + number * sizeof value, sizeof value);
    return value;
  }

  alignas(64) std::atomic<bool> is_written_{false};
  std::array<Entry, 8> entries_{};
};

/// The parts of an FDE that rows need, as compilers make FDEs.
struct CompactCode {
  const Cie* cie = nullptr;
  const CompactRow* initial = nullptr;  ///< where the CIE's own instructions lead to
  AddrRange range{};
  std::span<const std::byte> instructions{};
  const KnownCie* known = nullptr;  ///< null: it was read in the general way
  Addr cie_place = 0;               ///< in the segment, if it is known
};
/// The CIE that was met last, and its place, whose bytes do not change meanwhile.
struct MetCie {
  const std::byte* at = nullptr;
  const KnownCie* known = nullptr;
};

/// Reads the FDE of `size` bytes at `at`, which are at `fde` in this process, after its CIE. False: it must be read in
/// the general way, or it covers nothing.
[[gnu::always_inline]] inline bool read_fde_of(const KnownCie* known, const std::byte* fde, std::size_t size, Addr at,
                                               CompactCode& out) noexcept {
  constexpr std::size_t k_code_at = 8;
  // Rows do not need the augmentation data, whatever they are.
  if (!known || size < known->data_at + known->data_size ||
      std::to_integer<std::size_t>(fde[known->data_at - 1]) != known->data_size)
    return false;
  Addr begin = 0, code_size = 0;
  if (known->is_relative) {
    struct {
      std::int32_t code;
      std::uint32_t size;
    } range;
    std::memcpy(&range, fde + k_code_at, sizeof range);
    begin = range.code == 0 ? 0 : at + k_code_at + static_cast<Addr>(std::int64_t{range.code});
    code_size = range.size;
  } else {
    std::uintptr_t range[2];
    std::memcpy(range, fde + k_code_at, sizeof range);
    begin = range[0];
    code_size = range[1];
  }
  if (begin == 0 || code_size == 0 || begin > ~Addr{0} - code_size) return false;
  const std::size_t instructions_at = known->data_at + known->data_size;
  out.cie = &known->cie;
  out.range = {begin, begin + code_size};
  out.instructions = {fde + instructions_at, size - instructions_at};
  out.initial = &known->initial;
  out.known = known;
  return true;
}

/// Reads an FDE whose CIE is known. The FDE and the CIE lie in `segment`, which is readable. It takes 100 instructions,
/// and the general way 900. False: as above.
[[gnu::always_inline]] inline bool read_known_fde(const SectionBytes& segment, Addr at, KnownCies& cies,
                                                  const Arch& arch, CompactCode& out, MetCie& met) noexcept {
  constexpr std::size_t k_id_at = 4;
  const std::uint64_t available = segment.bytes.size();
  const Addr place = at - segment.address;
  if (place >= available || available - place < 2 * k_id_at) return false;
  const std::byte* const fde = segment.bytes.data() + place;
  struct {
    std::uint32_t length, cie;
  } head;
  std::memcpy(&head, fde, sizeof head);
  const std::size_t size = std::size_t{head.length} + k_id_at;
  const Addr cie_place = place + k_id_at - head.cie;
  if (head.length >= 0xfffffff0u || size > available - place || head.cie == 0 || cie_place >= available) return false;
  const auto cie = segment.bytes.subspan(static_cast<std::size_t>(cie_place));
  if (cie.data() != met.at) met = {cie.data(), cies.find_or_learn(cie, arch)};
  out.cie_place = cie_place;
  return read_fde_of(met.known, fde, size, at, out);
}

[[gnu::always_inline]] inline bool read_known_fde(const SectionBytes& segment, Addr at, KnownCies& cies,
                                                  const Arch& arch, CompactCode& out) noexcept {
  MetCie met;
  return read_known_fde(segment, at, cies, arch, out, met);
}

/// Reads the parts of such an FDE and of its CIE that describe the procedure, as the general way does. Precondition:
/// read_known_fde() has read `code` at `at`.
void read_known_procedure(const SectionBytes& segment, Addr at, const CompactCode& code, Fde& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
