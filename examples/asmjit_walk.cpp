// All of it on one screen: a function made with asmjit, on a stack that is walked to the end.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>
#include <jitunwind/jitunwind.h>

#include <cstdio>

static void show_stack() {
  jitunwind::Walk walk = jitunwind::walk_here();
  for (const jitunwind::Frame& frame : walk)
    std::printf("%-14s %s\n", jitunwind::origin_name(frame.origin()), frame.name().c_str());
  std::printf("%s\n", walk.why().c_str());
}

int main() {
  jitunwind::AsmjitRuntime runtime;  // was: asmjit::JitRuntime runtime;

  asmjit::CodeHolder code;
  code.init(runtime.environment());
  jitunwind::AsmjitAssembler a(&code);  // was: asmjit::x86::Assembler a(&code);

  using namespace asmjit::x86;
  a.push(rbp);
  a.mov(rbp, 42);  // no frame pointer: rbp holds anything
  a.call(asmjit::imm(&show_stack));
  a.pop(rbp);
  a.ret();

  void (*function)() = nullptr;
  if (runtime.add(&function, &code, "my_jit_function") != asmjit::kErrorOk) return 1;
  function();
  runtime.release(function);
}
