#include "jitunwind/dyn_info/registry/environment_internal.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

constexpr std::array<std::string_view, 1> k_adapter_names{"gdb"};
struct Adapter {
  Status (*attach)() noexcept;
  const char* (*remark)() noexcept;
};
constexpr std::array<Adapter, k_adapter_names.size()> k_adapters{{{attach_gdb_in_writer, remark_on_gdb}}};

/// Writes one line with one system call.
void complain(std::string_view name, const char* what) noexcept {
  std::array<char, 256> line;
  const int size = std::snprintf(line.data(), line.size(), "jitunwind: JITUNWIND_ATTACH: %.*s: %s\n",
                                 static_cast<int>(name.size()), name.data(), what);
  if (size > 0) write_to_standard_error({line.data(), std::min(static_cast<std::size_t>(size), line.size() - 1)});
}

void attach(std::size_t number) noexcept {
  const Adapter& adapter = k_adapters[number];
  const Status attached = adapter.attach();
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
