// Machine code from anywhere: bytes, described with the builder, registered, walked.
#include <jitunwind/jitunwind.h>

#include <sys/mman.h>

#include <cstdio>
#include <cstring>

static void show_stack() {
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) std::puts(frame.name().c_str());
}

int main() {
  using namespace jitunwind::x86_64;

  // void call_it(void (*f)()):  push rbx; sub rsp,16; call rdi; add rsp,16; pop rbx; ret
  const unsigned char bytes[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  std::memcpy(code, bytes, sizeof bytes);
  mprotect(code, 4096, PROT_READ | PROT_EXEC);

  const auto description = describe("call_it")
                               .push({0, 1}, rbx)
                               .allocate({1, 5}, 16)
                               .deallocate({-6, -2}, 16)  // negative: counted from the end
                               .pop({-2, -1}, rbx)
                               .build();
  if (!description) return std::puts(description.error().text().c_str()), 1;
  std::puts(description->to_text(sizeof bytes).c_str());

  const auto registration = jitunwind::register_code(*description, code, sizeof bytes);
  if (!registration) return std::puts(registration.error().what), 1;
  reinterpret_cast<void (*)(void (*)())>(code)(show_stack);
}  // the registration ends here
