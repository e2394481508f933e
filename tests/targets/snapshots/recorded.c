/* A program of another CPU that tells of itself in a signal handler: its registers, its stack, and the stack that its
   own unwinder (libgcc's) walks. record says how it is built and run. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

enum { k_trampolines = 32 }; /* bytes */

static volatile int sink;
static const char* top;        /* of the stack, as far as it is told */
extern void* __libc_stack_end; /* SP when the program began */

static void print_bytes(const char* what, const void* from, size_t size) {
  const unsigned char* bytes = from;
  printf("%s ", what);
  for (size_t i = 0; i < size; ++i) printf("%02x", bytes[i]);
  putchar('\n');
}

#ifndef __powerpc64__
static int frames;

static _Unwind_Reason_Code print_frame(struct _Unwind_Context* context, void* handler_frames) {
  int before = 0;
  uintptr_t ip = (uintptr_t)_Unwind_GetIPInfo(context, &before);
  uintptr_t cfa = (uintptr_t)_Unwind_GetCFA(context);
#ifdef __mips__ /* where a signal has interrupted it says so by 2 more than the address */
  before = (ip & 2) != 0;
  ip &= ~(uintptr_t)2;
#endif
#if defined __aarch64__ || defined __mips__ || \
    defined __riscv /* CFA of the trampoline is not SP of what was interrupted */
  if (before) cfa = 0;
#endif
  /* The frames of the handler, and the trampoline, are not told; nor what is behind the program's entry. */
  if (frames++ >= *(int*)handler_frames && ip != 0) printf("frame %lx %lx\n", (unsigned long)ip, (unsigned long)cfa);
  return _URC_NO_REASON;
}
#endif

static void tell(int signal, siginfo_t* info, void* context) {
  const ucontext_t* interrupted = context;
  const char* const here = (const char*)context;
  (void)signal, (void)info;
  print_bytes("ucontext", interrupted, sizeof *interrupted);
  printf("stack %lx ", (unsigned long)(uintptr_t)here);
  print_bytes("", here, (size_t)(top - here));
  /* That of the other handler may stand beside this handler's. */
  const uintptr_t trampoline =
      (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) & ~(uintptr_t)(k_trampolines - 1);
  printf("trampoline %lx ", (unsigned long)trampoline);
  print_bytes("", (const void*)trampoline, k_trampolines);
#ifdef __powerpc64__
  /* libgcc may know nothing of its signal frames. Each frame's first word leads to its caller's; the last is no
     procedure's. */
  for (unsigned long sp = interrupted->uc_mcontext.gp_regs[1], next; (next = *(const unsigned long*)sp) != 0; sp = next)
    printf("sp %lx\n", sp);
#else
  int handler_frames = 2; /* this one and the trampoline */
  _Unwind_Backtrace(print_frame, &handler_frames);
#endif
  fflush(stdout);
}

__attribute__((noinline)) void innermost(int n) {
  volatile char room[40];
  memset((void*)room, n, sizeof room);
  sink = room[3];
  raise(SIGUSR2);
  sink = room[4];
}
__attribute__((noinline)) void in_handler(int signal) {
  innermost(signal);
  sink++;
}
__attribute__((noinline)) void interrupted(int n) {
  sink = n;
  raise(SIGUSR1);
  sink++;
}
__attribute__((noinline)) void with_alloca(int n) {
  volatile char* room = __builtin_alloca((size_t)n);
  room[0] = 1;
  interrupted(room[0]);
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

int main(void) {
  top =
      (const char*)__libc_stack_end + 192; /* the first procedure's caller has room for registers there, on some CPUs */
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = in_handler; /* some CPUs have smaller frames for handlers without SA_SIGINFO */
  sigaction(SIGUSR1, &action, 0);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = tell;
  sigaction(SIGUSR2, &action, 0);
  setvbuf(stdout, 0, _IOFBF, 1 << 16);
  printf("\n");
  return recursive(2, 1.5) == 3 ? 0 : 1;
}
