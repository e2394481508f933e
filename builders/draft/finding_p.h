// Findings of builders, in the common form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "jitunwind/dyn_info/directives/directives.h"

namespace jitunwind {

/// "push({0, 1}, rbx): E_REG: reason". `offset` counts from the start of the code; an offset from its end is recorded
/// as none.
inline Finding finding_of(const std::string& place, ErrorCode code, const std::string& reason,
                          std::int64_t offset = -1) {
  Finding finding;
  finding.code = code;
  finding.offset = std::max(offset, std::int64_t{-1});
  finding.message = place + ": " + finding_name(code) + ": " + reason;
  return finding;
}

}  // namespace jitunwind
