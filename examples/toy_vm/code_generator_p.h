// The code generator: a frame's slots are at fixed places below its return address, and instructions move values
// between them. The only value in a register is the machine, in rbx.
//
//   cfa-8 return address | cfa-16 rbx | ... slot 1 (16 bytes) | slot 0 (16 bytes) = [rsp]
#pragma once

#include <jitunwind/asmjit.h>

#include <cstdint>
#include <string>
#include <vector>

#include "examples/asmjit_names.h"
#include "examples/toy_vm/code_generator.h"
#include "examples/toy_vm/machine.h"

namespace toy {

/// One piece of code for the machine's code memory.
class CodePiece {
 public:
  explicit CodePiece(Machine& machine);
  jitunwind::AsmjitAssembler& assembler() { return a_; }
  /// Describes, registers and places the written code.
  GeneratedCode add(const std::string& name);

 private:
  struct Errors final : asmjit::ErrorHandler {
    void EXAMPLES_ASMJIT(handleError, handle_error)(asmjit::Error, const char* message, asmjit::BaseEmitter*) override {
      if (first.empty()) first = message;
    }
    std::string first;
  };
  Machine& machine_;
  Errors errors_;
  asmjit::CodeHolder code_;
  jitunwind::AsmjitAssembler a_;
};

class CodeGenerator {
 public:
  CodeGenerator(Machine& machine, const FunctionCode& function, std::span<const Value> texts);
  GeneratedCode generate();

 private:
  // code_generator.cpp
  void prologue();
  void epilogue();
  void inside(std::int32_t handler);
  bool chain_has(std::int32_t handler, bool (*wanted)(Handler::Kind)) const;
  void landing_pad(std::int32_t number);
  void go_outward(std::int32_t handler);

  // code_instructions.cpp
  void instruction(const Instruction& instruction);
  void push_constant(const Instruction& instruction, Value value);
  void copy(std::uint32_t to, std::uint32_t from);
  void arithmetic(const Instruction& instruction);
  void fast_path(Op op, std::uint32_t a, std::uint32_t b, const asmjit::Label& slow);
  void equality(const Instruction& instruction);
  void truth(const Instruction& instruction);
  void call(const Instruction& instruction);

  template <class Function>
  void call_runtime(Function* function) {
    a_.call(asmjit::imm(function));
  }
  void store_result(std::uint32_t slot);

  static asmjit::x86::Mem slot_part(std::uint32_t slot, int part) {
    return asmjit::x86::qword_ptr(asmjit::x86::rsp, static_cast<int>(sizeof(Value) * slot) + 8 * part);
  }
  static asmjit::x86::Mem content(std::uint32_t slot) { return slot_part(slot, 0); }
  static asmjit::x86::Mem kind(std::uint32_t slot) { return slot_part(slot, 1); }
  const Handler& handler(std::int32_t number) const { return function_.handlers[static_cast<std::size_t>(number)]; }
  const asmjit::Label& label_of(std::int64_t instruction) const {
    return labels_[static_cast<std::size_t>(instruction)];
  }

  Machine& machine_;
  const FunctionCode& function_;
  const std::span<const Value> texts_;
  CodePiece piece_;
  jitunwind::AsmjitAssembler& a_;
  std::vector<asmjit::Label> labels_;  // of the instructions
  std::vector<asmjit::Label> pads_;    // of the handlers
  asmjit::Label resume_, overflow_;
  bool resumes_ = false;
  // The handler of calls that are written now, and the end of the call site that they are in.
  std::int32_t handler_ = -1;
  asmjit::Label site_end_;
};

}  // namespace toy
