// Input: a script of toy_vm. Its byte code must keep the rules that the code generator relies on.
#include <algorithm>
#include <array>
#include <string_view>

#include "examples/toy_vm/parser.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/toy_vm/byte_code_rules.h"

using jitunwind::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<toy::NativeName, 3> natives{{{"print", 1}, {"each", 2}, {"now", 0}}};
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  try {
    const std::string rule = toy_test::broken_rule(toy::parse(script, natives));
    check(rule.empty(), rule.c_str());
  } catch (const toy::SyntaxError& error) {
    check(error.line() >= 1 && error.line() <= 1 + std::count(script.begin(), script.end(), '\n'),
          "a mistake is in a line of the script");
  }
  return 0;
}
