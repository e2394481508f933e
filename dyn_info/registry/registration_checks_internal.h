// JITUNWIND_CHECK: descriptions are judged before they are registered, and mistakes are told once on standard error.
// The registry asks for it, and so do builders for what only they know. The core finds what does it in libjitunwind.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "jitunwind/unwind_core/above_internal.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {

struct ToldLine;

/// The words of JITUNWIND_CHECK, beside the topics of the log.
inline constexpr std::uint32_t k_check_warns = 8, k_check_refuses = 16;
static_assert(((k_check_warns | k_check_refuses) & k_all_log_topics) == 0);

/// Each takes one load.
inline bool checks_registrations() noexcept { return (log_words() & (k_check_warns | k_check_refuses)) != 0; }
inline bool refuses_mistakes() noexcept { return (log_words() & k_check_refuses) != 0; }

/// Holds descriptions against the code. Those with Behind::nothing are validated before, as builders have done with the
/// others. Error: JITUNWIND_CHECK refuses one. check_procedure.cpp has these functions.
Status check_registrations(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept;

/// Tells a mistake, whose text has offsets in the procedure: mistakes with one text are one. Null: the name is not
/// known. `instructions`: their number, if there are several.
void tell_mistake(AddrRange code, const char* name, std::string_view mistake, std::uint64_t instructions = 1) noexcept;

/// The lines of code that is registered next, for perf's files if they are written: adapters/perf/perf.h.
[[gnu::visibility("default")]] Status tell_perf_lines(const AddrRange& code, std::span<const ToldLine> lines) noexcept;

/// Functions of libjitunwind that its lower part calls if JITUNWIND_ATTACH or JITUNWIND_CHECK asks: those of
/// observers_internal.h and of this header. Builders and jitunwind_jit.h call the last two, since libjitunwind-listen
/// has both as well.
struct FunctionsAbove {
  Status (*attach_perf)() noexcept;
  Status (*check)(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept;
  void (*tell_mistake)(AddrRange code, const char* name, std::string_view mistake, std::uint64_t instructions) noexcept;
  Status (*tell_perf_lines)(const AddrRange& code, std::span<const ToldLine> lines) noexcept;
};
extern "C" JITUNWIND_ABOVE const FunctionsAbove* jitunwind_functions_above() noexcept;
/// Those of the libjitunwind that was linked, or that was opened later on this core. Null: there is none.
[[gnu::visibility("default")]] const FunctionsAbove* functions_above() noexcept;
/// A libjitunwind calls it when it is loaded, for a core that was loaded before without it. It is never unloaded.
[[gnu::visibility("default")]] void library_comes(const FunctionsAbove& functions) noexcept;

}  // namespace jitunwind
