// The C library prints a stack with a function that asmjit has made: code segments show it to those who know nothing of
// this library.
#include <asmjit/x86.h>
#include <execinfo.h>
#include <jitunwind/asmjit.h>
#include <jitunwind/code_segments.h>

#include <cstdio>

static void show_stack() {
  void* stack[16];
  std::fflush(stdout);
  ::backtrace_symbols_fd(stack, ::backtrace(stack, 16), 1);
}

int main() {
  jitunwind::CodeSegments segments;
  jitunwind::AsmjitRuntime runtime({.segments = &segments});

  asmjit::CodeHolder code;
  code.init(runtime.environment());
  jitunwind::AsmjitAssembler a(&code);

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
