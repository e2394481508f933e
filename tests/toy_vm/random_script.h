// Random programs in the language of toy_vm, as trees that are printed, and evaluated without any part of toy_vm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace toy_test {

struct Node {
  enum class Kind : std::uint8_t {
    // Expressions; `text` is the operator, the name or the text itself.
    number,
    text,
    variable,
    arithmetic,  // + - * / % < <= > >= == !=
    logical,     // and or
    negation,
    call,    // of function `text`, with one argument
    native,  // of native `text`, with children; functions are passed as variables
    // Statements.
    block,
    let,
    assign,
    expression,
    if_else,  // condition, block, block
    loop,     // a variable of its own counts to `number`
    try_all,  // block, and one or both of: `text` of what is caught and its block; block of finally
    throws,
    returns,
    breaks,
    continues,
  };
  Kind kind;
  std::string text{};
  std::int64_t number = 0;
  std::vector<Node> children{};
  bool catches = false, finishes = false;  // try_all
};

/// A function of one parameter, "p".
struct ScriptFunction {
  std::string name;
  Node body;
};

/// Functions call only those before them; main() calls the last one and prints its result. The needed natives are:
/// print, tick, fail, odd, apply, each, guarded, attempt, catch_odd, rethrow.
using RandomScript = std::vector<ScriptFunction>;

RandomScript random_script(std::uint64_t seed);
std::string printed(const RandomScript& script);

/// Returns the output of the script by evaluating its tree; the last line is its result.
std::string evaluated(const RandomScript& script);

constexpr int k_ticks = 400;  ///< so many loops and calls, then tick() throws each time

}  // namespace toy_test
