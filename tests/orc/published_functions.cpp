// Two functions that LLVM compiles, and links by the program's linker. jit_inner has a cleanup, as functions of C++ do.
#include "tests/code_segments/made_functions.h"
#include "tests/orc/linked_by.h"
#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

constexpr std::string_view k_calling_functions = R"(
declare i32 @__gxx_personality_v0(...)
define ptr @jit_outer(ptr %callee, ptr %argument) uwtable {
  call void asm sideeffect "movl $$42, %ebp", "~{rbp}"()
  %r = call ptr %callee(ptr %argument)
  call void asm sideeffect "movl $$43, %ebp", "~{rbp}"()
  ret ptr %r
}
define ptr @jit_inner(ptr %callee, ptr %argument) uwtable personality ptr @__gxx_personality_v0 {
  call void asm sideeffect "movl $$42, %ebp", "~{rbp}"()
  %r = invoke ptr %callee(ptr %argument) to label %done unwind label %pad
done:
  call void asm sideeffect "movl $$43, %ebp", "~{rbp}"()
  ret ptr %r
pad:
  %passing = landingpad { ptr, i32 } cleanup
  call void asm sideeffect "movl $$44, %ebp", "~{rbp}"()
  resume { ptr, i32 } %passing
}
)";

}  // namespace

MadeFunctions make_functions(CodeSegments& segments) {
  static OrcJit* const jit = new OrcJit(linker_of_published, {.segments = &segments});
  jit->add(k_calling_functions);
  return {jit->find<Addr>("jit_outer"), jit->find<Addr>("jit_inner")};
}

}  // namespace jitunwind::test
