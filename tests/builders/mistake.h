// Mistakes that people make in descriptions, and the errors they get.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "jitunwind/builders/registers_x86_64.h"

namespace jitunwind {

struct Mistake {
  const char* name;
  x86_64::Builder builder;
  const char* text;  ///< BuildError::text()
};

/// GoogleTest prints the mistake's name.
inline void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

inline x86_64::Builder in_47_bytes() { return x86_64::describe("m").size(0x2f); }

/// Returns the error's text; "built" and the rows if there is no error.
inline std::string what_is_said_of(const Mistake& mistake) {
  const auto built = mistake.builder.build();
  return built ? "built\n" + built->to_text() : built.error().text();
}

/// Each table of mistakes instantiates these tests.
class Mistakes : public testing::TestWithParam<Mistake> {};

inline std::string test_name(const testing::TestParamInfo<Mistake>& info) { return info.param.name; }

}  // namespace jitunwind
