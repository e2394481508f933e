#include "jitunwind/unwind_core/targets/copied_entries_p.h"

#include <algorithm>
#include <new>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/memory/own/spare_blocks_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

constinit SpareBlocks spare_entries;

}  // namespace

/// Memory that is left to the next user is zero, like new memory.
CopiedEntries::~CopiedEntries() {
  for (std::size_t page = 0; page < is_written_.size() && !bytes_.empty(); ++page) {
    if (!is_written_[page]) continue;
    std::ranges::fill(bytes_.bytes().subspan(page * k_page_size, k_page_size), std::byte{0});
    KeptBlock::discount(k_page_size);
  }
  spare_entries.give(std::move(bytes_));
}

bool CopiedEntries::make(const Memory& memory, AddrRange section) noexcept try {
  begin_ = page_of(section.begin);
  const std::uint64_t pages = (section.end - begin_ + k_page_size - 1) / k_page_size;
  const auto size = static_cast<std::size_t>(pages * k_page_size);
  bytes_ = spare_entries.take(size);
  if (bytes_.empty()) bytes_ = Block(size);
  if (bytes_.empty()) return false;
  is_there_.assign(static_cast<std::size_t>(pages), false);
  is_written_ = is_there_;
  memory_ = &memory;
  section_ = section;
  return true;
} catch (const std::bad_alloc&) {
  bytes_ = Block();
  return false;
}

SectionBytes CopiedEntries::section() const noexcept {
  if (!memory_) return {};
  return {bytes_.bytes().subspan(static_cast<std::size_t>(section_.begin - begin_),
                                 static_cast<std::size_t>(section_.size())),
          section_.begin};
}

/// The number of bytes from the first on that could be read. The others stay as they were: an entry may claim to be
/// longer than all that is there.
std::size_t CopiedEntries::read(AddrRange part) noexcept {
  MemoryWindow window;
  const auto into =
      bytes_.bytes().subspan(static_cast<std::size_t>(part.begin - begin_), static_cast<std::size_t>(part.size()));
  const std::size_t got = memory_->read(part.begin, into, window);
  const auto first = static_cast<std::size_t>((part.begin - begin_) / k_page_size);
  for (std::size_t page = first; begin_ + page * k_page_size < part.begin + got; ++page) {
    if (!is_written_[page]) KeptBlock::count(k_page_size);
    is_written_[page] = true;
  }
  return got;
}

/// Copies a page together with the missing pages after it. If a page cannot be read as a whole, the needed part may be
/// readable.
bool CopiedEntries::copy_page(std::size_t number, std::size_t most, AddrRange needed) noexcept {
  if (!KeptBlock::has_room()) return false;
  std::size_t end = number + 1;
  while (end < is_there_.size() && end < number + most && !is_there_[end]) ++end;
  const Addr begin = begin_ + number * k_page_size;
  const std::size_t whole = read({begin, begin_ + end * k_page_size}) / k_page_size;
  for (std::size_t i = 0; i < whole; ++i) is_there_[number + i] = true;
  if (whole != 0) return true;
  const AddrRange wanted{std::max(needed.begin, begin), std::min(needed.end, begin + k_page_size)};
  return read(wanted) == wanted.size();
}

/// Precondition: the part is in the section, and not empty.
bool CopiedEntries::copy(AddrRange part, std::size_t most) noexcept {
  const auto first = static_cast<std::size_t>((part.begin - begin_) / k_page_size);
  const auto last = static_cast<std::size_t>((part.end - 1 - begin_) / k_page_size);
  for (std::size_t i = first; i <= last; ++i)
    if (!is_there_[i] && !copy_page(i, std::max(most, last + 1 - i), part)) return false;
  return true;
}

/// LSB 5.0 core, 10.6.1.1: length, and the CIE's id or the distance to it. An entry whose length is all ones is longer
/// than 4 bytes can express: any later bytes may belong to it.
bool CopiedEntries::copy_entry(Addr at, std::size_t pages, bool big_endian, std::uint32_t& second_word) noexcept {
  constexpr std::uint64_t k_head = 8, k_compared = 32;  // of a CIE with known ones, of any length
  const std::uint64_t room = section_.end - at;
  if (room < k_head) return copy({at, section_.end}, pages);
  if (!copy({at, at + k_head}, pages)) return false;
  const SectionBytes all = section();
  ByteReader reader(all.bytes.subspan(static_cast<std::size_t>(at - all.address), k_head), big_endian, at);
  const std::uint32_t length = reader.u32();
  second_word = reader.u32();
  const std::uint64_t claimed = length >= 0xffff'fff0 ? room : std::min(4 + std::uint64_t{length}, room);
  const std::uint64_t size = std::min(claimed, k_max_cfi_entry);  // readers refuse longer ones
  if (!copy({at, at + size}, pages)) return false;
  if (size < k_compared) (void)copy({at, at + std::min(k_compared, room)}, 1);
  return true;
}

std::optional<Addr> CopiedEntries::copy_fde(Addr fde, bool big_endian) noexcept {
  std::uint32_t distance = 0;
  if (!section_.contains(fde)) return 0;
  if (!copy_entry(fde, k_at_once, big_endian, distance)) return std::nullopt;
  const Addr cie = cie_before(fde + 4, distance);
  return copy_cie(cie, big_endian) ? std::optional(cie) : std::nullopt;
}

bool CopiedEntries::copy_cie(Addr cie, bool big_endian) noexcept {
  std::uint32_t id = 0;
  return !section_.contains(cie) || copy_entry(cie, 1, big_endian, id);
}

}  // namespace jitunwind
