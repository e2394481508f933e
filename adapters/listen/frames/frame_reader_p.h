// The call frame information of one call of the __register_frame family, entry by entry, and the checks before it is
// believed.
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

/// Bases of the entries' relative pointers (__register_frame_info_bases). 0: not given.
struct FrameBases {
  Addr text = 0;
  Addr data = 0;
};

/// Such a section is neither announced nor taken back (libgcc, and crt files whose section was dropped). The caller
/// guarantees that its first word is readable.
bool is_empty_section(const void* begin) noexcept;

/// Bytes that the caller guarantees to be readable up to the end of their first page; libgcc trusts all of them.
/// Further pages are proven readable first.
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

  /// Like FdeScan::next(). FDEs without code, which linkers leave behind, are skipped.
  Result<bool> next(Fde& out) noexcept;
  /// Returns why the last FDE cannot be read again by a reader that does not know the bases; empty: it can. A
  /// registered procedure has the base of data, but not that of text.
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

/// Reads nearly every call: a section of one FDE in the form that compilers write, all on one page. False: FrameReader
/// has to.
bool read_usual_section(Addr begin, Fde& out) noexcept;

/// Returns why the range of the FDE cannot be a procedure; empty: it can. Some JITs have one FDE for a whole area,
/// which catches exceptions before they reach code that cannot be unwound. Its rows are wrong for every frame.
std::optional<Error> disbelief(const Fde& fde) noexcept;

}  // namespace jitunwind
