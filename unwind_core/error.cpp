#include "jitunwind/unwind_core/error.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// Has no pointers, which the linker would have to relocate at the start of each program.
struct CodeInfo {
  char name[20];
  std::int32_t unw_error;
  char text[80];
};

constexpr CodeInfo k_codes[]{
#define JITUNWIND_ERROR(name, ju_status, unw_error, text) {#name, unw_error, text},
#include "jitunwind/unwind_core/error_codes.def"
#undef JITUNWIND_ERROR
};

const CodeInfo& info(ErrorCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);
  return index < std::size(k_codes) ? k_codes[index] : k_codes[0];
}

}  // namespace

const char* error_text(ErrorCode code) noexcept { return info(code).text; }
const char* error_name(ErrorCode code) noexcept { return info(code).name; }
int unw_error(ErrorCode code) noexcept { return info(code).unw_error; }

void stop_without_value(const char* text) noexcept {
  write_to_standard_error("jitunwind: the value of a result that has none was asked for:\n");
  write_to_standard_error(text);
  std::abort();
}

}  // namespace jitunwind

/// cmake/core_references.h gives it another name. A wrong position is a mistake of this library.
void std::__throw_out_of_range_fmt(const char* text, ...) {
  jitunwind::write_to_standard_error("jitunwind: a position behind the end of a string: ");
  jitunwind::write_to_standard_error(text);
  std::abort();
}
