// Registered procedures and the unwinder of the C++ run-time: throw, backtrace(), pthread_cancel, std::terminate pass
// through them. This needs no call. The functions here report whether and how it works in this process, which depends
// on how it was linked. docs/exceptions.md.
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The path by which the unwinder of the C++ run-time finds registered procedures.
enum class SystemUnwinderPath : std::uint8_t {
  none,                 ///< it does not find them, and stops there
  interposed,           ///< it calls this library's _Unwind_Find_FDE
  registered_sections,  ///< __register_frame, a section for the procedures of each 64 KiB of code: libgcc 12
  registered_fdes,      ///< __register_frame, an FDE per procedure: LLVM's libunwind, libgcc 13 and newer
  own_runtime,          ///< it is libjitunwind-eh, which looks them up itself
  jump_slot,            ///< the jump slot of its call leads here instead of to its own function
};

/// The path of this process's unwinder to registered procedures, and its failures.
struct SystemUnwinderStatus {
  SystemUnwinderPath path = SystemUnwinderPath::none;
  const char* why = "";   ///< attempts and their results; static storage
  bool has_next = false;  ///< another definition serves code that is not registered; else static tables do
  /// Numbers of copies of libgcc_s in the process: copies whose jump slots lead here, and copies that do not reach this
  /// library, because they have no slot or it cannot be written.
  std::uint32_t slots = 0;
  std::uint32_t unreached = 0;
  const char* why_unreached = "";  ///< reason for one of these; static storage
  std::uint64_t refused = 0;       ///< failed lookups of registered procedures
  Error latest_refusal{};          ///< its reason, `at` is the pc; unspecified if there was none
};

/// Looks a private address up through the unwinder, and records the definitions it calls. The call also detects a
/// run-time library that was loaded late. Thread-safe; not signal-safe.
SystemUnwinderStatus system_unwinder_status() noexcept;

/// "interposed". Never null. Signal-safe.
const char* path_name(SystemUnwinderPath path) noexcept;

/// The frame at which an exception would stop.
struct StoppedAt {
  enum class Kind : std::uint8_t {
    nowhere,       ///< the unwinder knows every frame, and no frame catches
    unknown_code,  ///< nothing describes the code: its procedure was cancelled, or never registered
    refused,       ///< a registered procedure that the unwinder does not or cannot know: `reason`
    broken,        ///< the caller of this frame is unknown: `reason`
    /// The unwinder knows every frame; this is the first one with the personality routine of another language than C
    /// and C++, which may have ended the search.
    other_language,
  };
  Kind kind = Kind::nowhere;
  std::uint32_t frame = 0;  ///< 0 is the caller's
  std::uint64_t pc = 0;
  Error reason{};
  std::uint64_t routine = 0;  ///< address of the routine if the kind is `other_language`
  /// One line that names the frame. Allocates.
  std::string text() const;
};

/// The first frame, from the caller's up, that the unwinder of the C++ run-time does not know. Terminate handlers may
/// call it, because the stack is still that of the throw. No allocation; signal-safe as far as the unwinder is.
StoppedAt why_stopped() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
