#include "jitunwind/unwind_core/error.h"

#include <array>
#include <cstddef>

namespace jitunwind {
namespace {

struct CodeInfo {
  const char* name;
  int unw_error;
  const char* text;
};

constexpr std::array k_codes{
#define JITUNWIND_ERROR(name, unw_error, text) CodeInfo{#name, unw_error, text},
#include "jitunwind/unwind_core/error_codes.def"
#undef JITUNWIND_ERROR
};

const CodeInfo& info(ErrorCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);
  return index < k_codes.size() ? k_codes[index] : k_codes[0];
}

}  // namespace

const char* error_text(ErrorCode code) noexcept { return info(code).text; }
const char* error_name(ErrorCode code) noexcept { return info(code).name; }
int unw_error(ErrorCode code) noexcept { return info(code).unw_error; }

}  // namespace jitunwind
