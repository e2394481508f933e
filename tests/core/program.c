/* A program in C that has libjitunwind-core alone: code made at run time with call frame information of its own is
   registered, walked with names, refused where it is wrong, and forgotten. argv[1], if there is one, is
   libjitunwind.so.1, which is opened after that: both have one registry; or it is "wrong": a row is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jitunwind/sdk/c/register.h>
#include <jitunwind/sdk/c/walk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/core/code.h"

typedef void (*Callback)(void);
typedef void (*Code)(Callback);

static char names[8][32];
static int count;
static ju_stop_reason stopped;

static int on_frame(const ju_cursor* cursor, void* context) {
  (void)context;
  if (count < 8 && ju_frame_name(cursor, names[count], sizeof names[count], NULL) == JU_OK) ++count;
  return 0;
}

static void walk(void) {
  ju_error error = {.struct_size = sizeof error};
  stopped = ju_walk_here(on_frame, NULL, &error) == JU_OK ? JU_STOP_OUTERMOST : JU_STOP_NONE;
}

/* musl has no call frame information for the code that calls main(), where a walk ends. */
#ifdef __GLIBC__
static const ju_stop_reason k_end = JU_STOP_OUTERMOST;
#else
static const ju_stop_reason k_end = JU_STOP_NONE;
#endif

static int fail(const char* what) { return printf("%s\n", what), 1; }

static int in_both(const char* library) {
  void (*registered)(size_t*, size_t*) = NULL;
  size_t of_core = 0, of_library = 0;
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return fail(dlerror());
  *(void**)&registered = dlsym(handle, "ju_registered");
  void* const builders = dlsym(handle, "ju_describe");
  if (!registered || !builders) return fail("libjitunwind has not all functions");
  registered(&of_library, NULL);
  ju_registered(&of_core, NULL);
  return of_core == 1 && of_library == 1 ? 0 : fail("two registries");
}

int main(int argc, char** argv) {
  unsigned char* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return fail("mmap");
  memcpy(page, k_code, sizeof k_code);
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) return fail("mprotect");
  static unsigned char frames[sizeof k_frames];
  place_frames(frames, page);
  const int is_wrong = argc > 1 && strcmp(argv[1], "wrong") == 0;
  if (is_wrong) frames[k_cfa_at] = 24;

  const uint64_t begin = (uintptr_t)page, table = (uintptr_t)frames;
  const ju_range code = {begin, begin + sizeof k_code};
  const ju_function function = {begin, sizeof k_code, "made_at_run_time"};
  ju_object_code object = {.struct_size = sizeof object,
                           .code = &code,
                           .code_count = 1,
                           .eh_frame = {table, table + 8},
                           .functions = &function,
                           .function_count = 1};
  ju_error error = {.struct_size = sizeof error};
  ju_object* registered = NULL;
  if (ju_object_register(&object, &registered, &error) == JU_OK || error.text[0] == '\0')
    return fail("half a table is accepted");
  object.eh_frame.end = table + sizeof frames;
  object.code_count = SIZE_MAX / 8;
  if (ju_object_register(&object, &registered, &error) != JU_OUT_OF_MEMORY) return fail("more memory than there is");
  object.code_count = 1;
  if (ju_object_register(&object, &registered, &error) != JU_OK) return fail(error.text);

  Code call;
  memcpy(&call, &page, sizeof call);
  call(walk);
  if (stopped != k_end) return fail("the walk has another end");
  if (strcmp(names[0], "walk") != 0 || strcmp(names[1], "made_at_run_time") != 0 || strcmp(names[2], "main") != 0)
    return printf("%s %s %s\n", names[0], names[1], names[2]), 1;
  if (argc > 1 && !is_wrong && in_both(argv[1]) != 0) return 1;

  if (ju_object_cancel(registered, &error) != JU_OK) return fail(error.text);
  if (ju_may_be_registered(begin + 4)) return fail("still registered");
  puts("walked by the core");
  return 0;
}
