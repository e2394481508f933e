#include "jitunwind/sdk/dialects/gdb_list.h"

#include <link.h>

#include <array>
#include <span>

#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"

// A static program has none.
#pragma weak _DYNAMIC

namespace jitunwind {
namespace {

constexpr std::uint32_t k_list_version = 1;

/// The bytes of a structure in the target.
template <std::size_t k_most>
class Structure {
 public:
  Structure(const Memory& memory, const Arch& arch, Addr at, std::size_t size) noexcept
      : big_endian_(arch.big_endian), used_(std::span(bytes_).first(size)), at_(at) {
    is_there_ = memory.read(at, used_, window_) == size;
  }
  bool is_there() const noexcept { return is_there_; }
  Error missing(const char* what) const noexcept { return unreadable(window_, at_, what); }
  ByteReader reader() const noexcept { return {used_, big_endian_, at_}; }

 private:
  bool big_endian_;
  bool is_there_ = false;
  std::array<std::byte, k_most> bytes_{};
  std::span<std::byte> used_;
  Addr at_;
  MemoryWindow window_;
};

struct Link {
  Addr next = 0;
  GdbListEntry entry{};
};

/// Reads a jit_code_entry: next, previous, file, and the file's size, which is aligned as the psABI demands.
Result<Link> read_link(Addr at, const Memory& memory, const Arch& arch) noexcept {
  const std::size_t word = arch.word_size;
  const std::size_t alignment = alignment_of_8_bytes(arch),
                    size_at = (3 * word + alignment - 1) / alignment * alignment;
  const Structure<32> structure(memory, arch, at, size_at + 8);
  if (!structure.is_there()) return structure.missing("entry of GDB's list");
  ByteReader reader = structure.reader();
  Link link;
  link.entry.entry = at;
  link.next = reader.unsigned_of(word);
  reader.skip(word);
  link.entry.file = reader.unsigned_of(word);
  reader.seek(size_at);
  link.entry.size = reader.u64();
  return link;
}

}  // namespace

Addr object_of_own_gdb_list() noexcept { return reinterpret_cast<std::uintptr_t>(&_DYNAMIC); }

Result<GdbList> read_gdb_list(Addr descriptor, const Memory& memory, const Arch& arch) {
  const std::size_t word = arch.word_size;
  const Structure<24> head(memory, arch, descriptor, 8 + 2 * word);
  if (!head.is_there()) return head.missing("descriptor of GDB's list");
  ByteReader reader = head.reader();
  if (reader.u32() != k_list_version)
    return Error{ErrorCode::unsupported_version, descriptor, "descriptor of GDB's list"};
  reader.skip(4 + word);
  GdbList list;
  Addr marked = 0;  // Brent's cycle detection
  std::size_t steps = 0, next_mark = 1;
  for (Addr at = reader.unsigned_of(word); at != 0; ++steps) {
    if (at == marked || steps == k_most_gdb_entries) {
      list.broken = Error{ErrorCode::e_cycle, at, "entries of GDB's list"};
      break;
    }
    if (steps == next_mark) {
      marked = at;
      next_mark *= 2;
    }
    const Result<Link> link = read_link(at, memory, arch);
    if (!link) {
      list.broken = link.error();
      break;
    }
    if (link->entry.file != 0 && link->entry.size != 0) list.entries.push_back(link->entry);
    at = link->next;
  }
  return list;
}

}  // namespace jitunwind
