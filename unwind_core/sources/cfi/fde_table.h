// Sorted tables of (start of code, FDE) pairs: .eh_frame_hdr (LSB 5.0 core, 10.6.2), and the tables of registered
// procedures, which have the same form and are found another way.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/sources/cfi/cfi.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// `count` pairs of integers of `width` bytes, sorted by the first. Member + base = address, modulo 2^64.
struct FdeTable {
  Addr address = 0;  ///< of the first pair
  std::uint64_t count = 0;
  unsigned width = 4;          ///< of one member: 2, 4 or 8 bytes
  bool sign_extend = true;     ///< members of less than a word
  bool self_relative = false;  ///< each member counts from its own place, in addition to the bases
  Addr start_base = 0;         ///< added to first members
  Addr fde_base = 0;           ///< added to second members
};

/// A pair of a table.
struct FoundFde {
  Addr start = 0;  ///< of its code, as the table says
  Addr fde = 0;
  std::uint64_t index = 0;  ///< of the pair
};

/// The last pair whose start is not behind `pc`; false: all are. Whether the FDE reaches as far as `pc` only the FDE
/// can say. O(log count); reads each pair through `memory`.
Result<bool> search(const FdeTable& table, Addr pc, bool big_endian, const Memory& memory, MemoryWindow& window,
                    FoundFde& out) noexcept;
/// The last pair of a table in host memory: `bytes` begin at table.address and hold all pairs.
bool search(const FdeTable& table, Addr pc, bool big_endian, std::span<const std::byte> bytes, FoundFde& out) noexcept;

/// The pair in front of `found` in its place; false: there is none.
Result<bool> step_back(const FdeTable& table, bool big_endian, const Memory& memory, MemoryWindow& window,
                       FoundFde& found) noexcept;
bool step_back(const FdeTable& table, bool big_endian, std::span<const std::byte> bytes, FoundFde& found) noexcept;

/// The FDE that covers `pc`, as `covers` says of an FDE (Found): of the last pair, or of one in front of it. Linkers
/// leave empty FDEs behind others of the same start, and FDEs in the range of another one. `where` are the table's
/// bytes or memory, as for step_back().
template <class Covers, class... Where>
Found find_covering(const FdeTable& table, Addr pc, Covers covers, bool big_endian, Where&... where) noexcept {
  constexpr int k_most = 64;  // where nothing covers it all of them are read
  FoundFde found;
  Found is_there = search(table, pc, big_endian, where..., found);
  for (int i = 0; is_there && *is_there; ++i) {
    const Found covered = covers(found.fde);
    if (!covered && i != 0) return false;  // nobody has asked for that one
    if (!covered || *covered) return covered;
    is_there = i + 1 < k_most ? Found(step_back(table, big_endian, where..., found)) : Found(false);
  }
  return is_there;
}

/// .eh_frame_hdr (LSB 5.0 core, 10.6.2).
struct EhFrameHdr {
  Addr eh_frame = 0;  ///< 0: not given
  FdeTable table{};   ///< count 0: without a table, or with one that cannot be searched
};

/// Error unsupported_version, bad_encoding, truncated; truncated also when the table is longer than the bytes.
Result<EhFrameHdr> parse_eh_frame_hdr(const SectionBytes& hdr, const Arch& arch) noexcept;
/// Reads the header by its first bytes alone; `size` is that of all.
Result<EhFrameHdr> parse_eh_frame_hdr(const SectionBytes& hdr, std::uint64_t size, const Arch& arch) noexcept;
/// Parses and searches at once what linkers make: .eh_frame_hdr with a table of signed words of 4 bytes, all of them in
/// `hdr`. Returns the FDE; 0: it is something else, or no pair is for `pc`.
Addr search_eh_frame_hdr(const SectionBytes& hdr, Addr pc, const Arch& arch) noexcept;
/// Bytes in front of the table, at most.
inline constexpr std::size_t k_max_eh_frame_hdr = 4 + 2 * 10;

}  // namespace jitunwind
#pragma GCC visibility pop
