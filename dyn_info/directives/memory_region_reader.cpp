// Region lists of other processes.
#include <algorithm>
#include <array>

#include "jitunwind/dyn_info/directives/region_list_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {

// The layout is that of the target's own compiler: next, int32, uint32, then the directives, each 8 bytes and a word.

Status MemoryRegionReader::read_header(Addr at, RegionHeader& out) const noexcept {
  constexpr const char* k_what = "region of a procedure";
  std::array<std::byte, 16> bytes;
  const auto head = std::span(bytes).first(arch_.word_size + 8u);
  if (memory_.read(at, head, window_) != head.size()) return unreadable(window_, at, k_what);
  ByteReader reader(head, arch_.big_endian, at);
  out.at = at;
  out.next = reader.unsigned_of(arch_.word_size);
  out.insn_count = static_cast<std::int32_t>(reader.u32());
  out.op_count = reader.u32();
  return Done{};
}

Result<std::span<const unw_dyn_op_t>> MemoryRegionReader::read_ops(const RegionHeader& region, std::uint32_t first,
                                                                   std::span<unw_dyn_op_t> buffer) const noexcept {
  constexpr std::size_t k_most = 8;
  const std::size_t size = 8u + arch_.word_size;
  const Addr at = region.at + arch_.word_size + 8u + first * Addr{size};
  const std::size_t wanted = std::min({buffer.size(), k_most, std::size_t{region.op_count - first}});
  std::array<std::byte, k_most * 16> bytes;
  const std::size_t whole = memory_.read(at, std::span<std::byte>(bytes).first(wanted * size), window_) / size;
  if (whole == 0) return unreadable(window_, at, "directives of a region");
  ByteReader reader(std::span<const std::byte>(bytes).first(whole * size), arch_.big_endian, at);
  for (unw_dyn_op_t& op : buffer.first(whole)) {
    op.tag = static_cast<std::int8_t>(reader.u8());
    op.qp = static_cast<std::int8_t>(reader.u8());
    op.reg = static_cast<std::int16_t>(reader.u16());
    op.when = static_cast<std::int32_t>(reader.u32());
    const std::int64_t value = reader.signed_of(arch_.word_size);
    // The lowest number of the target's word, like UNW_DYN_ADD_UNKNOWN in this process.
    const bool unknown = op.tag == UNW_DYN_ADD && value == -(std::int64_t{1} << (8 * arch_.word_size - 2)) * 2;
    op.val = unknown ? UNW_DYN_ADD_UNKNOWN : static_cast<unw_word_t>(value);
  }
  return std::span<const unw_dyn_op_t>(buffer.first(whole));
}

}  // namespace jitunwind
