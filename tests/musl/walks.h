/* The programs of this folder share this: code made at run time that the core knows, and the names of a walk. */
#ifndef JITUNWIND_TESTS_MUSL_WALKS_H
#define JITUNWIND_TESTS_MUSL_WALKS_H

#include <jitunwind/sdk/c/register.h>
#include <jitunwind/sdk/c/walk.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Callback)(void);
typedef void (*Code)(Callback);

static inline void fail(const char* what) {
  puts(what);
  exit(1);
}

enum { k_most_names = 16, k_name_size = 32 };
typedef struct {
  char names[k_most_names][k_name_size];
  int count;
} Names;

static inline int add_name(const ju_cursor* cursor, void* to) {
  Names* const all = (Names*)to;
  char* const name = all->names[all->count];
  if (ju_frame_name(cursor, name, k_name_size, NULL) != JU_OK) strcpy(name, "?");
  return ++all->count == k_most_names;
}

/* Walks from here; signal-safe. */
static inline void walk_names(Names* names) {
  names->count = 0;
  ju_walk_here(add_name, names, NULL);
}

/* Whether these are names of the walk, one directly after the other. */
static inline int are_named(const Names* names, const char* inner, const char* outer) {
  for (int i = 0; i + 1 < names->count; ++i)
    if (strcmp(names->names[i], inner) == 0 && strcmp(names->names[i + 1], outer) == 0) return 1;
  return 0;
}

static inline void expect_named(const Names* names, const char* inner, const char* outer) {
  if (are_named(names, inner, outer)) return;
  printf("no %s directly below %s:", inner, outer);
  for (int i = 0; i < names->count; ++i) printf(" %s", names->names[i]);
  fail("");
}

#ifndef __cplusplus
#include "tests/core/made_code.h"

static unsigned char frames[sizeof k_frames];
static ju_object* registered;

/* The code of tests/core/code.h, named made_at_run_time. */
static inline Code make_code(void) {
  unsigned char* const page = map_code(frames, 1);
  if (page == NULL) fail("no memory");
  ju_error error = {.struct_size = sizeof error};
  if (register_made(page, frames, &registered, &error) != JU_OK) fail(error.text);
  Code made;
  memcpy(&made, &page, sizeof made);
  return made;
}
#endif

#endif
