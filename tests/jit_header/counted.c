/* counted WORK COUNT: does one thing so often. counted_test.cpp counts its instructions. */
#include <jitunwind/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "announcer.h"

static char code[64];
static ju_jit_frame frame = {marks_of_twice, 2, 1, NULL, NULL};
static ju_jit_frame frame_of_one = {marks_of_twice, 2, 0, NULL, NULL};

static void must(int result) {
  if (result != 0) abort();
}

/* Each loop is the empty one and a call. */
#define OFTEN(call)                                               \
  for (long i = 0; i < count; ++i) {                              \
    call;                                                         \
    __asm__ volatile("" : : : "memory"); /* so often, not once */ \
  }

static void announce(ju_jit_frame* by, long count, int takes_back) {
  const ju_jit_code at = JU_JIT_CODE(code, sizeof code, "counted", by);
  for (long i = 0; i < count; ++i) {
    ju_jit_known* known = NULL;
    must(ju_jit_announce(&at, &known, NULL));
    if (takes_back) must(ju_jit_take_back(known, NULL));
  }
}

static void say(ju_builder* to) {
  ju_push(to, 0, 1, JU_X86_64_RBX);
  ju_pop(to, -2, -1, JU_X86_64_RBX);
}

static void register_code(long count, int cancels) {
  ju_builder* builder = NULL;
  ju_description* description = NULL;
  ju_code at;
  must((int)ju_describe(JU_CPU_HOST, NULL, &builder, NULL));
  say(builder);
  must((int)ju_build(builder, &description, NULL));
  ju_code_init(&at, code, sizeof code);
  at.name = "counted";
  for (long i = 0; i < count; ++i) {
    ju_registration* registration = NULL;
    must((int)ju_register(description, &at, &registration, NULL));
    if (cancels) must((int)ju_cancel(registration, NULL));
  }
}

static void register_marks(long count) {
  ju_builder* marks = NULL;
  ju_code at;
  must((int)ju_describe_marks(JU_CPU_HOST, &marks, NULL));
  ju_code_init(&at, code, sizeof code);
  at.name = "counted";
  for (long i = 0; i < count; ++i) {
    ju_registration* registration = NULL;
    say(marks);
    must((int)ju_register_marks(marks, &at, &registration, NULL));
    must((int)ju_cancel(registration, NULL));
  }
}

int main(int argc, char** argv) {
  const char* const work = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? atol(argv[2]) : 0;
  const ju_jit_code at = JU_JIT_CODE(code, sizeof code, "counted", &frame);
  ju_jit_known* known = NULL;
  ju_jit_room room;
  if (strcmp(work, "nothing") == 0) OFTEN((void)0);
  ju_jit_announce(NULL, NULL, NULL); /* looks */
  if (strcmp(work, "wanted") == 0) OFTEN(if (ju_jit_wanted()) abort());
  if (strcmp(work, "announce") == 0) OFTEN(ju_jit_announce(&at, &known, NULL));
  if (strcmp(work, "take_back") == 0) OFTEN(ju_jit_take_back(NULL, NULL));
  if (strcmp(work, "moved") == 0) OFTEN(ju_jit_moved(&known, &at, NULL));
  if (strcmp(work, "forget") == 0) OFTEN(ju_jit_forget(&frame));
  if (strcmp(work, "allocate") == 0) OFTEN(ju_jit_allocate(64, &room, NULL));
  if (strcmp(work, "commit") == 0) OFTEN(ju_jit_commit(&at, NULL));
  if (strcmp(work, "release") == 0) OFTEN(ju_jit_release(code, NULL));
  if (strcmp(work, "header") == 0) announce(&frame, count, 1);
  if (strcmp(work, "header_of_one") == 0) announce(&frame_of_one, count, 1);
  if (strcmp(work, "header_alone") == 0) announce(&frame, count, 0);
  if (strcmp(work, "interface") == 0) register_code(count, 1);
  if (strcmp(work, "interface_alone") == 0) register_code(count, 0);
  if (strcmp(work, "interface_of_one") == 0) register_marks(count);
  return 0;
}
