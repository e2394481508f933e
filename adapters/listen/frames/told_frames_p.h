// Code that JITs have announced by the __register_frame family: each call's procedures, by the call's argument, until
// it is taken back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

// The call frame information of one call, entry by entry, and the checks before it is believed (register_frame.cpp).

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

/// The definition that answers a call.
enum class Answer : std::uint8_t {
  ours,
  next,  ///< the next definition, as if this library were not there
};

/// The sections of one call: one, or all of a list that ends with a null (__register_frame_table).
struct ToldSections {
  const void* begin;        ///< the argument of the call, by which it is taken back
  const void* const* list;  ///< null: `begin` is the only one
  void* object;             ///< memory of the caller, which gets it back
  FrameBases bases;
};

/// Registers the procedures of the sections. Entries that cannot be read are left out; entries that are not believed
/// are left out and passed on to the next definition as well. Linear in the bytes; O(1) for one FDE, at any number of
/// them. Thread-safe, not signal-safe; no malloc.
Answer note_told(const ToldSections& sections) noexcept;

/// Passes the call on to the next definition, and the call that takes it back as well.
Answer note_handed_on(const void* begin) noexcept;
/// There is no next definition: only this library knows the latest call with `begin`.
void note_nobody_told(const void* begin) noexcept;

struct TakenBack {
  Answer answer = Answer::ours;
  void* object = nullptr;  ///< as it was given
};
/// Takes back the latest call with `begin`; the time depends only on its procedures. After the return nothing reads
/// them any more. Does nothing without such a call. Thread-safe, not signal-safe; no malloc.
TakenBack take_back(const void* begin) noexcept;

/// Checks the next few calls, and cancels their procedures if the start of their code is not mapped any more. The calls
/// can be taken back as before. Thread-safe, not signal-safe; no malloc.
void forget_unmapped_frames(std::size_t most) noexcept;
/// Runs in a forked child, which lacks the thread that was forgetting. The caller holds told_lock.
void forget_nothing_in_child() noexcept;

}  // namespace jitunwind
