/* A program of 32-bit x86 whose two threads stand in signal handlers above code that was made at run time, one for each
   kind of signal frame: i386_program [crash | exec | told | far]. It executes a program of the machine's own at
   SIGALRM. "told": it tells GDB of the main thread's code. "far": the other thread is in 64-bit code. Compilers of
   x86-64 machines build it, and the machines run it, with no library but the one that starts it. */
#define _GNU_SOURCE
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "i386_told.h"
#include "snapshots/described/described.h"

volatile int sink;
static int crashes;
static volatile int standing;
int* volatile nowhere;

__attribute__((noinline)) void stand_still(int signal) {
  static const char k_ready[] = "ready\n";
  if (__atomic_add_fetch(&standing, 1, __ATOMIC_SEQ_CST) == 2 && write(1, k_ready, sizeof k_ready - 1) < 0) _exit(1);
  while (crashes && signal == SIGUSR1)
    if (standing == 2) nowhere[9] = 1;
  for (;;) pause();
}
static void execute(int signal) {
  (void)signal;
  execl("/bin/sleep", "sleep", "1000", (char*)0);
}
__attribute__((noinline)) void handle(int signal) {
  stand_still(signal);
  sink = 1;
}
__attribute__((noinline)) void handle_with_information(int signal, siginfo_t* info, void* context) {
  (void)info, (void)context;
  stand_still(signal);
  sink = 2;
}
__attribute__((noinline)) long middle(long signal) {
  raise((int)signal);
  sink = 3;
  return signal;
}
__attribute__((noinline)) long between(long signal) {
  signal = described_function(k_plain)(middle, signal);
  ++sink;
  return signal;
}
__attribute__((noinline)) void* outermost(void* signal) {
  const long n = described_function(k_framed)(between, (long)signal);
  ++sink;
  return (void*)n;
}

/* The selector of 64-bit code is the same for all programs: __USER_CS of asm/segment.h. The code there waits for a
   signal by the 64-bit system call pause(). */
__attribute__((noinline)) void* go_far(void* unused) {
  (void)unused;
  __atomic_add_fetch(&standing, 1, __ATOMIC_SEQ_CST);
  __asm__ volatile("ljmp $0x33, $1f\n.code64\n1: movl $34, %eax\nsyscall\njmp 1b\n.code32\n");
  return 0;
}

static int is_told(int argument_count, char** arguments, const char* what) {
  return argument_count > 1 && strcmp(arguments[1], what) == 0;
}

__attribute__((noinline)) void start(int argument_count, char** arguments) {
  struct sigaction action;
  pthread_t thread;
  const int is_far = is_told(argument_count, arguments, "far");
  crashes = is_told(argument_count, arguments, "crash");
  describe_all();
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  sigaction(SIGUSR2, &action, 0);
  action.sa_handler = execute;
  sigaction(SIGALRM, &action, 0);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = handle_with_information;
  sigaction(SIGUSR1, &action, 0);
  if (pthread_create(&thread, 0, is_far ? go_far : outermost, (void*)SIGUSR2) != 0) _exit(1);
  while (is_far && standing == 0) usleep(1000);
  if (is_told(argument_count, arguments, "told")) sink = (int)told_function()(middle, SIGUSR1);
  outermost((void*)SIGUSR1);
  _exit(1);
}

/* The stack begins with the number of arguments and the arguments. This function has no caller. */
__asm__(
    ".globl _start\n.type _start, @function\n_start:\n"
    ".cfi_startproc\n.cfi_undefined eip\n"
    "movl (%esp), %eax\nleal 4(%esp), %edx\nandl $-16, %esp\nsubl $8, %esp\npushl %edx\npushl %eax\ncall start\nhlt\n"
    ".cfi_endproc\n.size _start, . - _start\n");
