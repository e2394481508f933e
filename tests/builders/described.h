// Descriptions as text, for comparisons in the tests of the builders.
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"

namespace jitunwind {

/// Returns all rows for a procedure of `bytes`, a line each behind a newline, as in a raw string; or the reason why
/// build() refused.
template <class Cpu>
std::string rows_of(const ProcedureBuilder<Cpu>& builder, std::uint64_t bytes) {
  const auto built = builder.build();
  return "\n" + (built ? built->to_text(bytes) : "refused\n" + built.error().text());
}

/// Returns the region list in this form.
template <class Cpu>
std::string regions_of(const ProcedureBuilder<Cpu>& builder) {
  const auto built = builder.build();
  return "\n" + (built ? built->shape().directives_text() : "refused\n" + built.error().text());
}

/// Returns the code of every finding of a refusal, in order, each followed by a blank; "built" if nothing was refused.
template <class Cpu>
std::string codes_of(const ProcedureBuilder<Cpu>& builder) {
  const auto built = builder.build();
  if (built) return "built";
  std::string codes;
  for (const Finding& f : built.error().findings) codes += std::string(error_name(f.code)) + " ";
  return codes;
}

}  // namespace jitunwind
