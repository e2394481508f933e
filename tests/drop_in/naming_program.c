/* The program names a procedure made at run time by the C library's functions, by dladdr() and dladdr1() also in the
   versions that programs import which were linked before glibc 2.34. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>

#include "made_frame.h"

#ifdef __x86_64__
#define OLDER_DLADDR "GLIBC_2.2.5"
#define OLDER_DLADDR1 "GLIBC_2.3.3"
#else
#define OLDER_DLADDR "GLIBC_2.17"
#define OLDER_DLADDR1 "GLIBC_2.17"
#endif
int older_dladdr(const void* address, Dl_info* info);
int older_dladdr1(const void* address, Dl_info* info, void** extra, int flags);
__asm__(".symver older_dladdr, dladdr@" OLDER_DLADDR);
__asm__(".symver older_dladdr1, dladdr1@" OLDER_DLADDR1);

static void* listed[16];
static int count;

static void list(void) { count = backtrace(listed, 16); }

static void name(int known, const Dl_info* info) { printf("%s\n", known && info->dli_sname ? info->dli_sname : "?"); }

int main(void) {
  Dl_info info;
  void* object;
  int i;
  make_frame();
  made(list);
  name(dladdr((void*)(uintptr_t)made, &info), &info);
  name(older_dladdr((void*)(uintptr_t)made, &info), &info);
  name(dladdr1((void*)(uintptr_t)made, &info, &object, RTLD_DL_LINKMAP), &info);
  name(older_dladdr1((void*)(uintptr_t)made, &info, &object, RTLD_DL_LINKMAP), &info);
  name(dladdr((void*)(uintptr_t)&puts, &info), &info);
  fflush(stdout);
  backtrace_symbols_fd(listed, count, 1);
  for (i = 0; i < count; ++i) {
    char** const text = backtrace_symbols(listed + i, 1);
    if (text) puts(text[0]);
    free(text);
  }
  return 0;
}
