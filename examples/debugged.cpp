// Code made at run time under a debugger: the function has no name before it is made (./dev demo debugged):
//   gdb -batch -ex "set breakpoint pending on" -ex "break jit_function" -ex run -ex bt build/demo/examples/debugged
#include <jitunwind/gdb.h>
#include <jitunwind/jitunwind.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

static void greet() { std::puts("called"); }

int main() {
  using namespace jitunwind::x86_64;
  if (const auto attached = jitunwind::attach_gdb(); !attached) return std::puts(attached.error().what), 1;

  // void jit_function(void (*f)()):  push rbx; call rdi; pop rbx; ret
  const unsigned char bytes[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3};
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  std::memcpy(code, bytes, sizeof bytes);
  mprotect(code, 4096, PROT_READ | PROT_EXEC);

  const auto description = describe("jit_function").push({0, 1}, rbx).pop({-2, -1}, rbx).build();
  if (!description) return std::puts(description.error().text().c_str()), 1;
  const auto registration = jitunwind::register_code(*description, code, sizeof bytes);
  if (!registration) return std::puts(registration.error().what), 1;
  reinterpret_cast<void (*)(void (*)())>(code)(greet);
}
