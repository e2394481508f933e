// A generator on xbyak whose code every walk passes: another base class, another StackFrame, and one call.
#include <jitunwind/jitunwind.h>
#include <jitunwind/xbyak.h>

#include <cstdio>

static void show_stack() {
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) std::puts(frame.name().c_str());
}

namespace {

struct Code : jitunwind::xbyak::CodeGenerator {  // was: Xbyak::CodeGenerator
  Code() {
    jitunwind::xbyak::StackFrame frame(this, 1, 9, 64);  // was: Xbyak::util::StackFrame
    mov(rax, reinterpret_cast<std::uintptr_t>(&show_stack));
    call(rax);
  }  // the epilogue
};

}  // namespace

int main() {
  Code code;
  if (auto made = code.register_code("my_kernel"); !made) {
    std::puts(made.error().text().c_str());
    return 1;
  }
  code.getCode<void (*)(int)>()(1);
}  // `code` ends the registration, then frees the code
