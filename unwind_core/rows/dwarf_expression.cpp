#include "jitunwind/unwind_core/rows/dwarf_expression.h"

#include <array>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"

namespace jitunwind {
namespace {

using namespace dwarf;

constexpr std::size_t k_max_depth = 64;
constexpr unsigned k_max_operations = 4096;

/// One evaluation. The first error is kept; until it is noticed, pops of an empty stack yield 0.
class Evaluator {
 public:
  Evaluator(Expression expression, const ExpressionInput& input) noexcept
      : input_(input), reader_(expression, input.arch.big_endian), word_(input.arch.word_size) {}

  Result<std::uint64_t> run() noexcept {
    if (input_.initial) push(*input_.initial);
    for (unsigned operations = 0; !reader_.at_end() && !failed_; ++operations) {
      operation_at_ = reader_.position();
      if (operations == k_max_operations) {
        fail(ErrorCode::too_deep, "expression runs for too long");
        break;
      }
      execute(reader_.u8());
      if (!reader_.ok()) fail(reader_.error("").code, "operand of an expression operation");
    }
    if (!failed_) operation_at_ = reader_.position();
    const std::uint64_t result = pop();
    if (failed_) return error_;
    return result;
  }

 private:
  /// Errors that a callback has reported are kept unchanged.
  void fail(const Error& error, const char* what) noexcept {
    if (!failed_ && callback_result(error) != 0) {
      failed_ = true;
      error_ = error;
    }
    fail(error.code, what);
  }
  void fail(ErrorCode code, const char* what) noexcept {
    if (failed_) return;
    failed_ = true;
    error_ = {code, operation_at_, what};
  }

  /// Values are of the generic type: integers of the size of an address, of no particular sign (DWARF 5, 2.5.1).
  std::uint64_t wrap(std::uint64_t value) const noexcept { return word_ == 4 ? value & 0xffffffffu : value; }
  std::int64_t as_signed(std::uint64_t value) const noexcept {
    return word_ == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
  }

  void push(std::uint64_t value) noexcept {
    if (depth_ == k_max_depth) return fail(ErrorCode::too_deep, "expression stack overflow");
    stack_[depth_++] = wrap(value);
  }
  void push(std::int64_t value) noexcept { push(static_cast<std::uint64_t>(value)); }
  std::uint64_t pop() noexcept {
    if (depth_ == 0) return fail(ErrorCode::bad_structure, "expression stack is empty"), 0;
    return stack_[--depth_];
  }
  /// Entry `index` counted from the top.
  std::uint64_t peek(std::size_t index) noexcept {
    if (index >= depth_) return fail(ErrorCode::bad_structure, "expression stack is empty"), 0;
    return stack_[depth_ - 1 - index];
  }

  void execute(std::uint8_t op) noexcept {
    if (op >= op_breg0 && op <= op_breg31) return push_register(std::uint64_t{op} - op_breg0);
    if (const auto literal = read_literal(op, reader_)) return push(*literal);
    if (op >= op_eq && op <= op_ne) return compare(op);
    switch (op) {
      case op_addr:
        return push(reader_.unsigned_of(word_));
      case op_bregx:
        return push_register(reader_.uleb());
      case op_deref:
        return dereference(word_);
      case op_deref_size:
        return dereference(reader_.u8());
      case op_dup:
      case op_drop:
      case op_over:
      case op_pick:
      case op_swap:
      case op_rot:
        return shuffle(op);
      case op_abs:
      case op_neg:
      case op_not:
      case op_plus_uconst:
        return unary(op);
      case op_skip:
      case op_bra:
        return jump(op);
      case op_nop:
        return;
      default:
        return binary(op);
    }
  }

  void push_register(std::uint64_t number) noexcept {
    const auto offset = static_cast<std::uint64_t>(reader_.sleb());
    const int column = number < k_no_reg ? input_.arch.column(static_cast<RegNum>(number)) : -1;
    const auto value = input_.registers.get_for_rule(column);
    if (!value) return fail(ErrorCode::undefined_register, "register of an expression has no value");
    push(*value + offset);
  }

  void dereference(std::size_t size) noexcept {
    const Addr at = pop();
    if ((size != 1 && size != 2 && size != 4 && size != 8) || size > word_)
      return fail(ErrorCode::bad_encoding, "size of DW_OP_deref_size");
    if (failed_) return;
    const auto value = read_unsigned(input_.memory, input_.window, at, size, input_.arch.big_endian, "");
    if (!value) return fail(value.error(), "memory that an expression reads");
    push(*value);
  }

  void shuffle(std::uint8_t op) noexcept {
    switch (op) {
      case op_dup:
        return push(peek(0));
      case op_drop:
        return void(pop());
      case op_over:
        return push(peek(1));
      case op_pick:
        return push(peek(reader_.u8()));
      default:
        break;
    }
    // swap: a b -> b a; rot: a b c -> c a b (top on the right)
    const std::uint64_t top = pop();
    const std::uint64_t second = pop();
    const std::uint64_t third = op == op_rot ? pop() : 0;
    push(top);
    if (op == op_rot) push(third);
    push(second);
  }

  void unary(std::uint8_t op) noexcept {
    const std::uint64_t top = pop();
    switch (op) {
      case op_abs:
        return push(as_signed(top) < 0 ? 0 - top : top);
      case op_neg:
        return push(0 - top);
      case op_not:
        return push(~top);
      default:
        return push(top + reader_.uleb());
    }
  }

  /// Only abs, div, shra and the comparisons interpret the sign of generic values (DWARF 5, 2.5.1.4).
  void binary(std::uint8_t op) noexcept {
    if (!is_binary(op)) return refuse(op);
    const std::uint64_t top = pop();
    const std::uint64_t second = pop();
    const unsigned bits = 8 * static_cast<unsigned>(word_);
    switch (op) {
      case op_and:
        return push(second & top);
      case op_or:
        return push(second | top);
      case op_xor:
        return push(second ^ top);
      case op_plus:
        return push(second + top);
      case op_minus:
        return push(second - top);
      case op_mul:
        return push(second * top);
      case op_shl:
        return push(top < bits ? second << top : 0);
      case op_shr:
        return push(top < bits ? second >> top : 0);
      case op_shra:
        return push(as_signed(second) >> (top < bits ? top : bits - 1));
      default:
        return divide(op, second, top);
    }
  }

  static bool is_binary(std::uint8_t op) noexcept {
    return (op >= op_and && op <= op_mul) || (op >= op_or && op <= op_xor && op != op_plus_uconst);
  }

  void divide(std::uint8_t op, std::uint64_t dividend, std::uint64_t divisor) noexcept {
    if (divisor == 0) return fail(ErrorCode::bad_structure, "expression divides by zero");
    if (op == op_mod) return push(dividend % divisor);
    // min / -1 overflows the signed type, and wraps around to min.
    if (as_signed(divisor) == -1) return push(0 - dividend);
    push(as_signed(dividend) / as_signed(divisor));
  }

  void compare(std::uint8_t op) noexcept {
    const std::int64_t top = as_signed(pop());
    const std::int64_t second = as_signed(pop());
    const auto holds = [&] {
      switch (op) {
        case op_eq:
          return second == top;
        case op_ge:
          return second >= top;
        case op_gt:
          return second > top;
        case op_le:
          return second <= top;
        case op_lt:
          return second < top;
        default:
          return second != top;
      }
    };
    push(std::uint64_t{holds()});
  }

  /// The operand is relative to the next operation; the end of the expression is a valid target.
  void jump(std::uint8_t op) noexcept {
    const std::int64_t distance = reader_.signed_of(2);
    if (op == op_bra && pop() == 0) return;
    const std::int64_t target = static_cast<std::int64_t>(reader_.position()) + distance;
    if (target < 0) return fail(ErrorCode::bad_structure, "jump out of the expression");
    reader_.seek(static_cast<std::size_t>(target));
  }

  /// Refuses operations that DWARF 5, 6.4.2 forbids in call frame information, location descriptions (2.6), and unknown
  /// operations.
  void refuse(std::uint8_t op) noexcept {
    switch (op) {
      case op_fbreg:
        return fail(ErrorCode::bad_opcode, "DW_OP_fbreg: there is no enclosing function description in CFI");
      case op_xderef:
      case op_xderef_size:
        return fail(ErrorCode::bad_opcode, "DW_OP_xderef: no address spaces on this CPU");
      case op_call_frame_cfa:
        return fail(ErrorCode::bad_opcode, "DW_OP_call_frame_cfa is circular in CFI");
      case op_push_object_address:
        return fail(ErrorCode::bad_opcode, "DW_OP_push_object_address: there is no object in CFI");
      default:
        break;
    }
    if ((op >= op_call2 && op <= op_call_ref) || (op >= op_addrx && op <= op_reinterpret))
      return fail(ErrorCode::bad_opcode, "operation needs .debug_info");
    if ((op >= op_reg0 && op <= op_reg31) || op == op_regx || op == op_piece || op == op_stack_value)
      return fail(ErrorCode::bad_opcode, "location description where an expression is needed");
    fail(ErrorCode::bad_opcode, "unknown expression operation");
  }

  const ExpressionInput& input_;
  ByteReader reader_;
  std::size_t word_;
  std::size_t operation_at_ = 0;
  std::size_t depth_ = 0;
  bool failed_ = false;
  Error error_{};
  std::array<std::uint64_t, k_max_depth> stack_;
};

}  // namespace

Result<std::uint64_t> evaluate(Expression expression, const ExpressionInput& input) noexcept {
  return Evaluator(expression, input).run();
}

}  // namespace jitunwind
