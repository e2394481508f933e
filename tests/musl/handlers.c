/* Walks in a signal handler, once at each instruction of code made at run time. The processor stops at each (SIGTRAP).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/musl/walks.h"

enum { k_instructions = 6 };
static uintptr_t begin;
static Names walks[k_instructions];
static int traps;

static void on_trap(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  const ucontext_t* const interrupted = context;
  const uintptr_t at = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP];
  if (at < begin || at >= begin + sizeof k_code) return;
  if (traps < k_instructions) walk_names(&walks[traps]);
  ++traps;
}

static void called(void) {}

static void set_trap_flag(int set) {
  __asm__ volatile("pushfq; andq $~0x100, (%%rsp); orq %0, (%%rsp); popfq" ::"r"(set ? 0x100L : 0L) : "cc", "memory");
}

/* The frame above the code. It has no red zone below its stack pointer, where the flags are pushed. */
__attribute__((noinline)) static void run(Code code) {
  volatile char room[256];
  room[0] = 0;
  set_trap_flag(1);
  code(called);
  set_trap_flag(0);
  (void)room[0];
}

int main(void) {
  const Code code = make_code();
  memcpy(&begin, &code, sizeof begin);
  if (chdir("/") != 0) fail("chdir");
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGTRAP, &action, NULL) != 0) fail("sigaction");
  run(code);
  if (traps != k_instructions) fail("not all instructions were stopped at");
  for (int i = 0; i < k_instructions; ++i) {
    expect_named(&walks[i], "made_at_run_time", "run");
    expect_named(&walks[i], "run", "main");
  }
  puts("walked at 6 instructions");
  return 0;
}
