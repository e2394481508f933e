// The call frame information that one call of the __register_frame family speaks of, entry by entry, and what of it is
// believed.
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

/// What pointers of the entries may be relative to (__register_frame_info_bases). 0: not told.
struct FrameBases {
  Addr text = 0;
  Addr data = 0;
};

/// Such a section is not told of and not taken back (libgcc, and crt files of which the section was dropped). The
/// caller vouches for its first word.
bool is_empty_section(const void* begin) noexcept;

/// Bytes that the caller vouches for as far as the page where they begin ends, as libgcc believes all of them; further
/// pages are proven readable first.
class ToldBytes final : public CfiBytes {
 public:
  explicit ToldBytes(Addr begin) noexcept;

 private:
  Result<std::span<const std::byte>> view_elsewhere(Addr at, std::uint64_t size) noexcept override;

  MemoryWindow window_;
};

/// Two contracts share one name. libgcc takes a section, which begins with a CIE and ends with a length of zero; LLVM's
/// libunwind takes one FDE. So an argument that begins with a CIE is a section, and one that begins with an FDE is that
/// FDE alone. Linear in the bytes.
class FrameReader {
 public:
  FrameReader(Addr begin, const FrameBases& bases) noexcept;

  /// As FdeScan::next(). FDEs for no code, which linkers leave behind, are passed over.
  Result<bool> next(Fde& out) noexcept;
  /// Why the FDE that was read last cannot be read again by who does not know the bases; nothing: it can. A registered
  /// procedure has the base of its data, and none of text.
  std::optional<Error> forbids_reading_again(const Fde& fde) noexcept;
  bool at_end() const noexcept { return ended_ || scan_.at_end(); }

 private:
  Result<bool> next_entry(Fde& out) noexcept;

  const Addr begin_;
  const CfiContext context_;
  ToldBytes bytes_;
  FdeScan scan_;
  bool is_single_ = false;
  bool ended_ = false;
};

/// Why the claim of the FDE cannot be that of a procedure; nothing: it can. Some JITs have one FDE for a whole area, by
/// which exceptions are caught before they reach code that cannot be unwound. It says nothing true of any frame.
std::optional<Error> disbelief(const Fde& fde) noexcept;

}  // namespace jitunwind
