// Throws through code made at run time that only __register_frame() was told of, as code generators do that know no
// other way. Prints what happened. Built as a library (IN_A_CONSTRUCTOR) it does that while it is loaded, on a thread
// that it waits for, and has another one cancelled: the dynamic linker's lock is taken meanwhile. A program that is
// given a library loads it.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

extern "C" void __register_frame(void* section);
extern "C" void __deregister_frame(void* section);

namespace {

int destroyed = 0;
struct Guard {
  ~Guard() { ++destroyed; }
};

void thrower() {
  const Guard guard;
  throw std::runtime_error("thrown");
}

// sub rsp,8; call rdi; add rsp,8; ret
constexpr unsigned char k_code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};

/// CIE: CFA = rsp+8, the return address below it; FDE: rsp+16 behind the first instruction; the end.
struct Section {
  explicit Section(const void* code) {
    const auto begin = reinterpret_cast<std::uint64_t>(code);
    const std::uint64_t size = sizeof k_code;
    std::memcpy(bytes + 32, &begin, sizeof begin);
    std::memcpy(bytes + 40, &size, sizeof size);
  }
  alignas(8) unsigned char bytes[64] = {
      0x14, 0, 0, 0, 0,    0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 0x0c, 7, 8, 0x90, 1, 0, 0,  // CIE
      0x1c, 0, 0, 0, 0x1c, 0, 0, 0, 0, 0,   0,   0, 0, 0,    0,  0, 0,    0,    0, 0, 0,    0, 0, 0, 0, 0x44, 0x0e, 16};
};

void throw_through_code() {
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(code, k_code, sizeof k_code);
  Section section(code);
  __register_frame(section.bytes);
  for (int i = 0; i < 3; ++i) {
    try {
      const Guard guard;
      reinterpret_cast<void (*)(void (*)())>(code)(thrower);
    } catch (const std::runtime_error& error) {
      std::printf("caught %s, destroyed %d\n", error.what(), destroyed);
    }
  }
  __deregister_frame(section.bytes);
}

#ifdef IN_A_CONSTRUCTOR
void be_cancelled() {
  pthread_t thread;
  ::pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        const Guard guard;
        for (;;) ::pause();
      },
      nullptr);
  ::usleep(10'000);  // a thread that has not begun yet is cancelled without a guard
  ::pthread_cancel(thread);
  void* result = nullptr;
  ::pthread_join(thread, &result);
  std::printf("cancelled %d, destroyed %d\n", result == PTHREAD_CANCELED, destroyed);
}

struct AtLoad {
  AtLoad() {
    std::thread(throw_through_code).join();
    be_cancelled();
    std::fflush(stdout);
  }
} at_load;
#endif

}  // namespace

#ifndef IN_A_CONSTRUCTOR
int main(int argc, char** argv) {
  if (argc < 2) {
    throw_through_code();
    return 0;
  }
  // glibc loads libgcc_s for the first thread that ends early, and would wait for the lock as well.
  std::thread([] { ::pthread_exit(nullptr); }).join();
  ::alarm(20);
  if (!::dlopen(argv[1], RTLD_NOW)) std::puts(::dlerror());
  return 0;
}
#endif
