// The stack frame of xbyak, for generators that note what it writes.
#pragma once

#include <xbyak/xbyak_util.h>

#include <cstddef>

#include "jitunwind/adapters/xbyak/code_generator.h"

#pragma GCC visibility push(default)
namespace jitunwind::xbyak {

/// Xbyak::util::StackFrame with the arguments of its constructor. The constructor writes the prologue, close() an
/// epilogue, as often as it is called, and the destructor the last one if `makes_epilogue`.
class StackFrame : public Xbyak::util::StackFrame {
 public:
  explicit StackFrame(CodeGenerator* code, int parameters, int temporaries = 0, int stack_bytes = 0,
                      bool makes_epilogue = true)
      : StackFrame(code->getSize(), code, parameters, temporaries, stack_bytes, makes_epilogue) {}
  StackFrame(const StackFrame&) = delete;
  StackFrame& operator=(const StackFrame&) = delete;
  ~StackFrame() {
    if (makes_epilogue_) close();
  }

  /// Writes an epilogue, and a return if `returns`.
  void close(bool returns = true) {
    const std::size_t begin = code_->getSize();
    Xbyak::util::StackFrame::close(returns);
    if (code_->getSize() != begin) code_->note(begin);
  }

 private:
  StackFrame(std::size_t begin, CodeGenerator* code, int parameters, int temporaries, int stack_bytes,
             bool makes_epilogue)
      : Xbyak::util::StackFrame(code, parameters, temporaries, stack_bytes, false),
        code_(code),
        makes_epilogue_(makes_epilogue) {
    if (code->getSize() != begin) code->note(begin);
  }

  CodeGenerator* code_;
  bool makes_epilogue_;
};

}  // namespace jitunwind::xbyak
#pragma GCC visibility pop
