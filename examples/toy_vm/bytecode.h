// The compiler's result for a script, and the code generator's input: code of a stack machine, a function at a time.
//
// A frame is a row of slots. The parameters come first, then the locals of the open blocks, then the values that
// expressions have pushed. Their number is known at every instruction (`depth`), so that "push" writes slot `depth`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace toy {

enum class Op : std::uint8_t {
  number,    // push the operand
  text,      // push text number `operand` of the program
  function,  // push function number `operand` of the program
  load,      // push slot `operand`
  store,     // pop into slot `operand`
  add,       // pop b, pop a, push a + b; so do all to not_equal. Numbers wrap around at 64 bits.
  subtract,
  multiply,
  divide,  // towards zero; "division by zero"
  remainder,
  less,  // 1 or 0
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  negate_truth,  // pop a, push a is 0 ? 1 : 0
  jump,          // to instruction `operand`
  jump_if_zero,  // pop, jump if it was 0
  call,          // function number `operand`: pop its arguments, push its result
  throw_value,   // pop
  return_value,  // pop
  resume,        // the exception that handler `operand` has kept continues outside of that handler
  discard,       // the exception that handler `operand` has kept, if it has one, ends here
};

struct Instruction {
  Op op;
  std::int32_t handler;  ///< innermost one around the instruction; -1: exceptions leave the function
  std::uint32_t depth;   ///< slots in use before it
  std::uint32_t line;
  std::int64_t operand;
};

/// The place where exceptions continue that leave the instructions inside of it.
struct Handler {
  enum class Kind : std::uint8_t {
    catches,   ///< std::exception and its derived types: its value in `slot`, then the code at `target`
    finishes,  ///< anything: kept in `slot`, then the code at `target`, which ends in `resume`, `discard` or an
               ///< exception
    discards,  ///< around the code of a `finishes`: the exception kept in `slot` gives way to the new one
  };
  Kind kind;
  std::int32_t outer;  ///< the handler around this one; -1: none
  std::uint32_t slot;
  std::int64_t target = -1;
  bool used = false;  ///< an instruction may throw to it; else it has no code
};

/// A function of the script; or a native one, which has no code.
struct FunctionCode {
  std::string name;
  std::uint32_t arity = 0;
  std::uint32_t line = 0;
  std::uint32_t slots = 0;  ///< the largest number in use
  std::vector<Instruction> code{};
  std::vector<Handler> handlers{};

  bool is_native() const { return code.empty(); }
};

struct Program {
  std::vector<FunctionCode> functions;  ///< the natives, in their given order; then the script's
  std::vector<std::string> texts;
  std::size_t main = 0;  ///< number of the function "main"
};

}  // namespace toy
