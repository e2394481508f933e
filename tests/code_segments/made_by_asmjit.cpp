// One asmjit Assembler writes both functions, one behind the other, into one CodeHolder.
#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"
#include "tests/asmjit/asmjit_names.h"
#include "tests/code_segments/made_functions.h"

namespace jitunwind::test {
namespace {

void write_function(AsmjitAssembler& a, const char* name) {
  using namespace asmjit::x86;
  a.procedure(name);
  a.push(rbp);
  a.mov(rbp, 42);
  a.xchg(rdi, rsi);
  a.call(rsi);
  a.pop(rbp);
  a.ret();
}

}  // namespace

MadeFunctions make_functions(CodeSegments& segments) {
  static AsmjitRuntime* const runtime = new AsmjitRuntime({.segments = &segments});
  asmjit::CodeHolder code;
  code.init(runtime->environment());
  AsmjitAssembler a(&code);
  write_function(a, "jit_outer");
  const std::size_t second = a.offset();
  write_function(a, "jit_inner");
  void* start = nullptr;
  if (runtime->add(&start, &code) != asmjit::kErrorOk) std::abort();
  const auto outer = reinterpret_cast<std::uintptr_t>(start);
  return {outer, outer + second};
}

}  // namespace jitunwind::test
