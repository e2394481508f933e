/* A program in C that has libjitunwind-core alone, and shows its code to debuggers. argv[1] says what it does:
   "script": shows nothing, and calls stop_here() in code that is made at run time; "stop": does so in code that the
   environment shows to debuggers; "open": is given libjitunwind.so.1 as argv[2], which it opens when debuggers know the
   code; "memory": registers while there is no memory for the files of debuggers; nothing: attaches and detaches. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jitunwind/sdk/c/process.h>
#include <jitunwind/sdk/c/register.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/core/made_code.h"

typedef void (*Callback)(void);
typedef void (*Code)(Callback);

static int left = -1; /* calls of malloc() that succeed; -1: all */

#ifdef REPLACES_MALLOC
extern void* __libc_malloc(size_t size);
void* malloc(size_t size) {
  if (left == 0) return NULL;
  if (left > 0) --left;
  return __libc_malloc(size);
}
#endif

__attribute__((noinline)) static void stop_here(void) { __asm__ volatile("" ::: "memory"); }

static int fail(const char* what) { return printf("%s\n", what), 1; }

static ju_gdb_statistics known(void) {
  ju_gdb_statistics statistics = {.struct_size = sizeof statistics};
  if (ju_gdb_statistics_get(&statistics, NULL) != JU_OK) exit(fail("no statistics"));
  return statistics;
}

static int has_library_of_cxx(void) {
  char line[4096];
  int found = 0;
  FILE* const maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) found = found || strstr(line, "libstdc++");
  return maps ? fclose(maps), found : 1;
}

static int open_later(const char* path) {
  if (has_library_of_cxx()) return fail("the C++ run-time library is there");
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail(dlerror());
  if (!has_library_of_cxx()) return fail("libjitunwind has no C++ run-time library");
  ju_status (*attach)(ju_error*) = NULL;
  *(void**)&attach = dlsym(library, "ju_attach_gdb");
  if (!attach || attach(NULL) != JU_OK) return fail("libjitunwind does not attach");
  const ju_gdb_statistics now = known();
  if (now.copies != 1 || now.procedures != 1 || now.files != 1) return fail("debuggers are told twice");
  return 0;
}

static int without_memory(unsigned char* page, unsigned char* frames) {
  for (int most = 0; most < 100; ++most) {
    ju_object* registered = NULL;
    left = most;
    const ju_status status = register_made(page, frames, &registered, NULL);
    left = -1;
    if (status != JU_OK) continue;
    const ju_gdb_statistics now = known();
    if (now.refused != 0) return now.latest_refusal == JU_OUT_OF_MEMORY ? 0 : fail("refused for another reason");
    if (ju_object_cancel(registered, NULL) != JU_OK) return fail("not cancelled");
  }
  return fail("never refused");
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  static unsigned char frames[2 * sizeof k_frames];
  unsigned char* const page = map_code(frames, 2);
  if (page == NULL) return fail("no memory");

  ju_error error = {.struct_size = sizeof error};
  ju_object* registered = NULL;
  if (register_made(page, frames, &registered, &error) != JU_OK) return fail(error.text);
  Code call;
  memcpy(&call, &page, sizeof call);
  if (strcmp(what, "script") == 0) return call(stop_here), 0;
  if (strcmp(what, "stop") != 0 && ju_attach_gdb(&error) != JU_OK) return fail(error.text);
  if (!known().attached || known().procedures != 1) return fail("debuggers do not know the code");
  call(stop_here);
  if (strcmp(what, "open") == 0 && open_later(argv[2]) != 0) return 1;
  if (strcmp(what, "memory") == 0 && without_memory(page + sizeof k_code, frames + sizeof k_frames) != 0) return 1;
  if (ju_detach_gdb(&error) != JU_OK) return fail(error.text);
  if (known().attached || known().files != 0) return fail("debuggers know it still");
  puts("shown to debuggers");
  return 0;
}
