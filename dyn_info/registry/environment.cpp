// JITUNWIND_ATTACH, JITUNWIND_CHECK and JITUNWIND_LOG. libjitunwind does what they ask for, and libjitunwind-gdb. A
// core without them opens the one that is asked for.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/trace/counters.h"
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

}  // namespace

#ifdef JITUNWIND_CORE
#pragma weak dlopen
#pragma weak dlerror

namespace {

constinit std::atomic<const FunctionsAbove*> functions_of_later_library{nullptr};

/// Opens the library of the same folder, by the core's run path, or of those that the dynamic linker searches. A static
/// program has no dlopen().
[[gnu::cold, gnu::noinline]] void open_functions_above() noexcept {
  if (functions_above() != nullptr || &dlopen == nullptr) return;
  if (::dlopen("libjitunwind.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr)
    return complain("libjitunwind is of no use", ::dlerror());
  if (functions_above() == nullptr) complain("libjitunwind is of no use", "it has another libjitunwind-core");
}

}  // namespace

void library_comes(const FunctionsAbove& functions) noexcept { functions_of_later_library = &functions; }

const FunctionsAbove* functions_above() noexcept {
  return is_above(jitunwind_functions_above) ? jitunwind_functions_above() : functions_of_later_library.load();
}
#else
void library_comes(const FunctionsAbove&) noexcept {}
static void open_functions_above() noexcept {}

const FunctionsAbove* functions_above() noexcept { return jitunwind_functions_above(); }
#endif

namespace {

/// Runs before threads exist that might change the environment, or load other libraries.
[[gnu::constructor, gnu::cold]] void read_environment() {
  constexpr std::array<std::string_view, 2> k_words{"warn", "refuse"};
  const std::uint32_t words = environment_words("JITUNWIND_CHECK", k_words);
  const std::uint32_t asked = environment_words("JITUNWIND_ATTACH", k_adapter_names, IfUnknown::pass_by);
  if ((asked & 1) != 0) open_gdb();
  if (words != 0 || (asked & 2) != 0) open_functions_above();
  if (words == 0) return;
  if (functions_above() == nullptr) return complain("JITUNWIND_CHECK: nothing is checked", k_not_above);
  static_assert(k_check_refuses == 2 * k_check_warns);
  add_to_log_words(words * k_check_warns);
}

constinit const LocalMemory k_log_memory;

[[gnu::cold, gnu::noinline]] void log_descriptor(const unw_dyn_info_t& info) noexcept {
  LogLine line(LogTopic::registry);
  line.text("register ").range(info.start_ip, info.end_ip);
  std::array<std::byte, 200> bytes;
  MemoryWindow window;
  const Addr at = info.u.pi.name_ptr;  // the first member of every format
  const std::size_t size = at == 0 ? 0 : k_log_memory.read(at, bytes, window);
  const std::string_view name(reinterpret_cast<const char*>(bytes.data()), size);
  if (size != 0) line.text(" ").foreign(name.substr(0, name.find('\0')));
}

/// Names a live procedure with bytes of the new one's first 64 KiB. Both may be meant; mostly the old one's
/// cancellation was forgotten.
[[gnu::cold, gnu::noinline]] void log_overlap(const unw_dyn_info_t& info) noexcept {
  constexpr Addr k_step = 16, k_most = Addr{1} << 16;  // code begins at multiples of 16
  for (Addr at = info.start_ip; at < info.end_ip && at - info.start_ip < k_most; at += k_step) {
    const ProcedureHold old(at);
    if (!old.info()) continue;
    LogLine line(LogTopic::registry);
    line.text("overlaps ").range(old.info()->start_ip, old.info()->end_ip).text(", which is still registered");
    return;
  }
}

[[gnu::cold, gnu::noinline]] void log_lost_personality(const unw_dyn_info_t& info) noexcept {
  if (info.format != UNW_INFO_FORMAT_DYNAMIC || info.u.pi.handler != 0 || info.start_ip >= info.end_ip) return;
  if (!has_other_personality(pointer_to(info.start_ip))) return;
  LogLine line(LogTopic::registry);
  line.text("hides the personality routine that the unwinder was told for ").hex(info.start_ip);
}

[[gnu::cold, gnu::noinline]] void log_node(const char* how, const ProcedureNode& node) noexcept {
  LogLine(LogTopic::registry)
      .text(how)
      .text(" ")
      .range(node.start.load(std::memory_order_relaxed), node.end.load(std::memory_order_relaxed));
}

[[gnu::cold, gnu::noinline]] void log_refused(const char* what, const Error& error) noexcept {
  LogLine line(LogTopic::registry);
  line.text("refused to ").text(what).text(": ").text(error_name(error.code)).text(", ").text(error.what);
  line.text(", at ").hex(error.at);
}

}  // namespace

[[gnu::cold]] void attach_by_environment() noexcept {
  const std::uint32_t asked = environment_words("JITUNWIND_ATTACH", k_adapter_names);
  if ((asked & 1) != 0) complain("JITUNWIND_ATTACH: gdb", attach_gdb_in_writer());
  if ((asked & 2) == 0) return;
  const FunctionsAbove* const above = functions_above();
  const Status attached = above != nullptr ? above->attach_perf() : Error{.what = k_not_above};
  if (!attached) complain("JITUNWIND_ATTACH: perf", attached.error().what);
}

Status look_at_new(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept {
  for (const unw_dyn_info_t* di : batch)
    if (logs(LogTopic::registry) && NodePool::can_bind(di)) {
      log_descriptor(*di);
      log_overlap(*di);
      log_lost_personality(*di);
    }
  return checks_registrations() ? functions_above()->check(batch, behind) : Done{};
}

void log_those_to_be_taken_out(const char* how, std::span<unw_dyn_info_t* const> batch) noexcept {
  for (unw_dyn_info_t* di : batch) {
    if (!NodePool::can_bind(di)) continue;
    const RegisteredNode found = registry_state.nodes.find(di);
    if (found.state.live()) log_node(how, registry_state.nodes[found.node]);
  }
}

Error note_refused(const char* what, const Error& error) noexcept {
  count_event(Counter::registry_refused);
  if (logs(LogTopic::registry)) log_refused(what, error);
  return error;
}

}  // namespace jitunwind
