#include <algorithm>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/check/code_paths_p.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

bool CheckedParts::Ways::waits(AddrRange part, bool begins_as_entry) {
  if (rounds_ != 0) return false;
  parts_.push_back({part, begins_as_entry});
  if (!begins_as_entry) waiting_.insert(part.begin);
  return !begins_as_entry;
}

/// Ways with one frame are one.
void CheckedParts::Ways::add(Way way, Addr start, const check_code::Machine& machine) {
  constexpr std::size_t k_most = std::size_t{1} << 16, k_most_of_target = 16;
  way.values.count_from(static_cast<std::uint32_t>(start));
  const auto [first, last] = framed_.equal_range(way.target);
  std::size_t count = 0;
  for (auto at = first; at != last; ++at, ++count) {
    Way& there = at->second.way;
    if (there.is_pad != way.is_pad || !there.values.same_frame_as(way.values, machine)) continue;
    at->second.is_new |= there.values.merge(way.values);
    return;
  }
  if (count < k_most_of_target && framed_.size() < k_most) framed_.emplace(way.target, Framed{way, true});
}

const CheckedParts::Ways::Part* CheckedParts::Ways::part_at(Addr target) const noexcept {
  const auto behind = std::ranges::upper_bound(parts_, target, {}, [](const Part& part) { return part.range.begin; });
  return behind != parts_.begin() && behind[-1].range.contains(target) ? &behind[-1] : nullptr;
}

/// Ways with a frame come first: parts that they lead to make calls, and are few. Linkage tables are called from
/// everywhere, and are checked in the end.
bool CheckedParts::Ways::begin_round() {
  constexpr unsigned k_most_rounds = 8;
  due_.clear();
  if (rounds_++ == 0) std::ranges::sort(parts_, {}, [](const Part& part) { return part.range.begin; });
  if (rounds_ > k_most_rounds) return false;
  const auto add_due = [this](Addr target) {
    if (const Part* const part = part_at(target)) due_.insert(part->range.begin);
  };
  for (const auto& [target, framed] : framed_)
    if (framed.is_new && rounds_ != k_most_rounds) add_due(target);
  if (!due_.empty()) return true;
  for (const Addr target : calls_) {
    const Part* const part = part_at(target);
    if (part && !(part->begins_as_entry && part->range.begin == target)) called_.try_emplace(target, true);
  }
  calls_.clear();
  for (const auto& [target, is_new] : called_)
    if (is_new) add_due(target);
  due_.insert(waiting_.begin(), waiting_.end());
  return !due_.empty();
}

}  // namespace jitunwind

namespace jitunwind::check_code {
namespace {

using namespace dwarf;

constexpr std::uint64_t k_most_of_table = std::uint64_t{1} << 20;

std::vector<std::byte> bytes_at(const Memory& memory, Addr at, std::uint64_t size) {
  MemoryWindow window;
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  bytes.resize(memory.read(at, bytes, window));
  return bytes;
}

}  // namespace

/// Itanium C++ ABI, "Exception Handling Tables": the base of landing pads, the place of the types, the call sites.
KnownJumps::KnownJumps(const CheckedCode& code)
    : code_(code), start_(code.landing_pad_base != 0 ? code.landing_pad_base : code.range.begin) {
  if (code.lsda == 0) return;
  constexpr std::uint64_t k_most_of_head = 64;
  const std::vector<std::byte> bytes = bytes_at(code.memory, code.lsda, k_most_of_head);
  ByteReader head(bytes, code.arch.big_endian, code.lsda);
  const std::uint8_t base_encoding = head.u8();
  const EncodedPointer base = read_encoded(head, base_encoding, CfiContext{code.arch}, 0);
  if (head.u8() != pe_omit) (void)head.uleb();
  const std::uint8_t encoding = head.u8();
  const std::uint64_t size = head.uleb();
  if (!head.ok() || base.indirect || encoding > pe_format_mask || size > k_most_of_table) return;
  const std::vector<std::byte> table = bytes_at(code.memory, head.address(), size);
  if (table.size() == size) read_sites(table, head.address(), encoding, base_encoding == pe_omit ? start_ : base.value);
}

void KnownJumps::read_sites(std::span<const std::byte> table, Addr at, std::uint8_t encoding, Addr base) {
  ByteReader reader(table, code_.arch.big_endian, at);
  const auto number = [&] { return read_encoded(reader, encoding, CfiContext{code_.arch}, 0).value; };
  while (!reader.at_end()) {
    const Addr begin = number(), length = number(), pad = number();
    (void)reader.uleb();  // its actions
    if (reader.ok() && add_site(start_ + begin, length, pad == 0 ? 0 : base + pad)) continue;
    sites_.clear();
    return;
  }
}

/// Sites ascend, and are in the code. Their pads may be in another part of the procedure.
bool KnownJumps::add_site(Addr begin, Addr size, Addr pad) {
  const AddrRange& range = code_.range;
  const Addr least = range.begin + (sites_.empty() ? 0 : sites_.back().end);
  if (begin < least || begin > range.end || size > range.end - begin) return false;
  const auto offset = [&](Addr address) { return static_cast<std::uint32_t>(address - range.begin); };
  sites_.push_back({offset(begin), offset(begin + size), pad});
  return true;
}

Addr KnownJumps::pad_of(std::uint32_t offset) const noexcept {
  const auto behind = std::ranges::upper_bound(sites_, offset, {}, &Site::begin);
  return behind != sites_.begin() && offset < behind[-1].end ? behind[-1].pad : 0;
}

/// A table with a distance that leads out of the code is not that of the jump. Compilers let the cases that never occur
/// lead to its end.
bool KnownJumps::add_targets(const JumpTable& table, std::vector<std::uint32_t>& out) const {
  const std::size_t size = std::size_t{table.count} * table.entry_size;
  const std::vector<std::byte> bytes = bytes_at(code_.memory, table.at, size);
  ByteReader reader(bytes, code_.arch.big_endian, table.at);
  if (table.count == 0 || (bytes.size() != size && !table.is_open)) return false;
  const std::size_t before = out.size();
  while (!reader.at_end()) {
    const auto entry =
        table.is_signed ? static_cast<Addr>(reader.signed_of(table.entry_size)) : reader.unsigned_of(table.entry_size);
    const Addr target = table.base + (entry << table.shift);
    if (target == code_.range.end || !reader.ok()) continue;
    if (!code_.range.contains(target) && table.is_open) break;
    if (!code_.range.contains(target)) return out.resize(before), false;
    out.push_back(static_cast<std::uint32_t>(target - code_.range.begin));
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
  out.erase(std::unique(out.begin() + static_cast<std::ptrdiff_t>(before), out.end()), out.end());
  return out.size() != before;
}

}  // namespace jitunwind::check_code
