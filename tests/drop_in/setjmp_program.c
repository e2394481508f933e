/* Prints jumps of every kind. It knows only the C library and libunwind 1.6: the output is the same with the C
   library's own setjmp() and with libunwind-setjmp.so.0 in front of it. */
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "made_frame.h"

static jmp_buf buffer;
static sigjmp_buf signal_buffer;
static int value;

static void jump(void) { longjmp(buffer, value); }
static void jump_deep(void) {
  char* const room = alloca(100 + (size_t)value);
  room[0] = 0;
  made(jump);
  (void)*(volatile char*)room;
}

__attribute__((noinline)) static void jump_by(function_t how, int with) {
  /* These values stay in preserved registers across the calls. */
  register long a = random(), b = random(), c = random(), d = random();
  const long sum = a ^ b ^ c ^ d;
  int returned;
  value = with;
  returned = setjmp(buffer);
  if (returned == 0) {
    volatile char* const room = alloca(64 + 16 * (size_t)(with & 3));
    room[0] = 0;
    made(how);
  }
  printf("jumped with %d: %d, registers %s\n", with, returned, (a ^ b ^ c ^ d) == sum ? "kept" : "lost");
}

static int is_blocked(int number) {
  sigset_t mask;
  sigprocmask(SIG_BLOCK, 0, &mask);
  return sigismember(&mask, number);
}
static void on_signal(int number) {
  (void)number;
  siglongjmp(signal_buffer, 5);
}
static void raise_it(void) { raise(SIGUSR1); }

static void jump_out_of_a_handler(int save) {
  const int returned = sigsetjmp(signal_buffer, save);
  if (returned == 0) made(raise_it);
  printf("out of a handler: %d, signal %s\n", returned, is_blocked(SIGUSR1) ? "blocked" : "not blocked");
  {
    sigset_t mask;
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, &mask, 0);
  }
}

static void nested(void) {
  jmp_buf outer;
  memcpy(outer, buffer, sizeof outer);
  if (setjmp(buffer) == 0) made(jump);
  memcpy(buffer, outer, sizeof outer);
  longjmp(buffer, value + 1);
}

/* Calls itself without arguments, for which it has less on its stack than for setjmp() where arguments are pushed. */
static int level;
__attribute__((noinline)) static void call_itself(void) {
  volatile char* const room = alloca(16 + (size_t)level); /* its variables are found by a frame pointer */
  register long a = random(), b = random();
  const long sum = a ^ b;
  room[0] = 0;
  if (level++ == 0) {
    const int returned = setjmp(buffer);
    if (returned == 0) call_itself();
    printf("out of itself: %d, registers %s\n", returned, (a ^ b) == sum ? "kept" : "lost");
  } else {
    value = 6;
    made(jump);
    printf("%ld\n", a ^ b);
  }
}

int main(int argc, char** argv) {
  struct sigaction action;
  static stack_t stack;
  (void)argv;
  if (argc > 1) longjmp(buffer, 1); /* never set */
  make_frame();
  jump_by(jump, 1);
  jump_by(jump, 0);
  jump_by(jump, -7);
  jump_by(jump_deep, 2);
  jump_by(nested, 3);
  call_itself();
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, 0);
  jump_out_of_a_handler(1);
  jump_out_of_a_handler(0);
  stack.ss_size = 65536;
  stack.ss_sp = malloc(stack.ss_size);
  sigaltstack(&stack, 0);
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, 0);
  jump_out_of_a_handler(1);
  jump_out_of_a_handler(1);
  return 0;
}
