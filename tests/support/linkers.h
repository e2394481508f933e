// Libraries that tests open are linked by each linker that is installed; their names tell the linker.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

namespace jitunwind::test {

#ifdef JITUNWIND_HAS_GOLD
inline constexpr bool k_has_gold = true;
#else
inline constexpr bool k_has_gold = false;
#endif
#ifdef JITUNWIND_HAS_LLD
inline constexpr bool k_has_lld = true;
#else
inline constexpr bool k_has_lld = false;
#endif

/// Returns whether the linker of a library such as "plugin_gold" or "lld_lazy" was found. Other libraries are linked by
/// bfd.
inline bool is_linked(std::string_view name) {
  if (name.find("gold") != std::string_view::npos) return k_has_gold;
  return name.find("lld") == std::string_view::npos || k_has_lld;
}

inline std::vector<const char*> linked(std::initializer_list<const char*> names) {
  std::vector<const char*> found;
  for (const char* name : names)
    if (is_linked(name)) found.push_back(name);
  return found;
}

}  // namespace jitunwind::test
