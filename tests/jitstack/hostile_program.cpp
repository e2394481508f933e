// A hostile process: its thread's name has characters that terminals obey, and it stands in code that nothing knows.
// main -> outer -> inner -> stand_in_unknown_code; outer and inner are bytes in anonymous memory.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

extern "C" [[gnu::noinline]] void stand_in_unknown_code() {
  (void)!::write(STDOUT_FILENO, "ready\n", 6);
  for (;;) ::pause();
}

int main() {
  ::prctl(PR_SET_NAME, "\033[31m<red>\n");
  const unsigned char bytes[] = {
      0x48, 0x83, 0xec, 0x08,        // outer: sub rsp, 8
      0xe8, 0x07, 0x00, 0x00, 0x00,  // call inner
      0x48, 0x83, 0xc4, 0x08,        // add rsp, 8
      0xc3, 0x90, 0x90,              // ret
      0x48, 0x83, 0xec, 0x08,        // inner: sub rsp, 8
      0xff, 0xd7,                    // call rdi
      0x48, 0x83, 0xc4, 0x08,        // add rsp, 8
      0xc3,                          // ret
  };
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  std::memcpy(code, bytes, sizeof bytes);
  if (::mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  // The call's register has another value by now, so nothing can confirm that outer was called here.
  void* called = code;
  void (*argument)() = stand_in_unknown_code;
  asm volatile("call *%0" : "+a"(called), "+D"(argument) : : "memory", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11");
}
