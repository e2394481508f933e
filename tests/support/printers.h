// Makes gtest print the compared values by the library's own texts. All tests have this precompiled
// (tests/CMakeLists.txt).
#pragma once

#include <gtest/gtest.h>

#include <concepts>
#include <cstring>
#include <ostream>
#include <string>
#include <type_traits>

#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind {

inline void PrintTo(ErrorCode code, std::ostream* out) { *out << error_name(code); }
inline void PrintTo(RowOrigin origin, std::ostream* out) { *out << origin_name(origin); }
inline void PrintTo(StopReason reason, std::ostream* out) { *out << stop_reason_name(reason); }
inline void PrintTo(const AddrRange& range, std::ostream* out) {
  const std::ios_base::fmtflags before = out->setf(std::ios_base::hex, std::ios_base::basefield);
  *out << "[0x" << range.begin << ", 0x" << range.end << ")";
  out->flags(before);
}

/// Registers are printed by number, since the CPU is not known: "cfa=r7+16".
inline void PrintTo(const CfaRule& rule, std::ostream* out) {
  FrameRow row;
  row.cfa = rule;
  *out << to_text(row, Arch{});
}
/// Prints "[cfa-16]" or "r3". Rows print nothing for an unspecified rule.
inline void PrintTo(const RegRule& rule, std::ostream* out) {
  FrameRow row;
  const std::string empty = to_text(row, Arch{});
  (void)row.set(0, rule);
  const std::string text = to_text(row, Arch{});
  *out << (text == empty ? "unspecified" : text.substr(empty.size() + std::strlen(" r0=")));
}

/// Prints errors of all kinds, reports, and everything else that has a text.
template <class Value>
requires requires(const Value& value) {
  { value.text() } -> std::convertible_to<std::string>;
}
void PrintTo(const Value& value, std::ostream* out) { *out << value.text(); }

template <class Shape>
requires requires(const Shape& shape) {
  { shape.directives_text() } -> std::convertible_to<std::string>;
}
void PrintTo(const Shape& shape, std::ostream* out) { *out << (shape ? shape.directives_text() : "no shape"); }

/// Prints enumerators without a name by their number.
template <class Enum>
requires std::is_enum_v<Enum>
void PrintTo(const Enum& value, std::ostream* out) {
  *out << testing::internal::GetTypeName<Enum>() << " " << +static_cast<std::underlying_type_t<Enum>>(value);
}

template <class Value, class Failure>
void PrintTo(const Result<Value, Failure>& result, std::ostream* out) {
  *out << (result ? testing::PrintToString(*result) : "error: " + testing::PrintToString(result.error()));
}
inline void PrintTo(Done, std::ostream* out) { *out << "done"; }

namespace test {
using jitunwind::PrintTo;  // for the types of this namespace
}

}  // namespace jitunwind
