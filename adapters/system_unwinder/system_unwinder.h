// Registered procedures and the unwinder of the C++ run-time: throw, backtrace(), pthread_cancel, std::terminate pass
// through them. Nothing needs to be called for that; this says whether and how it works in this process, which depends
// on how it was linked. docs/exceptions.md.
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// How the unwinder of the C++ run-time learns of registered procedures.
enum class SystemUnwinderPath : std::uint8_t {
  none,                 ///< it does not: it stops at them
  interposed,           ///< it asks our _Unwind_Find_FDE
  registered_sections,  ///< __register_frame, a section for the procedures of each 64 KiB of code: libgcc 12
  registered_fdes,      ///< __register_frame, an FDE a procedure: LLVM's libunwind, libgcc 13 and newer
  own_runtime,          ///< it is libjitunwind-eh, which looks them up itself
  jump_slot,            ///< it asks ours in place of its own: the jump slot of its call leads here
};

/// How the unwinder of this process comes to know what is registered, and of what it does not.
struct SystemUnwinderStatus {
  SystemUnwinderPath path = SystemUnwinderPath::none;
  const char* why = "";   ///< what was tried and how it came out; static storage
  bool has_next = false;  ///< another definition answers for code that is not registered; else static tables do
  /// Of all copies of libgcc_s in the process: those whose jump slots lead here, and those that do not ask, because
  /// they have none, or it cannot be written.
  std::uint32_t slots = 0;
  std::uint32_t unreached = 0;
  const char* why_unreached = "";  ///< of one of these; static storage
  std::uint64_t refused = 0;       ///< questions about registered procedures that could not be answered
  Error latest_refusal{};          ///< why, `at` is the pc; unspecified when there was none
};

/// Asks the unwinder about a private address, and sees who is asked in turn. Also lets a run-time library that came
/// late be noticed. Thread-safe; not signal-safe.
SystemUnwinderStatus system_unwinder_status() noexcept;

/// "interposed". Never null. Signal-safe.
const char* path_name(SystemUnwinderPath path) noexcept;

/// Where an exception would not get on.
struct StoppedAt {
  enum class Kind : std::uint8_t {
    nowhere,       ///< the unwinder knows every frame: nobody catches, or a personality routine has ended the search
    unknown_code,  ///< nothing describes the code: its procedure was cancelled, or never registered
    refused,       ///< a registered procedure, of which the unwinder was not or could not be told: `reason`
    broken,        ///< who called this frame cannot be told: `reason`
  };
  Kind kind = Kind::nowhere;
  std::uint32_t frame = 0;  ///< 0 is the caller's
  std::uint64_t pc = 0;
  Error reason{};
  /// One line that names the frame. Allocates.
  std::string text() const;
};

/// The first frame, from the caller's up, that the unwinder of the C++ run-time does not know. For terminate handlers:
/// there the stack is still the one that the exception was thrown on. No allocation; signal-safe as far as the unwinder
/// is.
StoppedAt why_stopped() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
