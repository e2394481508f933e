// Code made at run time that calls a function and destroys the preserved registers it has saved.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/address.h"

namespace debuggers_test {

class JitCode {
 public:
  class Impl {
   public:
    virtual ~Impl() = default;
    virtual jitunwind::Addr start() const = 0;
    /// The offsets of the instructions; empty if they are not known.
    virtual std::vector<unsigned> instructions() const = 0;
  };

  /// `shape`: "registers" (pushes, no frame pointer, rbp holds something else), "frame_pointer", "rows" (the same
  /// in table format), "trap" (interrupts itself), "alias" (the first, as an alias of code of this module); or one of
  /// the first two with "asmjit_" or "orc_" in front: made by asmjit or ORC and described by the adapter;
  /// "orc_listener": by ORC, with LLVM's own listener for debuggers.
  JitCode(const std::string& shape, const std::string& name, void (*callee)());
  ~JitCode();
  JitCode(const JitCode&) = delete;
  JitCode& operator=(const JitCode&) = delete;

  void (*entry() const)();
  jitunwind::Addr start() const;
  /// Returns "row +4: cfa=rsp+16 ra=[cfa-8]" for each instruction.
  std::string rows() const;

  void cancel();
  /// Cancels, and puts other code at the same address if we can choose it.
  void replace(const std::string& shape, const std::string& name, void (*callee)());

 private:
  std::unique_ptr<Impl> impl_;
};

/// Only programs with LLVM have this.
std::unique_ptr<JitCode::Impl> make_orc_code(const std::string& shape, const std::string& name, void (*callee)());

}  // namespace debuggers_test
