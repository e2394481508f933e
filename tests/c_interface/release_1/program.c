/* A program that was compiled with the first release's header. */
#define _GNU_SOURCE
#include "c_of_release_1.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* push rbx; call rdi; pop rbx; ret */
static const unsigned char bytes[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3};
static int mark;
static int seen;

static void walk(void) {
  ju_cursor cursor;
  ju_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  if (ju_cursor_here(&cursor, &error) != JU_OK) return;
  do {
    char name[64];
    ju_frame frame;
    frame.struct_size = sizeof frame;
    if (ju_frame_get(&cursor, &frame, &error) != JU_OK || ju_frame_name(&cursor, name, sizeof name, NULL) != JU_OK)
      break;
    if (strcmp(name, "of_release_1") == 0 && frame.origin == 1 && frame.depth == 1)
      seen = ju_frame_user(&cursor) == &mark;
  } while (ju_cursor_step(&cursor, &error) == JU_OK);
}

int main(void) {
  void* const at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ju_builder* builder = NULL;
  ju_description* description = NULL;
  ju_registration* registration = NULL;
  ju_error error;
  ju_code code;
  void (*call)(void (*)(void));
  if (at == MAP_FAILED) return 1;
  memcpy(at, bytes, sizeof bytes);
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  if (ju_check_version(100, &error) != JU_OK) return puts(error.text), 1;
  if (ju_describe(JU_CPU_HOST, "of_release_1", &builder, &error) != JU_OK) return puts(error.text), 1;
  ju_push(builder, 0, 1, JU_X86_64_RBX);
  ju_pop(builder, 3, 4, JU_X86_64_RBX);
  if (ju_build(builder, &description, &error) != JU_OK) return puts(error.text), 1;
  memset(&code, 0, sizeof code);
  code.struct_size = sizeof code;
  code.start = (uint64_t)(uintptr_t)at;
  code.size = sizeof bytes;
  code.user = &mark;
  if (ju_register(description, &code, &registration, &error) != JU_OK) return puts(error.text), 1;
  memcpy(&call, &at, sizeof call);
  call(walk);
  if (ju_cancel((ju_registration*)builder, &error) != JU_BAD_HANDLE || error.code != JU_BAD_HANDLE) return 1;
  if (ju_cancel(registration, &error) != JU_OK) return 1;
  ju_description_free(description);
  ju_builder_free(builder);
  puts(seen ? "runs" : "its code was not seen");
  return 0;
}
