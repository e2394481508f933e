// Conversion of a script to byte code, in one pass.
//
//   script     { "fn" name "(" [ name { "," name } ] ")" block }
//   block      "{" { statement } "}"
//   statement  "let" name "=" expression ";"           name "=" expression ";"          expression ";"
//              "if" expression block [ "else" ( block | if-statement ) ]                "while" expression block
//              "try" block [ "catch" name block ] [ "finally" block ]                   "throw" expression ";"
//              "return" [ expression ] ";"             "break" ";"                      "continue" ";"
//   expression numbers, "texts", names, calls, ( ), and in falling order of binding:
//              -x   * / %   + -   < <= > >= == !=   not   and   or
//
// "#" begins a comment. Names of functions may be used anywhere, before their definition too, and are values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "examples/toy_vm/bytecode.h"
#include "examples/toy_vm/lexer.h"

namespace toy {

/// A function written in C++, as scripts see it.
struct NativeName {
  std::string_view name;
  std::uint32_t arity;
};

/// Throws SyntaxError, at the first mistake.
Program parse(std::string_view script, std::span<const NativeName> natives);

}  // namespace toy
