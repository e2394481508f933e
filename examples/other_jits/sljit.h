/* sljit: a program that calls it includes this file behind sljitLir.h. */
#pragma once

#include <jitunwind_jit.h>
#include <stdint.h>

enum { JIT_MOST_RETURNS = 16 };
typedef struct jit_frame { /* of a compiler */
  int pushed[16], pushes;  /* by their numbers in instructions */
  int local_size;
  struct sljit_label *built, *returned[JIT_MOST_RETURNS]; /* behind the prologue, and behind each return */
  int returns;
} jit_frame;

/* Notes the registers `from` down to `to`. */
static void jit_pushes(jit_frame* f, int from, int to) {
  for (; from >= to; --from) f->pushed[f->pushes++] = sljit_get_register_index(SLJIT_GP_REGISTER, from);
}
static void jit_say_enter(struct sljit_compiler* c, jit_frame* f) { /* behind sljit_emit_enter() */
  f->pushes = f->returns = 0;
  f->local_size = c->local_size;
  jit_pushes(f, SLJIT_S0, SLJIT_S0 - c->saveds + 1);
  jit_pushes(f, c->scratches, SLJIT_NUMBER_OF_SCRATCH_REGISTERS + 1);
  if (f->local_size > 0) f->built = sljit_emit_label(c);
}
static void jit_say_return(struct sljit_compiler* c, jit_frame* f) { /* behind each sljit_emit_return() */
  struct sljit_label* const behind = sljit_emit_label(c);
  if (f->returns < JIT_MOST_RETURNS) f->returned[f->returns] = behind;
  ++f->returns;
}
static int jit_bytes(int pushed) { return pushed < 8 ? 1 : 2; }
static ju_jit_mark* jit_say(ju_jit_mark* to, int does, int reg, int end, int64_t value) {
  const ju_jit_mark mark = {(uint16_t)does, JU_JIT_X86_64(reg), 0, end, value};
  *to = mark;
  return to + 1;
}
/* Behind sljit_generate_code(). ju_jit_take_back() stands in front of sljit_free_code(). */
static ju_jit_known* jit_announce(struct sljit_compiler* c, const jit_frame* f, const void* code, const char* name) {
  ju_jit_mark marks[(JIT_MOST_RETURNS + 1) * 19], *to = marks;
  ju_jit_known* known = NULL;
  int end = 0, pops = 1; /* ret */
  for (int i = 0; i < f->pushes; ++i) to = jit_say(to, JU_JIT_PUSH, f->pushed[i], end += jit_bytes(f->pushed[i]), 0);
  if (f->local_size > 0)
    to = jit_say(to, JU_JIT_ALLOCATE, 0, (int)(sljit_get_label_addr(f->built) - (uintptr_t)code), f->local_size);
  pops += end;
  for (int n = 0; n < f->returns && n < JIT_MOST_RETURNS; ++n) {
    int at = (int)(sljit_get_label_addr(f->returned[n]) - (uintptr_t)code) - pops;
    to = jit_say(to, JU_JIT_REMEMBER, 0, 0, 0);
    if (f->local_size > 0) to = jit_say(to, JU_JIT_DEALLOCATE, 0, at, f->local_size);
    for (int i = f->pushes; i-- > 0;) to = jit_say(to, JU_JIT_POP, f->pushed[i], at += jit_bytes(f->pushed[i]), 0);
    to = jit_say(to, JU_JIT_RESTORE, 0, at + 1, 0);
  }
  ju_jit_frame frame = {marks, (size_t)(to - marks), 0, NULL, NULL};
  const ju_jit_code at = JU_JIT_CODE(code, sljit_get_generated_code_size(c), name, &frame);
  if (f->returns > JIT_MOST_RETURNS) return NULL;
  return ju_jit_announce(&at, &known, NULL) == JU_JIT_OK ? known : NULL;
}
