// JITUNWIND_ATTACH and JITUNWIND_CHECK. libjitunwind does what they ask for. A core without it opens it.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

constexpr std::array<std::string_view, 2> k_adapter_names{"gdb", "perf"};

/// `why` null: there is nothing to complain of.
[[gnu::cold, gnu::noinline]] void complain(const char* what, const char* why) noexcept {
  if (why == nullptr) return;
  Line line;
  line.text("jitunwind: ").text(what).text(": ").text(why).write_to(STDERR_FILENO);
}

const char* why_not(const Status& attached) noexcept { return attached ? nullptr : attached.error().what; }

}  // namespace

#ifdef JITUNWIND_CORE
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlerror

[[gnu::cold]] void* open_above(const char* function) noexcept {
  if (&dlopen == nullptr) return nullptr;
  void* const library = ::dlopen("libjitunwind.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library ? ::dlsym(library, function) : nullptr;
  if (symbol == nullptr) complain("libjitunwind is of no use", ::dlerror());
  return symbol;
}

namespace {

constinit const FunctionsAbove* functions_opened = nullptr;

[[gnu::cold, gnu::noinline]] void open_functions_above() noexcept {
  if (is_above(jitunwind_functions_above)) return;
  void* const symbol = open_above("jitunwind_functions_above");
  if (symbol == nullptr) return;
  const FunctionsAbove* const opened = reinterpret_cast<decltype(&jitunwind_functions_above)>(symbol)();
  if (opened->observers != &observers) return complain("libjitunwind is of no use", "it has another libjitunwind-core");
  functions_opened = opened;
}

}  // namespace

const FunctionsAbove* functions_above() noexcept {
  return is_above(jitunwind_functions_above) ? jitunwind_functions_above() : functions_opened;
}
#else
namespace {
void open_functions_above() noexcept {}
}  // namespace

const FunctionsAbove* functions_above() noexcept { return jitunwind_functions_above(); }
#endif

namespace {

/// Runs before threads exist that might change the environment, or load other libraries.
[[gnu::constructor, gnu::cold]] void read_environment() {
  constexpr std::array<std::string_view, 2> k_words{"warn", "refuse"};
  const std::uint32_t words = environment_words("JITUNWIND_CHECK", k_words);
  if (words != 0 || ::secure_getenv("JITUNWIND_ATTACH") != nullptr) open_functions_above();
  if (words == 0) return;
  if (functions_above() == nullptr) return complain("JITUNWIND_CHECK: nothing is checked", k_not_above);
  static_assert(k_check_refuses == 2 * k_check_warns);
  add_to_log_words(words * k_check_warns);
}

}  // namespace

[[gnu::cold]] void attach_by_environment() noexcept {
  const std::uint32_t asked = environment_words("JITUNWIND_ATTACH", k_adapter_names);
  if (asked == 0) return;
  const FunctionsAbove* const above = functions_above();
  if (above == nullptr) return complain("JITUNWIND_ATTACH", k_not_above);
  if ((asked & 1) != 0) {
    const char* const why = why_not(above->attach_gdb());
    complain("JITUNWIND_ATTACH: gdb", why != nullptr ? why : above->remark_on_gdb());
  }
  if ((asked & 2) != 0) complain("JITUNWIND_ATTACH: perf", why_not(above->attach_perf()));
}

}  // namespace jitunwind
