/* A program like one that was built with libunwind 1.6: it has that release's declarations and none of this project's.
   It walks through a procedure made at run time that it has registered in the layout of that release, and prints the
   names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "made_frame.h"

static void* listed[2][64];
static int lengths[2];

static void walk(void) {
  ucontext_t context;
  cursor_t cursor;
  int moved;
  REMOTE(getcontext)(&context);
  LOCAL(init_local)(&cursor, &context);
  do {
    char name[64] = "?";
    uint64_t ip = 0, offset = 0;
    LOCAL(get_reg)(&cursor, k_ip, &ip);
    LOCAL(get_proc_name)(&cursor, name, sizeof name, &offset);
    printf("%s\n", name);
    moved = LOCAL(step)(&cursor);
    if (strcmp(name, "main") == 0) break;
  } while (moved > 0);
  lengths[0] = unw_backtrace(listed[0], 64);
  lengths[1] = backtrace(listed[1], 64);
}

/* The first entry is that of the call. */
static int same_lists(void) {
  return lengths[0] > 3 && lengths[0] == lengths[1] &&
         memcmp(listed[0] + 1, listed[1] + 1, sizeof(void*) * (size_t)(lengths[0] - 1)) == 0;
}

static const char* library_of_backtrace(void) {
  Dl_info info;
  const char* slash;
  if (!dladdr((void*)(uintptr_t)&backtrace, &info)) return "?";
  slash = strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

int main(int argc, char** argv) {
  (void)argv;
  if (LOCAL(set_caching_policy)(LOCAL(local_addr_space), 1) != 0) return 2;
  make_frame();
  if (argc > 1) _U_dyn_register(&made_info); /* turns libunwind 1.6's list into a ring */
  made(walk);
  _U_dyn_cancel(&made_info);
  if (argc > 1) _U_dyn_cancel(&made_info);
  printf("%s\n", same_lists() ? "same lists" : "other lists");
  printf("backtrace of %s\n", library_of_backtrace());
  return 0;
}
