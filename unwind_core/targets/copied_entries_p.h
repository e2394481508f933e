// The .eh_frame of an object of a target, copied entry by entry.
#pragma once

#include <vector>

#include "jitunwind/unwind_core/image/mapped_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/module.h"

namespace jitunwind {

/// Has room for all of a section, and copies what is asked for, in pieces of several pages: a walk needs some entries
/// of the thousands that an object has. Used by one thread at a time.
class CopiedEntries {
 public:
  /// `memory` must outlive this. False: there is no room for it, and there are no bytes.
  bool make(const Memory& memory, AddrRange section) noexcept;

  /// Copies the FDE at `fde` and its CIE as far as they lie in the section. False: they cannot be read.
  bool copy_fde(Addr fde, bool big_endian) noexcept;
  /// The section. What was not copied is no entry's bytes.
  SectionBytes section() const noexcept;

 private:
  static constexpr std::size_t k_at_once = 4;  // pages; other entries are near, but a CIE stands alone

  bool copy(AddrRange part, std::size_t most) noexcept;
  bool copy_page(std::size_t number, std::size_t most, AddrRange needed) noexcept;
  bool copy_entry(Addr at, std::size_t pages, bool big_endian, std::uint32_t& second_word) noexcept;
  std::size_t read(AddrRange part) noexcept;

  const Memory* memory_ = nullptr;
  AddrRange section_{};
  Addr begin_ = 0;  // of the page in which it begins
  Block bytes_;
  std::vector<bool> is_there_;  // by page
};

}  // namespace jitunwind
