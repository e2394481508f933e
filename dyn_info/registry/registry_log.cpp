// Counts and logs changes of the registry.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

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

Status look_at_new(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept {
  for (const unw_dyn_info_t* di : batch)
    if (logs(LogTopic::registry) && NodePool::can_bind(di)) {
      log_descriptor(*di);
      log_overlap(*di);
      log_lost_personality(*di);
    }
  return checks_registrations() ? functions_above()->check(batch, behind) : Done{};
}

void log_to_be_taken_out(const char* how, std::span<unw_dyn_info_t* const> batch) noexcept {
  if (!logs(LogTopic::registry)) return;
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
