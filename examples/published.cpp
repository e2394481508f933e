// Code in memory that other programs see: named and walked without a word to them.
#include <jitunwind/code_segments.h>
#include <jitunwind/jitunwind.h>

#include <execinfo.h>

#include <cstdio>
#include <cstring>

static void show_stack() {
  void* stack[16];
  backtrace_symbols_fd(stack, backtrace(stack, 16), 1);  // of the C library
}

int main() {
  using namespace jitunwind::x86_64;
  std::setvbuf(stdout, nullptr, _IONBF, 0);

  // void call_it(void (*f)()):  push rbp; push rbx; push rax; xor ebp,ebp; call rdi; pop rax; pop rbx; pop rbp; ret
  const unsigned char bytes[] = {0x55, 0x53, 0x50, 0x31, 0xed, 0xff, 0xd7, 0x58, 0x5b, 0x5d, 0xc3};
  const auto description = describe("call_it")
                               .push({0, 1}, rbp)
                               .push({1, 2}, rbx)
                               .allocate({2, 3}, 8)
                               .deallocate({-4, -3}, 8)
                               .pop({-3, -2}, rbx)
                               .pop({-2, -1}, rbp)
                               .build();
  if (!description) return std::puts(description.error().text().c_str()), 1;

  jitunwind::CodeSegments segments;
  const auto room = segments.allocate(sizeof bytes);
  if (!room) return std::puts(room.error().what), 1;
  std::memcpy(room->writable.data(), bytes, sizeof bytes);  // written here, run at room->start
  const jitunwind::Code code{.start = room->start, .size = sizeof bytes, .name = "jit_function"};
  if (const auto committed = segments.commit(*description, code); !committed)
    return std::puts(committed.error().what), 1;

  reinterpret_cast<void (*)(void (*)())>(room->start)(show_stack);
  if (!segments.release(room->start)) return 1;

  const auto status = segments.status();
  std::printf("%zu segments in %s\n", status.files, status.folder.c_str());
  if (status.refused != 0) std::printf("not published: %s\n", status.latest_refusal.what);
}
