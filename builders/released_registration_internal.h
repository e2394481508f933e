// Results of Registration::release() as handles for languages without types. A handle is looked up before use, so that
// any readable memory may be passed: memory that is no registration stays unchanged. Marks that an adapter has made
// directives of are registered here, too.
#pragma once

#include <cstdint>
#include <span>

#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"

namespace jitunwind {

/// Whether the handle comes from release() and is still registered. Signal-safe.
inline bool is_released_registration(const unw_dyn_info_t* released) noexcept {
  return is_registered(released, Behind::user_word);
}

/// Cancels as Registration::cancel(). Error not_registered: the handle is no registration, or no longer one, and its
/// memory is not freed.
Status cancel_released(unw_dyn_info_t* released) noexcept;

/// Directives of one region from the procedure's begin, as MarkRecorder::settle() leaves them: in the order of their
/// places, which are in the code. JITUNWIND_CHECK does not ask the builder about them.
struct ReadyDirectives {
  std::span<const unw_dyn_op_t> ops;
  std::int32_t insn_count = 0;  ///< of the region, up to the last of them
  Addr personality = 0;
};
/// The result is as from release(). Errors: register_code() of marks.
Result<unw_dyn_info_t*> register_released(const ReadyDirectives& directives, const Code& code) noexcept;
/// register_code(), and release().
Result<unw_dyn_info_t*> register_released(const Description& description, const Code& code) noexcept;

}  // namespace jitunwind
