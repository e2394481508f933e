// Input: a program of orc_calc's language.
#include <cstring>

#include "examples/orc_calc/syntax.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

namespace {

/// Checks that every place is in the text, and that nothing is missing.
void check_expression(const calc::Expression& e) {
  using Kind = calc::Expression::Kind;
  fuzz::check(e.at.line > 0 && e.at.column > 0, "an expression has a place");
  static constexpr int operands[] = {0, 0, -1, 1, 2, 2, 3, 2};
  const int wanted = operands[static_cast<int>(e.kind)];
  fuzz::check(wanted < 0 || e.operands.size() == static_cast<std::size_t>(wanted), "an expression has its operands");
  const bool named = e.kind == Kind::name || e.kind == Kind::call || e.kind == Kind::operation || e.kind == Kind::let;
  fuzz::check(named == !e.name.empty(), "what has a name has one");
  for (const auto& operand : e.operands) check_expression(*operand);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const calc::Item& item : calc::parse({reinterpret_cast<const char*>(data), size}))
      check_expression(*item.body);
  } catch (const calc::SyntaxError& error) {
    fuzz::check(std::strchr(error.what(), ':') != nullptr, "an error has a place");
  }
  return 0;
}
