#include <jitunwind/asmjit.h>

void innermost();

// main -> "middle", which asmjit makes and the runtime registers -> innermost
int main() {
  jitunwind::AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  jitunwind::AsmjitAssembler a(&code);
  a.sub(asmjit::x86::rsp, 8);
  a.call(asmjit::imm(innermost));
  a.add(asmjit::x86::rsp, 8);
  a.ret();

  void (*middle)() = nullptr;
  if (runtime.add(&middle, &code, "middle") != asmjit::kErrorOk) return 1;
  middle();
  return runtime.release(middle) == asmjit::kErrorOk ? 0 : 1;
}
