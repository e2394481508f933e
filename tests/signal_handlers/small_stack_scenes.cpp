#include "tests/signal_handlers/small_stack_scenes.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstring>

#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_page = 4096;

// The functions are extern "C" for their names.

extern "C" {
using Last = void (*)();
void (*volatile small_stack_no_code)() = nullptr;
[[gnu::noinline]] void small_stack_raise() {
  ::raise(SIGUSR1);
  asm volatile("");
}
[[gnu::noinline]] void small_stack_static(int depth, Last last) {
  if (depth == 0)
    last();
  else
    small_stack_static(depth - 1, last);
  asm volatile("");
}
[[gnu::noinline]] void small_stack_null() {
#ifdef __x86_64__
  // The word behind the return address looks like a return address, too.
  asm volatile("movq $0x10000, -16(%%rsp)" ::: "memory");
#endif
  small_stack_no_code();
  asm volatile("");
}
// Only its bytes identify this code, and the slot cannot be read.
asm(R"(
        .text
        .type small_stack_plt, @function
small_stack_plt:
        endbr64
        jmp *small_stack_slot(%rip)
        .size small_stack_plt, . - small_stack_plt
)");
void small_stack_plt();
// There are more remembered rows than a reader with room for four holds (compact_cfi.cpp). libgcc takes some 270 bytes
// of the stack for each.
asm(R"(
        .text
        .type small_stack_states, @function
small_stack_states:
        .cfi_startproc
        push %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        .rept 6
        nop
        .cfi_remember_state
        .endr
        call small_stack_raise
        pop %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        ret
        .rept 6
        .cfi_restore_state
        nop
        .endr
        .cfi_endproc
        .size small_stack_states, . - small_stack_states
)");
void small_stack_states();
alignas(4096) char small_stack_slot[4096];
[[gnu::noinline]] void small_stack_call_plt() {
  ::mprotect(small_stack_slot, sizeof small_stack_slot, PROT_NONE);
  small_stack_plt();
  asm volatile("");
}
void small_stack_on_other_signal(int) {
  ::raise(SIGUSR1);
  asm volatile("");
}
volatile int small_stack_endless = 1 << 30;
[[gnu::noinline]] int small_stack_overflow(int depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  return (depth < small_stack_endless ? small_stack_overflow(depth + 1) : 0) + room[0];
}
}

void call_through(const JitFrame& frame) {
  frame([](void*) -> void* { return small_stack_static(2, &small_stack_raise), nullptr; }, nullptr);
}

/// Nothing describes this code. The call of it tells where it begins, and the call in it tells the callee.
void call_through_unknown_code() {
  // push rbx; call [rip+2]; pop rbx; ret; the address of what is called.
  constexpr unsigned char k_code[] = {0x53, 0xff, 0x15, 0x02, 0, 0, 0, 0x5b, 0xc3};
  static void* code = nullptr;
  if (!code) {
    code = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(code, k_code, sizeof k_code);
    const Last last = &small_stack_raise;
    std::memcpy(static_cast<char*>(code) + sizeof k_code, &last, sizeof last);
  }
  asm volatile("call *%0" ::"m"(code) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

void call_through_library(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW);
  const auto call = reinterpret_cast<int (*)(int (*)(int), int)>(::dlsym(library, "debug_frame_calls"));
  call([](int i) { return small_stack_raise(), i; }, 1);
}

const Scene k_scenes[] = {
    {"static code", "small_stack_static", [] { small_stack_static(8, &small_stack_raise); }},
    {"directives", "jit_frame", [] { call_through(JitFrame()); }},
    {"directives with many states", "jit_frame", [] { call_through(JitFrame(JitFrame::ManyStates{})); }},
    {"rows that are remembered", "small_stack_states", [] { small_stack_static(2, &small_stack_states); }, false, true},
    {"a row", "jit_frame", [] { call_through(JitFrame("cfa=rsp+32 rbp=[cfa-24] rbx=[cfa-16] ra=[cfa-8]")); }},
    {"ALIAS", "jit_frame",
     [] {
       const JitFrame other;
       call_through(JitFrame(JitFrame::AliasOf{other.return_address()}));
     }},
    {"unknown code", "small_stack_raise", &call_through_unknown_code, true},
    {"a call of null", "small_stack_null", [] { small_stack_static(3, &small_stack_null); }, true},
    {"a linkage stub", "small_stack_call_plt", [] { small_stack_static(3, &small_stack_call_plt); }, false, true},
    {"another handler", "small_stack_on_other_signal",
     [] {
       ::signal(SIGUSR2, &small_stack_on_other_signal);
       ::raise(SIGUSR2);
     }},
    {"a stack that has overflowed", "small_stack_overflow",
     [] {
       rlimit small{256 << 10, 256 << 10};
       ::setrlimit(RLIMIT_STACK, &small);
       small_stack_overflow(0);
     }},
    {".debug_frame", "debug_frame_calls", [] { call_through_library(DEBUG_FRAME_PLAIN); }, false, true},
    {".debug_frame of zlib", "debug_frame_calls", [] { call_through_library(DEBUG_FRAME_ZLIB); }, false, true},
#ifdef DEBUG_FRAME_ZSTD
    {".debug_frame of zstd", "debug_frame_calls", [] { call_through_library(DEBUG_FRAME_ZSTD); }, false, true},
#endif
};

}  // namespace

std::span<const Scene> small_stack_scenes() { return k_scenes; }

}  // namespace jitunwind::test
