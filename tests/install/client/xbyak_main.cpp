#include <jitunwind/xbyak.h>

void innermost();

// main -> "middle", which xbyak makes -> innermost
int main() {
  jitunwind::xbyak::CodeGenerator code;
  {
    jitunwind::xbyak::StackFrame frame(&code, 0, 9, 8);
    code.mov(code.rax, reinterpret_cast<std::uintptr_t>(&innermost));
    code.call(code.rax);
  }
  if (!code.register_code("middle")) return 1;
  code.getCode<void (*)()>()();
}
