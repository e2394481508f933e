// A unit test of a JIT compiler: the description must be right at every instruction of the code.
#include <jitunwind/jitunwind.h>
#include <jitunwind/testing.h>

#include <sys/mman.h>

#include <cstdio>
#include <cstring>

static void callee() {}

int main() {
  using namespace jitunwind::x86_64;

  // long doubled(void (*f)(), long n):  push rbx; mov rbx,rsi; call rdi; lea rax,[rbx+rbx]; pop rbx; ret
  const unsigned char bytes[] = {0x53, 0x48, 0x89, 0xf3, 0xff, 0xd7, 0x48, 0x8d, 0x04, 0x1b, 0x5b, 0xc3};
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  std::memcpy(code, bytes, sizeof bytes);
  mprotect(code, 4096, PROT_READ | PROT_EXEC);

  const auto description = describe("doubled").push({0, 1}, rbx).pop({10, 11}, rbx).build();
  if (!description) return std::puts(description.error().text().c_str()), 1;
  const auto registration = jitunwind::register_code(*description, code, sizeof bytes);
  if (!registration) return std::puts(registration.error().what), 1;

  const auto report = jitunwind::check_by_stepping(
      *registration, [code] { return reinterpret_cast<long (*)(void (*)(), long)>(code)(callee, 21) == 42 ? 0 : 1; });
  std::fputs(report.text().c_str(), stdout);
  return report && report.not_run.empty() ? 0 : 1;
}
