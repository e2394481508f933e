/* Lists of return addresses: of this function's callers, and of the code that a signal has interrupted. */
#define _GNU_SOURCE
#include <libunwind.h>

#include <signal.h>
#include <stdio.h>

static int interrupted_frames;
static unsigned long interrupted_ip;

static void on_signal(int number, siginfo_t* info, void* context) {
  void* addresses[64];
  unw_cursor_t cursor;
  unw_word_t ip;
  (void)number;
  (void)info;
  interrupted_frames = unw_backtrace2(addresses, 64, context, UNW_INIT_SIGNAL_FRAME);
  unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME);
  unw_get_reg(&cursor, UNW_REG_IP, &ip);
  interrupted_ip = (unsigned long)ip;
  if (addresses[0] != (void*)ip) interrupted_frames = -1;
}

int main(void) {
  void* addresses[64];
  struct sigaction action = {0};
  const int frames = unw_backtrace(addresses, 64);
  int i;
  for (i = 0; i < frames; ++i) printf("%p\n", addresses[i]);

  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, 0);
  raise(SIGUSR1);
  printf("interrupted at %lx, %d frames\n", interrupted_ip, interrupted_frames);
  return frames >= 2 && interrupted_frames > frames ? 0 : 1;
}
