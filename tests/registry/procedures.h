// Descriptors for the registry's tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "jitunwind/dyn_info/registry/registry.h"

namespace registry_test {

/// A leaf without regions; `next` and `prev` hold garbage, as they may.
inline unw_dyn_info_t procedure(std::uint64_t start, std::uint64_t size) {
  unw_dyn_info_t info{};
  std::memset(static_cast<void*>(&info.next), 0xa5, sizeof info.next + sizeof info.prev);
  info.start_ip = start;
  info.end_ip = start + size;
  info.format = UNW_INFO_FORMAT_DYNAMIC;
  return info;
}

inline const unw_dyn_info_t* lookup(std::uint64_t pc) {
  const jitunwind::ProcedureHold hold(pc);
  return hold.info();
}

/// Returns the procedures that another process would find, newest first.
inline std::vector<const unw_dyn_info_t*> listed() {
  std::vector<const unw_dyn_info_t*> found;
  for (const unw_dyn_info_t* info = jitunwind::procedure_list()->first; info != nullptr; info = info->next) {
    found.push_back(info);
  }
  return found;
}

/// Returns "" for success.
template <class T>
std::string error_of(const jitunwind::Result<T>& result) {
  return result ? "" : jitunwind::error_name(result.error().code);
}

}  // namespace registry_test
