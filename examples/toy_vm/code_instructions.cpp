// The machine code of the byte code's instructions.
#include "examples/toy_vm/code_generator_p.h"
#include "examples/toy_vm/runtime.h"

namespace toy {

using namespace asmjit::x86;
using examples::new_label;

void CodeGenerator::instruction(const Instruction& i) {
  switch (i.op) {
    case Op::number:
      return push_constant(i, Value::of(i.operand));
    case Op::text:
      return push_constant(i, texts_[static_cast<std::size_t>(i.operand)]);
    case Op::function:
      return push_constant(i, Value::of(&machine_.functions()[static_cast<std::size_t>(i.operand)]));
    case Op::load:
      return copy(i.depth, static_cast<std::uint32_t>(i.operand));
    case Op::store:
      return copy(static_cast<std::uint32_t>(i.operand), i.depth - 1);
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::divide:
    case Op::remainder:
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
      return arithmetic(i);
    case Op::equal:
    case Op::not_equal:
      return equality(i);
    case Op::negate_truth:
      return truth(i);
    case Op::jump:
      a_.jmp(label_of(i.operand));
      return;
    case Op::jump_if_zero:
      a_.cmp(content(i.depth - 1), 0);
      a_.je(label_of(i.operand));
      return;
    case Op::call:
      return call(i);
    case Op::throw_value:
      a_.mov(rdi, rbx);
      a_.lea(rsi, content(i.depth - 1));
      call_runtime(&throw_value);
      a_.ud2();
      return;
    case Op::return_value:
      a_.mov(rax, content(i.depth - 1));
      a_.mov(rdx, kind(i.depth - 1));
      return epilogue();
    case Op::resume: {
      const Handler& from = handler(static_cast<std::int32_t>(i.operand));
      a_.mov(rax, content(from.slot));
      a_.mov(rdx, kind(from.slot));
      return go_outward(from.outer);
    }
    case Op::discard:
      a_.mov(rdi, content(handler(static_cast<std::int32_t>(i.operand)).slot));
      call_runtime(&discard);
      return;
  }
}

void CodeGenerator::push_constant(const Instruction& i, Value value) {
  a_.mov(rax, value.number);  // or the pointer in its place
  a_.mov(content(i.depth), rax);
  a_.mov(kind(i.depth), static_cast<int>(value.kind));
}

void CodeGenerator::copy(std::uint32_t to, std::uint32_t from) {
  a_.movups(xmm0, xmmword_ptr(rsp, static_cast<int>(sizeof(Value) * from)));
  a_.movups(xmmword_ptr(rsp, static_cast<int>(sizeof(Value) * to)), xmm0);
}

void CodeGenerator::store_result(std::uint32_t slot) {
  a_.mov(content(slot), rax);
  a_.mov(kind(slot), rdx);
}

/// Numbers are computed here; compute() does everything else, and throws.
void CodeGenerator::arithmetic(const Instruction& i) {
  const std::uint32_t a = i.depth - 2, b = i.depth - 1;
  const asmjit::Label slow = new_label(a_), done = new_label(a_);
  a_.mov(rcx, kind(a));
  a_.or_(rcx, kind(b));
  a_.jnz(slow);
  fast_path(i.op, a, b, slow);
  a_.mov(content(a), rax);  // its kind is that of a number already
  a_.jmp(done);
  a_.bind(slow);
  a_.mov(rdi, rbx);
  a_.lea(rsi, content(a));
  a_.mov(edx, static_cast<int>(i.op));
  call_runtime(&compute);
  store_result(a);
  a_.bind(done);
}

/// rax = a op b; jumps to `slow` if the processor cannot do it.
void CodeGenerator::fast_path(Op op, std::uint32_t a, std::uint32_t b, const asmjit::Label& slow) {
  const auto compare = [&](CondCode condition) {
    a_.xor_(ecx, ecx);
    a_.cmp(rax, content(b));
    a_.set(condition, cl);
    a_.mov(rax, rcx);
  };
  a_.mov(rax, content(a));
  switch (op) {
    case Op::add:
      a_.add(rax, content(b));
      return;
    case Op::subtract:
      a_.sub(rax, content(b));
      return;
    case Op::multiply:
      a_.imul(rax, content(b));
      return;
    case Op::less:
      return compare(CondCode::kL);
    case Op::less_equal:
      return compare(CondCode::kLE);
    case Op::greater:
      return compare(CondCode::kG);
    case Op::greater_equal:
      return compare(CondCode::kGE);
    default:
      break;
  }
  // idiv traps on 0, and on -1 if the quotient does not fit.
  a_.mov(rcx, content(b));
  a_.lea(rdx, ptr(rcx, 1));
  a_.cmp(rdx, 1);
  a_.jbe(slow);
  a_.cqo();
  a_.idiv(rcx);
  if (op == Op::remainder) a_.mov(rax, rdx);
}

/// Equal are values of one kind with the same content: texts are kept once.
void CodeGenerator::equality(const Instruction& i) {
  const std::uint32_t a = i.depth - 2, b = i.depth - 1;
  a_.mov(rax, content(a));
  a_.xor_(rax, content(b));
  a_.mov(rcx, kind(a));
  a_.xor_(rcx, kind(b));
  a_.or_(rax, rcx);
  a_.mov(eax, 0);
  a_.set(i.op == Op::equal ? CondCode::kE : CondCode::kNE, al);
  a_.mov(content(a), rax);
  a_.mov(kind(a), 0);
}

/// Everything is true but the number 0: other contents are addresses.
void CodeGenerator::truth(const Instruction& i) {
  a_.xor_(eax, eax);
  a_.cmp(content(i.depth - 1), 0);
  a_.sete(al);
  a_.mov(content(i.depth - 1), rax);
  a_.mov(kind(i.depth - 1), 0);
}

/// Natives and functions of the script are called alike, with their arguments where they were pushed.
void CodeGenerator::call(const Instruction& i) {
  const Function& callee = machine_.functions()[static_cast<std::size_t>(i.operand)];
  const std::uint32_t first = i.depth - callee.arity;
  a_.mov(rdi, rbx);
  a_.lea(rsi, content(first));
  a_.mov(rax, asmjit::imm(&callee.code));
  a_.call(qword_ptr(rax));
  store_result(first);
}

}  // namespace toy
