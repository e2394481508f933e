// Copies of parts of a target's object: tables as a whole, .eh_frame entry by entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/heap_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/module.h"

namespace jitunwind {

/// Copied bytes of a target that stay. A small number is on the heap, whose pages the next target reuses; a large
/// number has a mapping of its own, which is released.
class CopiedBytes {
 public:
  CopiedBytes() noexcept = default;
  /// Makes bytes that are not initialised. Empty: there is no memory.
  static CopiedBytes room_for(std::size_t size) noexcept {
    constexpr std::size_t k_few = std::size_t{64} << 10;
    CopiedBytes room;
    if (size > k_few) {
      room.many_ = KeptBlock::whole(size);
    } else if (size != 0) {
      room.few_.reset(static_cast<std::byte*>(allocate(size)));
      room.count_ = room.few_ ? size : 0;
    }
    return room;
  }

  std::span<std::byte> bytes() const noexcept { return few_ ? std::span(few_.get(), count_) : many_.bytes(); }
  /// Precondition: there are as many. False, and nothing changes: the rest cannot be released.
  bool keep_first(std::size_t count) noexcept {
    if (!few_) return count != 0 && many_.resize(count);
    count_ = count;
    return true;
  }

 private:
  HeapArray<std::byte> few_;
  std::size_t count_ = 0;  // number of bytes on the heap
  KeptBlock many_;
};

/// Has room for all of a section, and copies requested parts, in pieces of several pages: a walk needs some entries of
/// the thousands that an object has. Used by one thread at a time.
class CopiedEntries {
 public:
  CopiedEntries() noexcept = default;
  ~CopiedEntries();
  CopiedEntries(const CopiedEntries&) = delete;
  CopiedEntries& operator=(const CopiedEntries&) = delete;

  /// `memory` must outlive this object. False: there is no room for the section, and there are no bytes.
  bool make(const Memory& memory, AddrRange section) noexcept;

  /// Copies the FDE at `fde` and its CIE as far as they lie in the section, and returns the CIE's address. 0: the FDE
  /// lies elsewhere. None: they cannot be read.
  std::optional<Addr> copy_fde(Addr fde, bool big_endian) noexcept;
  /// Copies a CIE as far as it lies in the section. False: it cannot be read.
  bool copy_cie(Addr cie, bool big_endian) noexcept;
  /// The section. Parts that were not copied hold no valid entry.
  SectionBytes section() const noexcept;
  bool contains(Addr at) const noexcept { return section_.contains(at); }

 private:
  static constexpr std::size_t k_at_once = 4;  // pages; other entries are near, but a CIE is alone

  bool copy(AddrRange part, std::size_t most) noexcept;
  bool copy_page(std::size_t number, std::size_t most, AddrRange needed) noexcept;
  bool copy_entry(Addr at, std::size_t pages, bool big_endian, std::uint32_t& second_word) noexcept;
  std::size_t read(AddrRange part) noexcept;

  const Memory* memory_ = nullptr;
  AddrRange section_{};
  Addr begin_ = 0;  // start of the page in which the section begins
  Block bytes_;
  std::vector<bool> is_there_;    // by page
  std::vector<bool> is_written_;  // by page: may have bytes other than zeros
};

}  // namespace jitunwind
