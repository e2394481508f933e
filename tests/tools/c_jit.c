/* A JIT in C that describes its frames by marks. */
#include <jitunwind/c.h>
#include <stdio.h>
#include <string.h>

#include "tests/tools/known_stack.h"

static void describe_frame(ju_builder* marks, int is_held) {
  if (is_held) {
    ju_push(marks, 0, 1, JU_X86_64_RBP);
    ju_set_frame_pointer(marks, 1, 4, JU_X86_64_RBP, 0);
    ju_pop(marks, 12, 13, JU_X86_64_RBP);
  } else {
    ju_push(marks, 0, 1, JU_X86_64_RBX);
    ju_push(marks, 1, 2, JU_X86_64_RBP);
    ju_allocate(marks, 2, 6, 8);
    ju_deallocate(marks, 18, 22, 8);
    ju_pop(marks, 22, 23, JU_X86_64_RBP);
    ju_pop(marks, 23, 24, JU_X86_64_RBX);
  }
}

static ju_status place(ju_builder* marks, const known_code* bytes, ju_code* code, int is_published, ju_error* error) {
  static ju_code_segments* segments;
  ju_registration* live; /* until the program ends */
  ju_code_room room;
  ju_status status;
  if (!is_published) {
    code->start = (uintptr_t)plain_memory(bytes);
    return ju_register_marks(marks, code, &live, error);
  }
  if (segments == NULL && (status = ju_code_new(NULL, &segments, error)) != JU_OK) return status;
  if ((status = ju_code_allocate(segments, bytes->size, &room, error)) != JU_OK) return status;
  memcpy(room.writable, bytes->bytes, bytes->size);
  code->start = (uintptr_t)room.start;
  return ju_code_commit_marks(segments, marks, code, error);
}

void* compile_in_c(const char* name, int is_held, int is_published) {
  static ju_builder* marks;
  const known_code* const bytes = is_held ? &k_held : &k_overwritten;
  ju_error error;
  ju_code code;
  ju_error_init(&error);
  ju_code_init(&code, NULL, bytes->size);
  code.name = name;
  if (marks == NULL && ju_describe_marks(JU_CPU_HOST, &marks, &error) != JU_OK) return NULL;
  describe_frame(marks, is_held);
  if (place(marks, bytes, &code, is_published, &error) == JU_OK) return (void*)(uintptr_t)code.start;
  fprintf(stderr, "%s\n", error.text);
  return NULL;
}
