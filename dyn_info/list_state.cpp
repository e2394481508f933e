#include "jitunwind/dyn_info/list_state_p.h"

#include <array>

#include "jitunwind/dyn_info/list_changes_p.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {

/// Reads version, generation, first: docs/registry.md "Finding the list".
Result<ListState> read_list_state(Addr head, const Memory& memory, const Arch& arch, MemoryWindow& window) noexcept {
  constexpr std::uint32_t k_newest_version = 1;  // nongnu's libunwind leaves 0
  std::array<std::byte, 16> bytes;
  const auto used = std::span(bytes).first(8u + arch.word_size);
  if (memory.read(head, used, window) != used.size()) return unreadable(window, head, "list of procedures");
  ByteReader reader(used, arch.big_endian, head);
  if (reader.u32() > k_newest_version) return Error{ErrorCode::unsupported_version, head, "list of procedures"};
  ListState state;
  state.generation = reader.u32();
  state.first = reader.unsigned_of(arch.word_size);
  return state;
}

std::optional<std::uint64_t> count_changes(const ListHead::Changes& where, const Memory& memory, const Arch& arch,
                                           MemoryWindow& window) noexcept {
  std::array<std::byte, 8> bytes;
  if (where.at == 0 || memory.read(where.at, bytes, window) != bytes.size()) return std::nullopt;
  return ByteReader(bytes, arch.big_endian, where.at).u64();
}

/// Reads the ListChanges of the target.
std::optional<std::vector<ListIndex::Change>> read_changes(const ListHead::Changes& where, std::uint64_t first,
                                                           const Memory& memory, const Arch& arch,
                                                           MemoryWindow& window) {
  constexpr std::size_t k_size = sizeof(ListChanges::Change);
  const auto count = count_changes(where, memory, arch, window);
  if (!count || *count - first > where.kept || where.kept > ListChanges::k_kept) return std::nullopt;
  std::array<std::byte, k_size * ListChanges::k_kept> room;
  const auto bytes = std::span(room).first(k_size * where.kept);
  if (memory.read(where.at + sizeof(ListChanges::count), bytes, window) != bytes.size()) return std::nullopt;
  std::vector<ListIndex::Change> changes;
  for (; first != *count; ++first) {
    const std::size_t place = k_size * static_cast<std::size_t>(first % where.kept);
    ByteReader reader(bytes.subspan(place, k_size), arch.big_endian, where.at + place);
    const Addr descriptor = reader.u64(), begin = reader.u64(), end = reader.u64();
    changes.push_back({{{begin, end}, descriptor & ~Addr{1}}, descriptor % 2 == 0});
  }
  return changes;
}

}  // namespace jitunwind
