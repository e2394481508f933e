/* Walks out of a signal handler as programs of libunwind 1.6 do. It prints, for each frame outside of the C library,
   the result of unw_is_signal_frame, the name of unw_get_proc_name, and the dynamic linker's name for the place. A
   return address is behind the call, so programs subtract 1 from the address of all but signal frames. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "release_1_6.h"

void stripped_exported(void (*function)(void));

/* Faults at its first byte, in front of which lies another function. */
void in_front_of_it(void);
void faults(void);
__asm__(
    "        .text\n"
    "        .globl in_front_of_it\n"
    "        .type in_front_of_it, %function\n"
    "in_front_of_it:\n"
    "        .cfi_startproc\n"
    "        nop\n"
    "        .cfi_endproc\n"
    "        .size in_front_of_it, . - in_front_of_it\n"
    "        .globl faults\n"
    "        .type faults, %function\n"
    "faults:\n"
    "        .cfi_startproc\n"
    "        " TRAP
    "\n"
    "        .cfi_endproc\n"
    "        .size faults, . - faults\n");

static int print_frame(cursor_t* cursor) {
  Dl_info place;
  char name[64] = "?";
  uint64_t ip = 0, offset = 0;
  const int is_signal_frame = LOCAL(is_signal_frame)(cursor);
  LOCAL(get_reg)(cursor, k_ip, &ip);
  if (!is_signal_frame) --ip;
  memset(&place, 0, sizeof place);
  dladdr((void*)(uintptr_t)ip, &place);
  if (place.dli_fname && strstr(place.dli_fname, "/libc.so")) {
    printf("C library, signal frame %d\n", is_signal_frame);
    return 1;
  }
  LOCAL(get_proc_name)(cursor, name, sizeof name, &offset);
  printf("%s+%lu, signal frame %d, in %s\n", name, (unsigned long)offset, is_signal_frame,
         place.dli_sname ? place.dli_sname : "?");
  return strcmp(name, "main") != 0;
}

static void handler(int number, siginfo_t* info, void* interrupted) {
  ucontext_t here;
  cursor_t cursor;
  (void)number, (void)info;
  REMOTE(getcontext)(&here);
  LOCAL(init_local)(&cursor, &here);
  while (print_frame(&cursor) && LOCAL(step)(&cursor) > 0) continue;
  printf("from the context\n");
  LOCAL(init_local2)(&cursor, interrupted, 1);
  print_frame(&cursor);
  fflush(stdout);
  _exit(0);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, 0);
  stripped_exported(faults);
  return 1;
}
