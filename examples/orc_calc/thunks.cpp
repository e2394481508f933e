#include "examples/orc_calc/thunks.h"

#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>

#include <string>

namespace calc {

bool have_thunks() noexcept { return true; }

std::uint64_t thunk_of(const Native& native) {
  static jitunwind::AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  jitunwind::AsmjitAssembler a(&code);
  using namespace asmjit::x86;
  a.push(rbp);
  a.mov(rbp, -1);  // no frame pointer: guesses by one fail here
  a.call(asmjit::imm(native.address));
  a.pop(rbp);
  a.ret();
  std::uintptr_t thunk = 0;
  const std::string name = std::string("thunk of ") + native.name;
  if (runtime.add(&thunk, &code, name) != asmjit::kErrorOk) throw std::runtime_error("asmjit makes no " + name);
  return thunk;
}

}  // namespace calc
