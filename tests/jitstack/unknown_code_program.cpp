// Stands still below code that nobody knows, which keeps its caller's frame pointer (x86-64).
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>

namespace {

using Code = int (*)(int (*)());

// push rbp; mov rbp,rsp; call rdi; add eax,1; pop rbp; ret
constexpr std::array<unsigned char, 11> k_framed{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x83, 0xc0, 0x01, 0x5d, 0xc3};
volatile Code code = nullptr;
volatile int result = 0;

int stand_still() {
  code = nullptr;  // the call that led here does not tell any more where it went
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace

// -fsanitize=function would look for a signature before the code.
extern "C" __attribute__((noinline, no_sanitize("undefined"))) void calls_unknown_code() {
  result = code(stand_still) + 1;
}

int main() {
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(memory, k_framed.data(), k_framed.size());
  mprotect(memory, 4096, PROT_READ | PROT_EXEC);
  code = reinterpret_cast<Code>(memory);
  calls_unknown_code();
}
