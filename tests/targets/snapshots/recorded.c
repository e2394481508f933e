/* A program of another CPU that tells of itself in a signal handler: its registers, its stack, and the stack that its
   own unwinder (libgcc's) walks. Some of its code is made at run time and described by directives, which libgcc knows
   nothing of: whoever calls such code has walked its own stack before, by the same instruction. record says how it is
   built and run. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "described/described.h"

enum { k_trampolines = 32, k_most_frames = 64, k_most_kept = 32, k_levels = 4 };

static volatile int sink;
static const char* top;        /* end of the part of the stack that is printed */
extern void* __libc_stack_end; /* SP when the program began */

static void print_bytes(const char* what, const void* from, size_t size) {
  const unsigned char* bytes = from;
  printf("%s ", what);
  for (size_t i = 0; i < size; ++i) printf("%02x", bytes[i]);
  putchar('\n');
}

static void print_memory(const char* what, const void* from, size_t size) {
  printf("%s %lx ", what, (unsigned long)(uintptr_t)from);
  print_bytes("", from, size);
}

/* The part of a stack that libgcc sees, down to code that it does not know. */
struct part {
  int count;
  struct {
    uintptr_t ip, cfa;
  } frames[k_most_frames];
  uintptr_t kept[k_most_kept]; /* in the first frame: registers that calls preserve, k_preserved */
};
static struct part parts[k_levels]; /* the outermost first */
static int level = -1;
static uintptr_t behind; /* where the last caller that was made at run time continues, if any */

static int skipped;

static _Unwind_Reason_Code note_frame(struct _Unwind_Context* context, void* skip) {
  struct part* part = &parts[level];
  int before = 0;
  uintptr_t ip = (uintptr_t)_Unwind_GetIPInfo(context, &before);
  uintptr_t cfa = (uintptr_t)_Unwind_GetCFA(context);
#ifdef __mips__ /* libgcc adds 2 to an interrupted address */
  before = (ip & 2) != 0;
  ip &= ~(uintptr_t)2;
#endif
#if defined __aarch64__ || defined __mips__ || \
    defined __riscv /* the trampoline's CFA is not the interrupted code's SP */
  if (before) cfa = 0;
#endif
#ifdef __arm__ /* libgcc tells an address that is no CFA */
  cfa = 0;
#endif
  if (skipped++ < *(int*)skip || ip == 0 || part->count == k_most_frames) return _URC_NO_REASON;
  if (part->count == 0)
    for (size_t i = 0; i < sizeof k_preserved / sizeof k_preserved[0]; ++i)
      part->kept[i] = (uintptr_t)_Unwind_GetGR(context, k_preserved[i]);
  part->frames[part->count].ip = ip;
  part->frames[part->count++].cfa = cfa;
  return _URC_NO_REASON;
}

/* ARM's libgcc does not tell of a frame that it does not know. */
static void note_part(int skip) {
  struct part* part = &parts[++level];
  skipped = 0;
  _Unwind_Backtrace(note_frame, &skip);
#ifdef __arm__
  if (behind != 0) part->frames[part->count++].ip = behind;
#else
  (void)part;
#endif
}

static __attribute__((noinline)) long note(function callee, long n) {
  (void)callee;
  note_part(1);
  sink = (int)n;
  return 0;
}

static void print_kept(const struct part* part) {
  for (size_t i = 0; i < sizeof k_preserved / sizeof k_preserved[0]; ++i)
    printf("kept %x %lx\n", k_preserved[i], (unsigned long)part->kept[i]);
}

#ifdef __powerpc64__
/* libgcc may know nothing of signal frames. Each frame's first word leads to its caller's frame, in which the callee
   has saved the return address. The last frame is no procedure's. */
static void print_stack(const ucontext_t* interrupted) {
  unsigned long sp = interrupted->uc_mcontext.gp_regs[1];
  printf("frame %lx %lx %s\n", interrupted->uc_mcontext.gp_regs[32], sp,
         described_name(interrupted->uc_mcontext.gp_regs[32]));
  for (unsigned long next; (next = *(const unsigned long*)sp) != 0; sp = next) {
    const unsigned long ip = ((const unsigned long*)sp)[2];
    if (*described_name(ip)) {
      printf("frame %lx %lx %s\n", ip, sp, described_name(ip));
      continue;
    }
    printf("sp %lx\n", sp);
    for (int i = 0; i <= level; ++i)
      if (parts[i].frames[0].cfa == sp) print_kept(&parts[i]);
  }
}
#else
static void print_stack(const ucontext_t* interrupted) {
  behind = 0;
  note_part(2); /* this handler and the trampoline are left out */
#ifdef __arm__
  parts[level].frames[0].ip = interrupted->uc_mcontext.arm_pc;
  parts[level].count = 1;
#else
  (void)interrupted;
#endif
  for (int l = level; l >= 0; --l)
    for (int i = 0; i < parts[l].count; ++i) {
      const uintptr_t ip = parts[l].frames[i].ip;
      printf("frame %lx %lx %s\n", (unsigned long)ip, (unsigned long)parts[l].frames[i].cfa, described_name(ip));
      if (i == 0 && l != level) print_kept(&parts[l]);
    }
}
#endif

static void tell(int signal, siginfo_t* info, void* context) {
  const ucontext_t* interrupted = context;
  const char* const here = (const char*)context;
  (void)signal, (void)info;
  print_bytes("ucontext", interrupted, sizeof *interrupted);
  print_memory("stack", here, (size_t)(top - here));
  /* The trampoline of the other handler may lie beside this one's. */
  const uintptr_t trampoline =
      (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) & ~(uintptr_t)(k_trampolines - 1);
  print_memory("trampoline", (const void*)trampoline, k_trampolines);
  print_memory("code", described_code, k_described_code);
  print_memory("written", &described, sizeof described);
  print_memory("written", &described_list, sizeof described_list);
  print_stack(interrupted);
  fflush(stdout);
  _exit(0);
}

/* Walks, then calls the code made at run time, both times by the same instruction with the same registers. */
static __attribute__((noinline)) long call_described(int which, function callee, long n) {
  long (*volatile const both[2])(function, long) = {note, described_function(which)};
  long a = 0x1111, b = 0x2222, c = 0x3333, d = 0x4444, e = 0x5555, f = 0x6666, result = 0;
#pragma GCC unroll 1
  for (volatile int i = 0; i < 2; ++i) {
    __asm__ volatile("" : "+r"(a), "+r"(b));
    __asm__ volatile("" : "+r"(c), "+r"(d));
    __asm__ volatile("" : "+r"(e), "+r"(f));
    result = both[i](callee, n);
    __asm__ volatile("" : "+r"(a), "+r"(b));
    __asm__ volatile("" : "+r"(c), "+r"(d));
    __asm__ volatile("" : "+r"(e), "+r"(f));
  }
  return result + (a + b + c + d + e + f == 0);
}

static void note_caller(void* return_address) { behind = (uintptr_t)__builtin_extract_return_addr(return_address); }

__attribute__((noinline)) void innermost(int n) {
  volatile char room[40];
  memset((void*)room, n, sizeof room);
  sink = room[3];
  call_described(k_trapping, callee_of(0), 1);
  sink = room[4];
}
__attribute__((noinline)) void in_handler(int signal) {
  innermost(signal);
  sink++;
}
static __attribute__((noinline)) long interrupted(long n) {
  note_caller(__builtin_return_address(0));
  sink = (int)n;
  raise(SIGUSR1);
  sink++;
  return n;
}
static __attribute__((noinline)) long between(long n) {
  note_caller(__builtin_return_address(0));
  n = call_described(k_plain, callee_of(interrupted), n + 1);
  sink++;
  return n;
}
__attribute__((noinline)) void with_alloca(int n) {
  volatile char* room = __builtin_alloca((size_t)n);
  room[0] = 1;
  call_described(k_framed, callee_of(between), room[0]);
  sink = room[0];
}
__attribute__((noinline)) int recursive(int n, double kept) {
  volatile double twice = kept * 2;
  if (n == 0) {
    with_alloca(100);
    return 1;
  }
  const int depth = recursive(n - 1, twice) + 1;
  sink = (int)twice;
  return depth;
}

static long twice(long n) { return 2 * n; }

int main(void) {
  top =
      (const char*)__libc_stack_end + 192; /* the first procedure's caller has room for registers there, on some CPUs */
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = in_handler; /* some CPUs have smaller frames for handlers without SA_SIGINFO */
  sigaction(SIGUSR1, &action, 0);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = tell;
  sigaction(SIGILL, &action, 0);
  sigaction(SIGTRAP, &action, 0);
  setvbuf(stdout, 0, _IOFBF, 1 << 16);
  printf("\n");
  describe_all();
  if (described_function(k_framed)(callee_of(twice), 21) != 42 || described_function(k_plain)(callee_of(twice), 4) != 8)
    return 1;
  return recursive(2, 1.5) == 3 ? 0 : 1;
}
