// The known stack's functions, compiled by LLVM and linked by JITLink.
#include <string>

#include "tests/orc/orc_jit.h"
#include "tests/tools/known_stack.h"

namespace {

constexpr std::string_view k_keeps = R"( "frame-pointer"="all" uwtable {
  %r = call ptr %callee(ptr %argument)
  ret ptr %r
}
)";
constexpr std::string_view k_overwrites = R"( "frame-pointer"="none" uwtable {
  call void asm sideeffect "xorl %ebx, %ebx; xorl %ebp, %ebp", "~{rbx},~{rbp}"()
  %r = call ptr %callee(ptr %argument)
  call void asm sideeffect "xorl %ebx, %ebx; xorl %ebp, %ebp", "~{rbx},~{rbp}"()
  ret ptr %r
}
)";

}  // namespace

void* compile_by_orc(const char* name, int is_held, int is_published) {
  using namespace jitunwind::test;
  static auto* const segments = new jitunwind::CodeSegments;  // code runs until the program ends
  static auto* const jit = new OrcJit(Linker::jitlink, {.segments = is_published ? segments : nullptr});
  std::string assembly = "define ptr @" + std::string(name) + "(ptr %callee, ptr %argument)";
  jit->add(assembly.append(is_held ? k_keeps : k_overwrites));
  return jit->find<void*>(name);
}
