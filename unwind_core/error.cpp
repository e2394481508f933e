#include "jitunwind/unwind_core/error.h"

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

struct CodeInfo {
  const char* name;
  int unw_error;
  const char* text;
};

constexpr std::array k_codes{
#define JITUNWIND_ERROR(name, ju_status, unw_error, text) CodeInfo{#name, unw_error, text},
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

std::string Error::text() const {
  std::string text = std::string(what[0] != '\0' ? what : error_text(code)) + " (" + error_name(code);
  if (at != 0) {
    char place[32];
    std::snprintf(place, sizeof place, ", at 0x%" PRIx64, at);
    text += place;
  }
  return text + ")";
}

void stop_without_value(const char* text) noexcept {
  write_to_standard_error("jitunwind: the value of a result that has none was asked for:\n");
  write_to_standard_error(text);
  std::abort();
}

}  // namespace jitunwind
