#include "jitunwind/dyn_info/registry/environment_p.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "jitunwind/unwind_core/uncancelled_p.h"

namespace jitunwind {
namespace {

struct Adapter {
  std::string_view name;
  Status (*attach)() noexcept;
  const char* (*remark)() noexcept;
};
constexpr std::array<Adapter, 1> k_adapters{{{"gdb", attach_gdb_in_writer, remark_on_gdb}}};

/// One line, in one system call.
void complain(std::string_view name, const char* what) noexcept {
  std::array<char, 256> line;
  const int size = std::snprintf(line.data(), line.size(), "jitunwind: JITUNWIND_ATTACH: %.*s: %s\n",
                                 static_cast<int>(std::min<std::size_t>(name.size(), 64)), name.data(), what);
  if (size > 0) write_to_standard_error({line.data(), std::min(static_cast<std::size_t>(size), line.size() - 1)});
}

void attach(std::string_view name) noexcept {
  const auto* const found =
      std::find_if(k_adapters.begin(), k_adapters.end(), [&](const Adapter& a) { return a.name == name; });
  if (found == k_adapters.end()) return complain(name, "no adapter has this name; there is: gdb");
  const Status attached = found->attach();
  if (const char* const said = attached ? found->remark() : attached.error().what) complain(name, said);
}

}  // namespace

void attach_by_environment() noexcept {
  const char* const value = ::secure_getenv("JITUNWIND_ATTACH");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma != 0) attach(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

}  // namespace jitunwind
