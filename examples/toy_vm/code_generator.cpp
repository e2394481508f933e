// The frame of a function, and its exceptions: they are those of C++, found by __gxx_personality_v0 in a table that is
// made of call sites. A script's `catch` is thus a `catch (const std::exception&)`: it knows C++ types and their bases.
// Exceptions that a C++ caller catches pass a script's frames like C++ frames, and the other way round.
//
// The search for a handler sees all handlers of a frame at once. The call sites in a `try` name the type that any
// `catch` around them in the function wants, and the landing pad of the innermost handler gets in rdx (selector)
// whether one does. If it is not its own, the exception continues at the next pad outside, within the frame; from the
// last one, with selector 0, to _Unwind_Resume() and the frames above.
#include "examples/toy_vm/code_generator.h"

#include <unwind.h>

#include <exception>
#include <stdexcept>

#include "examples/toy_vm/code_generator_p.h"
#include "examples/toy_vm/runtime.h"

namespace toy {

using namespace asmjit::x86;
using examples::new_label;

CodePiece::CodePiece(Machine& machine) : machine_(machine) {
  code_.init(machine.code_memory().environment());
  examples::set_error_handler(code_, &errors_);
  code_.attach(&a_);
}

GeneratedCode CodePiece::add(const std::string& name) {
  GeneratedCode made;
  const asmjit::Error error = machine_.code_memory().add(&made.start, &code_, name);
  if (error == asmjit::kErrorOk && errors_.first.empty()) {
    made.size = examples::code_size(code_);
    return made;
  }
  throw std::runtime_error(name + ": " + (errors_.first.empty() ? "asmjit has no memory" : errors_.first));
}

GeneratedCode generate(Machine& machine, const FunctionCode& function, std::span<const Value> texts) {
  return CodeGenerator(machine, function, texts).generate();
}

GeneratedCode generate_entry(Machine& machine) {
  CodePiece piece(machine);
  auto& a = piece.assembler();
  // The search reaches this frame only if nothing below catches, and the whole stack is still there.
  a.handled_by([&machine](const jitunwind::PassedFrame& frame) {
    if (frame.phase() == jitunwind::PassedFrame::Phase::search) machine.see_uncaught();
    return jitunwind::FrameDecision::pass();
  });
  a.sub(rsp, 8);
  a.call(rdx);
  a.add(rsp, 8);
  a.ret();
  return piece.add("<script>");
}

CodeGenerator::CodeGenerator(Machine& machine, const FunctionCode& function, std::span<const Value> texts)
    : machine_(machine), function_(function), texts_(texts), piece_(machine), a_(piece_.assembler()) {
  for (std::size_t i = 0; i < function.code.size(); ++i) labels_.push_back(new_label(a_));
  for (std::size_t i = 0; i < function.handlers.size(); ++i) pads_.push_back(new_label(a_));
  resume_ = new_label(a_);
  overflow_ = new_label(a_);
}

GeneratedCode CodeGenerator::generate() {
  std::vector<CodeLine> lines{{0, function_.line}};
  prologue();
  for (std::size_t i = 0; i < function_.code.size(); ++i) {
    const Instruction& next = function_.code[i];
    inside(next.handler);
    a_.bind(labels_[i]);
    if (next.line != lines.back().line) lines.push_back({static_cast<std::uint32_t>(a_.offset()), next.line});
    instruction(next);
  }
  for (std::size_t i = 0; i < function_.handlers.size(); ++i)
    if (function_.handlers[i].used) landing_pad(static_cast<std::int32_t>(i));
  inside(-1);
  if (resumes_) {
    a_.bind(resume_);
    a_.mov(rdi, rax);
    call_runtime(&_Unwind_Resume);
    a_.ud2();
  }
  GeneratedCode made = piece_.add(function_.name);
  made.lines = std::move(lines);
  return made;
}

/// Takes the frame's slots and copies the arguments into the first ones.
void CodeGenerator::prologue() {
  const asmjit::Label enough = new_label(a_);
  a_.push(rbx);
  a_.sub(rsp, sizeof(Value) * function_.slots);
  a_.mov(rbx, rdi);
  a_.mov(rax, asmjit::imm(&machine_.stack_limit()));
  a_.cmp(rsp, qword_ptr(rax));
  a_.jae(enough);
  call_runtime(&stack_overflow);
  a_.ud2();
  a_.bind(enough);
  for (std::uint32_t i = 0; i < function_.arity; ++i) {
    a_.movups(xmm0, xmmword_ptr(rsi, static_cast<int>(sizeof(Value) * i)));
    a_.movups(xmmword_ptr(rsp, static_cast<int>(sizeof(Value) * i)), xmm0);
  }
}

void CodeGenerator::epilogue() {
  a_.add(rsp, sizeof(Value) * function_.slots);
  a_.pop(rbx);
  a_.ret();
}

bool CodeGenerator::chain_has(std::int32_t from, bool (*wanted)(Handler::Kind)) const {
  for (; from >= 0; from = handler(from).outer)
    if (wanted(handler(from).kind)) return true;
  return false;
}

/// Exceptions of later calls go to `number` and the handlers around it.
void CodeGenerator::inside(std::int32_t number) {
  if (number >= 0 && !handler(number).used) number = -1;
  if (number == handler_) return;
  if (handler_ >= 0) a_.bind(site_end_);
  handler_ = number;
  if (number < 0) return;
  const asmjit::Label begin = new_label(a_);
  site_end_ = new_label(a_);
  a_.bind(begin);
  auto site = a_.call_site(begin, site_end_, pads_[static_cast<std::size_t>(number)]);
  if (chain_has(number, [](Handler::Kind kind) { return kind == Handler::Kind::catches; }))
    site.catches(typeid(std::exception));
  if (chain_has(number, [](Handler::Kind kind) { return kind != Handler::Kind::catches; })) site.cleans_up();
}

/// Entered with the exception in rax, and in rdx 1 if a `catch` of this function wants it, else 0.
void CodeGenerator::landing_pad(std::int32_t number) {
  const Handler& to = handler(number);
  inside(to.outer);
  a_.bind(pads_[static_cast<std::size_t>(number)]);
  switch (to.kind) {
    case Handler::Kind::catches: {
      const asmjit::Label mine = new_label(a_);
      a_.test(edx, edx);
      a_.jnz(mine);
      go_outward(to.outer);
      a_.bind(mine);
      a_.mov(rdi, rbx);
      a_.mov(rsi, rax);
      call_runtime(&caught);
      store_result(to.slot);
      a_.jmp(label_of(to.target));
      break;
    }
    case Handler::Kind::finishes:
      a_.mov(content(to.slot), rax);
      a_.mov(kind(to.slot), rdx);
      a_.jmp(label_of(to.target));
      break;
    case Handler::Kind::discards:
      a_.mov(rdi, content(to.slot));
      a_.mov(content(to.slot), rax);
      a_.mov(kind(to.slot), rdx);
      call_runtime(&discard);
      a_.mov(rax, content(to.slot));
      a_.mov(rdx, kind(to.slot));
      go_outward(to.outer);
      break;
  }
}

/// The exception is in rax, the selector in rdx.
void CodeGenerator::go_outward(std::int32_t outer) {
  resumes_ = resumes_ || outer < 0;
  a_.jmp(outer < 0 ? resume_ : pads_[static_cast<std::size_t>(outer)]);
}

}  // namespace toy
