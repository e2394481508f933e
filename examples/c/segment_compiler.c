/* A JIT whose code is in segments: dladdr() of the C library, which knows nothing of jitunwind, names its functions.
   x86-64, C99. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jitunwind/c.h>
#include <stdio.h>
#include <string.h>

static void print_caller(void) {
  Dl_info info;
  if (dladdr(__builtin_return_address(0), &info) != 0 && info.dli_sname != NULL) puts(info.dli_sname);
}

typedef void (*compiled)(void (*callee)(void));

/* The integration: room for the code, its bytes, what they do to the frame, its name. */
static void* compile(ju_code_segments* segments, ju_builder* marks, const char* name, ju_error* error) {
  static const unsigned char bytes[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3}; /* push rbx; call rdi; pop rbx; ret */
  ju_code_room room;
  ju_code code;
  if (ju_code_allocate(segments, sizeof bytes, &room, error) != JU_OK) return NULL;
  memcpy(room.writable, bytes, sizeof bytes); /* written here, run at room.start */
  ju_push(marks, 0, 1, JU_X86_64_RBX);
  ju_pop(marks, 3, 4, JU_X86_64_RBX);
  ju_code_init(&code, room.start, sizeof bytes);
  code.name = name;
  return ju_code_commit_marks(segments, marks, &code, error) == JU_OK ? room.start : NULL;
}
/* The integration ends here. */

int main(void) {
  static const char* const names[] = {"first", "second"};
  ju_code_segments* segments = NULL;
  ju_builder* marks = NULL;
  ju_error error;
  ju_error_init(&error);
  if (ju_code_new(NULL, &segments, &error) != JU_OK || ju_describe_marks(JU_CPU_HOST, &marks, &error) != JU_OK)
    return fprintf(stderr, "%s\n", error.text), 1;
  for (int i = 0; i < 2; ++i) {
    void* const start = compile(segments, marks, names[i], &error);
    compiled call;
    if (start == NULL) return fprintf(stderr, "%s\n", error.text), 1;
    memcpy(&call, &start, sizeof call);
    call(print_caller);
    ju_code_release(segments, start, NULL); /* its room may have other code from now on */
  }
  ju_builder_free(marks);
  return ju_code_free(segments) == JU_OK ? 0 : 1;
}
