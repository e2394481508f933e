// The list of registered procedures in a target's memory, walked from its newest procedure on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/target_heads_internal.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {

/// The target's memory with a count of its reads for one question.
class CountedMemory final : public Memory {
 public:
  explicit CountedMemory(const Memory& memory) noexcept : memory_(memory) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    ++reads_;
    return memory_.read(at, into, window);
  }
  const std::byte* view(Addr at, std::size_t size, MemoryWindow& window) const noexcept override {
    return memory_.view(at, size, window);
  }
  bool too_many() const noexcept { return reads_ >= k_most_reads; }

 private:
  static constexpr std::uint32_t k_most_reads = 1u << 20;  // in all attempts; one for each procedure
  const Memory& memory_;
  mutable std::uint64_t reads_ = 0;
};

/// The members of a descriptor by which a list is walked.
struct ListMember {
  Addr next = 0;
  AddrRange code{};
};

/// Reads the first four words of a descriptor.
inline Result<ListMember> member_at(Addr at, const Lookup& lookup, const Memory& memory) noexcept {
  const Arch& arch = lookup.space.arch;
  std::array<std::byte, 4 * 8> bytes;
  const auto used = std::span(bytes).first(4 * arch.word_size);
  if (memory.read(at, used, lookup.window) != used.size())
    return unreadable(lookup.window, at, "descriptor of a procedure");
  ByteReader reader(used, arch.big_endian, at);
  ListMember member;
  member.next = reader.unsigned_of(arch.word_size);
  reader.skip(arch.word_size);  // prev
  member.code.begin = reader.unsigned_of(arch.word_size);
  member.code.end = reader.unsigned_of(arch.word_size);
  return member;
}

/// Calls `visit(where, code)` for the procedures of a list, the newest first, until it returns false. Throws the
/// exceptions of `visit`.
template <class Visit>
Status for_each_procedure(Addr first, const Lookup& lookup, const CountedMemory& memory, Visit visit) {
  const Arch& arch = lookup.space.arch;
  Addr marked = 0;  // Brent's cycle detection
  std::uint32_t next_mark = 1;
  for (std::uint32_t i = 0; first != 0; ++i) {
    if (first == marked || memory.too_many()) return Error{ErrorCode::e_cycle, first, "list of procedures"};
    if (i == next_mark) {
      marked = first;
      next_mark *= 2;
    }
    const Result<ListMember> member = member_at(first, lookup, memory);
    if (!member) return member.error();
    if (!matches_nothing(member->code, arch.unit) && !visit(first, member->code)) break;
    first = member->next;
  }
  return Done{};
}

/// A list at one moment, of which an index is made by walking it.
struct WalkedList {
  Addr head = 0;
  ListHead::Changes changes{};
  ListState state{};
  const Lookup& lookup;
  const CountedMemory& memory;
};

}  // namespace jitunwind
