/* A program of another CPU that leaves a core file: it needs no library, so that it and its core are small. Code that
   was made at run time is on its stack, described by directives; then a fault, a signal handler, and the signal that
   ends it. record says how it is built and run. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

static char code_room[4096] __attribute__((aligned(4096)));
#define mmap(at, size, protection, flags, file, offset) room_for_code(size, protection)
static void* room_for_code(size_t size, int protection);
#include "../snapshots/described/described.h"

volatile int sink;
int* volatile nowhere;

#if defined __aarch64__ || defined __riscv
enum { k_sigaction = 134, k_kill = 129, k_getpid = 172, k_mprotect = 226 };
#elif defined __mips__
enum { k_sigaction = 5013, k_kill = 5060, k_getpid = 5038, k_mprotect = 5010 };
#elif defined __powerpc64__
enum { k_sigaction = 173, k_kill = 37, k_getpid = 20, k_mprotect = 125 };
#else
enum { k_sigaction = 174, k_kill = 37, k_getpid = 20, k_mprotect = 125 };
#endif

/* syscall(2), "Architecture calling conventions". */
static inline long ask_kernel(long number, long first, long second, long third, long fourth) {
#if defined __i386__
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(first), "c"(second), "d"(third), "S"(fourth)
                   : "memory");
  return result;
#elif defined __arm__
  register long r7 __asm__("r7") = number, r0 __asm__("r0") = first, r1 __asm__("r1") = second;
  register long r2 __asm__("r2") = third, r3 __asm__("r3") = fourth;
  __asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2), "r"(r3) : "memory");
  return r0;
#elif defined __aarch64__
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = first, x1 __asm__("x1") = second;
  register long x2 __asm__("x2") = third, x3 __asm__("x3") = fourth;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#elif defined __riscv
  register long a7 __asm__("a7") = number, a0 __asm__("a0") = first, a1 __asm__("a1") = second;
  register long a2 __asm__("a2") = third, a3 __asm__("a3") = fourth;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3) : "memory");
  return a0;
#elif defined __mips__
  register long v0 __asm__("$2") = number, a0 __asm__("$4") = first, a1 __asm__("$5") = second;
  register long a2 __asm__("$6") = third, a3 __asm__("$7") = fourth;
  __asm__ volatile("syscall"
                   : "+r"(v0), "+r"(a3)
                   : "r"(a0), "r"(a1), "r"(a2)
                   : "$1", "$3", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$24", "$25", "memory");
  return v0;
#elif defined __powerpc64__
  register long r0 __asm__("r0") = number, r3 __asm__("r3") = first, r4 __asm__("r4") = second;
  register long r5 __asm__("r5") = third, r6 __asm__("r6") = fourth;
  __asm__ volatile("sc"
                   : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6)
                   :
                   : "r7", "r8", "r9", "r10", "r11", "r12", "cr0", "memory");
  return r3;
#elif defined __s390x__
  register long r1 __asm__("r1") = number, r2 __asm__("r2") = first, r3 __asm__("r3") = second;
  register long r4 __asm__("r4") = third, r5 __asm__("r5") = fourth;
  __asm__ volatile("svc 0" : "+r"(r2) : "r"(r1), "r"(r3), "r"(r4), "r"(r5) : "memory");
  return r2;
#endif
}

static void* room_for_code(size_t size, int protection) {
  ask_kernel(k_mprotect, (long)code_room, (long)size, protection, 0);
  return code_room;
}

void* memcpy(void* to, const void* from, size_t size) {
  for (size_t i = 0; i < size; ++i) ((volatile char*)to)[i] = ((const char*)from)[i];
  return to;
}
void* memset(void* to, int value, size_t size) {
  for (size_t i = 0; i < size; ++i) ((volatile char*)to)[i] = (char)value;
  return to;
}
char* strcpy(char* to, const char* from) {
  for (size_t i = 0; (((volatile char*)to)[i] = from[i]) != 0;) ++i;
  return to;
}
void abort(void) {
  ask_kernel(k_kill, ask_kernel(k_getpid, 0, 0, 0, 0), SIGKILL, 0, 0);
  for (;;) sink = 1;
}
void __aeabi_unwind_cpp_pr0(void) {}
void __aeabi_unwind_cpp_pr1(void) {}
/* qemu notices writes to code. */
void __clear_cache(void* begin, void* end) { (void)begin, (void)end; }
void _flush_cache(char* from, int size, int which) { (void)from, (void)size, (void)which; }

__attribute__((noinline)) void give_up(void) {
  ask_kernel(k_kill, ask_kernel(k_getpid, 0, 0, 0, 0), SIGABRT, 0, 0);
  sink = 1;
}
__attribute__((noinline)) void handle_fault(int signal) {
  sink = signal;
  give_up();
  sink = 2;
}

static void handle_faults(void) {
  long action[8] = {0};
#ifdef __mips__ /* flags of 4 bytes, and a mask of 16 */
  action[1] = (long)handle_fault;
  ask_kernel(k_sigaction, SIGSEGV, (long)action, 0, 16);
#else
  action[0] = (long)handle_fault;
  ask_kernel(k_sigaction, SIGSEGV, (long)action, 0, 8);
#endif
}

__attribute__((noinline)) void innermost(int n) {
  *nowhere = n;
  sink = 3;
}
__attribute__((noinline)) long middle(long n) {
  volatile char room[40];
  memset((void*)room, (int)n, sizeof room);
  innermost((int)n);
  sink = room[3];
  return n;
}
__attribute__((noinline)) long between(long n) {
  n = described_function(k_plain)(callee_of(middle), n + 1);
  ++sink;
  return n;
}
__attribute__((noinline)) long outermost(long n) {
  n = described_function(k_framed)(callee_of(between), n + 1);
  ++sink;
  return n;
}

void _start(void) {
  handle_faults();
  describe_all();
  outermost(1);
  abort();
}
