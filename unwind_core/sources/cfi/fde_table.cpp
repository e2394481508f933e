#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"

namespace jitunwind {
namespace {

using namespace dwarf;

/// A member of a pair. `raw(offset, value)` reads the integer at that offset of the table; false: it cannot be read.
template <class ReadRaw>
Addr member(const FdeTable& table, std::uint64_t index, unsigned which, bool& readable, ReadRaw& raw) noexcept {
  const std::uint64_t offset = (2 * index + which) * table.width;
  std::uint64_t value = 0;
  if (!raw(offset, value)) readable = false;
  if (table.sign_extend && table.width < 8) {
    const unsigned unused = 64 - 8 * table.width;
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
  }
  if (table.self_relative) value += table.address + offset;
  return value + (which == 0 ? table.start_base : table.fde_base);
}

template <class ReadRaw>
bool read_pair(const FdeTable& table, std::uint64_t index, FoundFde& out, bool& readable, ReadRaw& raw) noexcept {
  out = {member(table, index, 0, readable, raw), member(table, index, 1, readable, raw), index};
  return readable;
}

template <class ReadRaw>
bool search_pairs(const FdeTable& table, Addr pc, FoundFde& out, bool& readable, ReadRaw raw) noexcept {
  if (table.count == 0) return false;
  // Among `left` pairs from `first` on is the last one whose start is not behind `pc`, if there is one.
  std::uint64_t first = 0;
  for (std::uint64_t left = table.count; left > 1 && readable;) {
    const std::uint64_t half = left / 2;
    if (member(table, first + half, 0, readable, raw) <= pc) first += half;
    left -= half;
  }
  return readable && read_pair(table, first, out, readable, raw) && out.start <= pc;
}

template <class ReadRaw>
bool read_pair_before(const FdeTable& table, FoundFde& found, bool& readable, ReadRaw raw) noexcept {
  return found.index != 0 && read_pair(table, found.index - 1, found, readable, raw);
}

/// Searches a table as every linker makes it, signed words of 4 bytes in the host's order: in 5 instructions a pair,
/// where the general way takes 55, and in 11 while pairs ahead are fetched. The table of new code is in no cache.
/// Waiting for one pair after the other takes longer than all other work for a frame. `bytes` hold all pairs. Returns
/// the FDE; 0: all are behind `pc`.
[[gnu::always_inline]] inline Addr search_ordinary(const FdeTable& table, Addr pc, const std::byte* bytes) noexcept {
  constexpr std::size_t k_pair = 8, k_pairs_of_two_lines = 16;
  const auto member = [](const std::byte* at) noexcept {
    std::int32_t value;
    std::memcpy(&value, at, sizeof value);
    return std::int64_t{value};
  };
  if (table.count == 0) return 0;
  const auto wanted = static_cast<std::int64_t>(pc - table.start_base);
  const std::byte* pair = bytes;
  const auto step_to = [&](const std::byte* middle) { pair = member(middle) <= wanted ? middle : pair; };
  // Strides are powers of two. So the first one leads to where the table's end is as far away as the largest of them.
  std::uint64_t stride = std::bit_floor(table.count);
  const std::byte* middle = pair + (table.count - stride) * k_pair;
  std::uint64_t quarter = stride / 4 * k_pair;
  for (; quarter > k_pairs_of_two_lines / 8 * k_pair; quarter /= 2, middle = pair + 4 * quarter) {
    // The four that the step after the next may look at.
    for (const std::byte* const from : {pair, middle})
      for (const std::uint64_t way : {quarter, 3 * quarter}) __builtin_prefetch(from + way);
    step_to(middle);
  }
  for (stride = std::min<std::uint64_t>(stride, k_pairs_of_two_lines / 2); stride != 0;
       middle = pair + stride * k_pair) {
    step_to(middle);
    stride /= 2;
  }
  if (member(pair) > wanted) return 0;
  return table.fde_base + static_cast<Addr>(member(pair + 4));
}

/// Reads the header that every linker makes: version 1, .eh_frame relative to its place, a count of 4 bytes, an
/// ordinary table behind it.
[[gnu::always_inline]] inline bool parse_ordinary(const SectionBytes& hdr, std::uint64_t size, const Arch& arch,
                                                  EhFrameHdr& out) noexcept {
  constexpr std::array k_head{std::uint8_t{1}, std::uint8_t{pe_pcrel | pe_sdata4}, std::uint8_t{pe_udata4},
                              std::uint8_t{pe_datarel | pe_sdata4}};
  struct {
    std::array<std::uint8_t, 4> head;
    std::int32_t eh_frame;
    std::uint32_t count;
  } begin;
  if (arch.word_size != 8 || arch.big_endian != (std::endian::native == std::endian::big)) return false;
  if (hdr.address == 0 || hdr.bytes.size() < sizeof begin || size < sizeof begin) return false;
  std::memcpy(&begin, hdr.bytes.data(), sizeof begin);
  if (begin.head != k_head || begin.eh_frame == 0 || begin.count > (size - sizeof begin) / 8) return false;
  out.eh_frame = hdr.address + 4 + static_cast<Addr>(std::int64_t{begin.eh_frame});
  out.table = {
      .address = hdr.address + sizeof begin, .count = begin.count, .start_base = hdr.address, .fde_base = hdr.address};
  return true;
}

/// Sets what the encoding says of the table. False when its pairs have no fixed size or an unusual base.
bool set_encoding(FdeTable& table, std::uint8_t encoding, Addr hdr, const Arch& arch) noexcept {
  switch (encoding & pe_format_mask) {
    case pe_absptr:
    case pe_signed:
      table.width = arch.word_size;
      break;
    case pe_udata2:
    case pe_sdata2:
      table.width = 2;
      break;
    case pe_udata4:
    case pe_sdata4:
      table.width = 4;
      break;
    case pe_udata8:
    case pe_sdata8:
      table.width = 8;
      break;
    default:
      return false;
  }
  table.sign_extend = (encoding & pe_signed) != 0;
  table.self_relative = (encoding & ~pe_format_mask) == pe_pcrel;
  table.start_base = table.fde_base = (encoding & ~pe_format_mask) == pe_datarel ? hdr : 0;
  return (encoding & ~pe_format_mask) == pe_absptr || table.self_relative || table.start_base != 0;
}

/// The result of `look`, which gets a reader of the table's members.
template <class Look>
Result<bool> in_memory(const FdeTable& table, bool big_endian, const Memory& memory, MemoryWindow& window,
                       Look look) noexcept {
  bool readable = true;
  Addr failed_at = table.address;
  const bool found = look(readable, [&](std::uint64_t offset, std::uint64_t& value) {
    failed_at = table.address + offset;
    const auto read = read_unsigned(memory, window, failed_at, table.width, big_endian, "");
    if (read) value = *read;
    return read.has_value();
  });
  if (!readable) return unreadable(window, failed_at, "table of FDEs");
  return found;
}

template <class Look>
bool in_bytes(const FdeTable& table, bool big_endian, std::span<const std::byte> bytes, Look look) noexcept {
  bool readable = true;
  return look(readable, [&](std::uint64_t offset, std::uint64_t& value) {
    if (offset > bytes.size() || table.width > bytes.size() - offset) return false;
    value = ByteReader(bytes.subspan(static_cast<std::size_t>(offset)), big_endian).unsigned_of(table.width);
    return true;
  });
}

}  // namespace

Result<bool> search(const FdeTable& table, Addr pc, bool big_endian, const Memory& memory, MemoryWindow& window,
                    FoundFde& out) noexcept {
  return in_memory(table, big_endian, memory, window,
                   [&](bool& readable, auto raw) { return search_pairs(table, pc, out, readable, raw); });
}

bool search(const FdeTable& table, Addr pc, bool big_endian, std::span<const std::byte> bytes, FoundFde& out) noexcept {
  return in_bytes(table, big_endian, bytes,
                  [&](bool& readable, auto raw) { return search_pairs(table, pc, out, readable, raw); });
}

Result<bool> step_back(const FdeTable& table, bool big_endian, const Memory& memory, MemoryWindow& window,
                       FoundFde& found) noexcept {
  return in_memory(table, big_endian, memory, window,
                   [&](bool& readable, auto raw) { return read_pair_before(table, found, readable, raw); });
}

bool step_back(const FdeTable& table, bool big_endian, std::span<const std::byte> bytes, FoundFde& found) noexcept {
  return in_bytes(table, big_endian, bytes,
                  [&](bool& readable, auto raw) { return read_pair_before(table, found, readable, raw); });
}

[[gnu::hot]] Addr search_eh_frame_hdr(const SectionBytes& hdr, Addr pc, const Arch& arch) noexcept {
  EhFrameHdr parsed;
  if (!parse_ordinary(hdr, hdr.bytes.size(), arch, parsed)) return 0;
  return search_ordinary(parsed.table, pc,
                         hdr.bytes.data() + static_cast<std::size_t>(parsed.table.address - hdr.address));
}

Result<EhFrameHdr> parse_eh_frame_hdr(const SectionBytes& hdr, const Arch& arch) noexcept {
  return parse_eh_frame_hdr(hdr, hdr.bytes.size(), arch);
}

Result<EhFrameHdr> parse_eh_frame_hdr(const SectionBytes& hdr, std::uint64_t size, const Arch& arch) noexcept {
  EhFrameHdr parsed;
  if (parse_ordinary(hdr, size, arch, parsed)) return parsed;
  const CfiContext context{.arch = arch, .data_base = hdr.address};
  ByteReader reader(hdr.bytes, arch.big_endian, hdr.address);
  const std::uint8_t version = reader.u8();
  if (reader.ok() && version != 1)
    return Error{ErrorCode::unsupported_version, hdr.address, "version of .eh_frame_hdr"};
  const std::uint8_t eh_frame_encoding = reader.u8();
  const std::uint8_t count_encoding = reader.u8();
  const std::uint8_t table_encoding = reader.u8();
  const EncodedPointer eh_frame = read_encoded(reader, eh_frame_encoding, context, 0);
  const EncodedPointer count = read_encoded(reader, count_encoding, context, 0);
  if (!reader.ok()) return reader.error(".eh_frame_hdr");
  if (eh_frame.indirect || count.indirect)
    return Error{ErrorCode::bad_encoding, hdr.address, "indirect field of .eh_frame_hdr"};

  parsed.eh_frame = eh_frame.value;
  FdeTable& table = parsed.table;
  table.address = reader.address();
  if (count_encoding == pe_omit || table_encoding == pe_omit) return parsed;
  if (!set_encoding(table, table_encoding, hdr.address, arch)) return parsed;
  if (size < reader.position() || count.value > (size - reader.position()) / (2 * table.width))
    return Error{ErrorCode::truncated, table.address, "table of .eh_frame_hdr"};
  table.count = count.value;
  return parsed;
}

}  // namespace jitunwind
