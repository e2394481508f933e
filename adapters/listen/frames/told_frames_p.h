// What JITs have told by __register_frame and its like: each call's procedures, by the address that it was called with,
// until it is taken back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/adapters/listen/frames/frame_reader_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// Who answers a call.
enum class Answer : std::uint8_t {
  ours,
  next,  ///< the next definition, as if this library were not there
};

/// Sections that one call speaks of: one, or all of a list that ends with a null (__register_frame_table).
struct ToldSections {
  const void* begin;        ///< what the call was given, by which it is taken back
  const void* const* list;  ///< null: `begin` is the only one
  void* object;             ///< memory of the caller's, which it gets back
  FrameBases bases;
};

/// Registers what the sections describe. What cannot be read is left out; what is not believed is left out and left to
/// the next definition as well. Linear in the bytes; O(1) for one FDE, at any number of them. Thread-safe, not
/// signal-safe; no malloc.
Answer note_told(const ToldSections& sections) noexcept;

/// Leaves the call to the next definition, and the call that takes it back as well.
Answer note_handed_on(const void* begin) noexcept;
/// There is no next definition: nobody but this library knows of the latest call with `begin`.
void note_nobody_told(const void* begin) noexcept;

struct TakenBack {
  Answer answer = Answer::ours;
  void* object = nullptr;  ///< as it was told
};
/// The latest call with `begin`, in time of its procedures alone. When it has returned nothing reads them any more.
/// Nothing where there was no such call. Thread-safe, not signal-safe; no malloc.
TakenBack take_back(const void* begin) noexcept;

/// Looks at the next few calls, and cancels what they told where the begin of it is not mapped any more. They can be
/// taken back as before. Thread-safe, not signal-safe; no malloc.
void forget_unmapped_frames(std::size_t most) noexcept;
/// In a forked child: whoever was forgetting is not in it. The caller holds told_lock.
void forget_nothing_in_child() noexcept;

}  // namespace jitunwind
