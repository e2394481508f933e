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

[[gnu::cold]] void complain(std::string_view what, std::string_view why) noexcept {
  Line line;
  line.text("jitunwind: ").text(what).text(": ").foreign(why).write_to(STDERR_FILENO);
}

const char* attach(const FunctionsAbove* above, std::size_t adapter) noexcept {
  if (above == nullptr) return k_not_above;
  const bool is_gdb = adapter == 0;
  const Status attached = is_gdb ? above->attach_gdb() : above->attach_perf();
  return !attached ? attached.error().what : is_gdb ? above->remark_on_gdb() : nullptr;
}

}  // namespace

#ifdef JITUNWIND_CORE
namespace {

#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlerror
constinit const FunctionsAbove* functions_opened = nullptr;

/// The library of the same folder, by this library's run path, or of those that the dynamic linker searches. A static
/// program has no dlopen().
[[gnu::cold]] void open_above() noexcept {
  if (is_above(jitunwind_functions_above) || &dlopen == nullptr || &dlsym == nullptr || &dlerror == nullptr) return;
  void* const library = ::dlopen("libjitunwind.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library ? ::dlsym(library, "jitunwind_functions_above") : nullptr;
  if (symbol == nullptr) return complain("libjitunwind cannot be opened", ::dlerror());
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
void open_above() noexcept {}
}  // namespace

const FunctionsAbove* functions_above() noexcept { return jitunwind_functions_above(); }
#endif

namespace {

/// Runs before threads exist that might change the environment, or load other libraries.
[[gnu::constructor]] void read_environment() {
  constexpr std::array<std::string_view, 2> k_words{"warn", "refuse"};
  const std::uint32_t words = environment_words("JITUNWIND_CHECK", k_words);
  if (words != 0 || ::secure_getenv("JITUNWIND_ATTACH") != nullptr) open_above();
  if (words == 0) return;
  if (functions_above() == nullptr) return complain("JITUNWIND_CHECK: nothing is checked", k_not_above);
  if ((words & 1) != 0) add_to_log_words(k_check_warns);
  if ((words & 2) != 0) add_to_log_words(k_check_refuses);
}

}  // namespace

void attach_by_environment() noexcept {
  const std::uint32_t asked = environment_words("JITUNWIND_ATTACH", k_adapter_names);
  for (std::size_t i = 0; i < k_adapter_names.size(); ++i) {
    const char* const said = (asked >> i & 1) != 0 ? attach(functions_above(), i) : nullptr;
    if (said == nullptr) continue;
    Line line;
    line.text("jitunwind: JITUNWIND_ATTACH: ").text(k_adapter_names[i]).text(": ").text(said).write_to(STDERR_FILENO);
  }
}

}  // namespace jitunwind
