#include "jitunwind/dyn_info/registry/observers_internal.h"

#include <unistd.h>

#include <array>
#include <string_view>

#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

constexpr std::array<std::string_view, 2> k_adapter_names{"gdb", "perf"};
const char* no_remark() noexcept { return nullptr; }
struct Adapter {
  Status (*attach)() noexcept;
  const char* (*remark)() noexcept;
};
constexpr std::array<Adapter, k_adapter_names.size()> k_adapters{
    {{attach_gdb_in_writer, remark_on_gdb}, {attach_perf_in_writer, no_remark}}};

void complain(std::string_view name, const char* what) noexcept {
  Line line;
  line.text("jitunwind: JITUNWIND_ATTACH: ").text(name).text(": ").text(what).write_to(STDERR_FILENO);
}

void attach(std::size_t number) noexcept {
  const Adapter& adapter = k_adapters[number];
  const Status attached =
      is_above(adapter.attach) ? adapter.attach() : Error{ErrorCode::invalid_argument, 0, k_not_above};
  if (const char* const said = attached ? adapter.remark() : attached.error().what)
    complain(k_adapter_names[number], said);
}

}  // namespace

void attach_by_environment() noexcept {
  const std::uint32_t asked = environment_words("JITUNWIND_ATTACH", k_adapter_names);
  for (std::size_t i = 0; i < k_adapters.size(); ++i)
    if ((asked >> i & 1) != 0) attach(i);
}

}  // namespace jitunwind
