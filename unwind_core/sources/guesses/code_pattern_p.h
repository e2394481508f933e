// Known machine code at an address, and the question whether a number is a return address.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/address_space.h"

namespace jitunwind {

/// The first pattern that the code around `pc` matches, `pc` standing at the pattern's offset; null when there is none.
/// `cut_off`, if given and there is none: where memory ends in what is a pattern as far as it can be read, the byte at
/// the pc included; nothing where it does not.
const CodePattern* find_pattern(std::span<const CodePattern> patterns, Addr pc, const Memory& memory,
                                MemoryWindow& window, std::optional<Addr>* cut_off = nullptr) noexcept;

/// Where the code of a matching pattern lies.
inline AddrRange range_of(const CodePattern& pattern, Addr pc) noexcept {
  const Addr begin = pc - pattern.pc_offset;
  return {begin, begin + pattern.bytes.size()};
}

/// What is known of the procedure at `pc`, where the code matched a pattern: where it lies. False where it did not.
inline bool procedure_of(const CodePattern* matching, Addr pc, RowOrigin origin, ProcedureInfo& out) noexcept {
  if (!matching) return false;
  out = {};
  out.range = range_of(*matching, pc);
  out.origin = origin;
  return true;
}

/// The bytes in front of a return address, as many as calls have.
class CodeBefore {
 public:
  static constexpr std::size_t k_size = 8;

  /// Precondition: address != 0.
  CodeBefore(Addr address, const Memory& memory, MemoryWindow& window) noexcept;
  /// 0: they cannot be read.
  std::size_t size() const noexcept { return size_; }
  /// Precondition: count <= size().
  std::span<const std::byte> last(std::size_t count) const noexcept { return std::span(bytes_).last(count); }
  bool ends_with(const CodePattern& pattern) const noexcept;
  /// The call that they end with; null: with none.
  const CodePattern* find_call(const Arch& arch) const noexcept;
  bool is_call(const Arch& arch) const noexcept { return find_call(arch) != nullptr; }

 private:
  std::array<std::byte, k_size> bytes_;
  std::size_t size_ = 0;
};

/// The code around `at`, as much of it as one question tells: an executable segment of a module, or a page that may be
/// executed. Where the memory does not tell, anything readable is taken for code made at run time. Empty: `at` is no
/// code.
AddrRange code_around(const AddressSpace& space, MemoryWindow& window, Addr at) noexcept;
inline bool is_code(const AddressSpace& space, MemoryWindow& window, Addr at) noexcept {
  return code_around(space, window, at).contains(at);
}

/// Whether a call could have pushed `address`: the instruction before it is a call, and it is code. Of random numbers
/// that happen to be addresses of code, about one in 150 passes.
bool is_after_call(const AddressSpace& space, MemoryWindow& window, Addr address) noexcept;

}  // namespace jitunwind
