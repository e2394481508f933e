#include <jitunwind/asmjit.h>

void innermost();

// main -> "middle", which asmjit makes and the runtime registers -> innermost
int main() {
  jitunwind::AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  asmjit::x86::Compiler compiler(&code);
  compiler.addFunc(asmjit::FuncSignatureT<void>());
  asmjit::InvokeNode* call = nullptr;
  compiler.invoke(&call, asmjit::imm(innermost), asmjit::FuncSignatureT<void>());
  compiler.endFunc();
  if (compiler.finalize() != asmjit::kErrorOk) return 1;

  void (*middle)() = nullptr;
  if (runtime.add(&middle, &code, "middle") != asmjit::kErrorOk) return 1;
  middle();
  return runtime.release(middle) == asmjit::kErrorOk ? 0 : 1;
}
