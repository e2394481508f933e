// A few procedures written with an AsmjitAssembler, and the adapter's descriptions of them.
#pragma once

#include <asmjit/x86.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_code.h"
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"
#include "tests/asmjit/asmjit_names.h"

namespace jitunwind::test {

class WrittenCode {
 public:
  WrittenCode() {
    code.init(runtime.environment());
    code.attach(&a);
  }

  /// The rows of procedure `index`, or the refusals.
  std::string rows(std::size_t index = 0) {
    const AsmjitDescription d = describe_asmjit(code);
    if (!d.complete() || index >= d.procedures.size()) return d.text();
    const AsmjitProcedure& p = d.procedures[index];
    return p.description.to_text(p.end - p.begin);
  }
  /// Adds the code, runs body(start of the code) one instruction at a time, and compares every instruction with what is
  /// registered. Every instruction must have run.
  void expect_right(const std::function<int(std::uintptr_t)>& body);
  /// Checks the code in this way; its body is call_marked().
  void expect_right();

  std::vector<std::uint64_t> pc_pushes;  ///< offsets of calls that enter nothing
  AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  AsmjitAssembler a;
};

/// Calls a procedure without arguments, with a value of its own in each preserved register.
void call_marked(std::uintptr_t procedure);

}  // namespace jitunwind::test
