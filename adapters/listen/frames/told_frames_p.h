// Code that JITs have announced by the __register_frame family: each call's procedures, by the call's argument, until
// it is taken back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/adapters/listen/frames/frame_reader_p.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

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
