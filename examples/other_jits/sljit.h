/* sljit: a program that calls it includes this file behind sljitLir.h. */
#pragma once

#include <jitunwind_jit.h>
#include <stdint.h>

typedef struct jit_marks { /* of a compiler */
  ju_jit_mark all[256];
  struct sljit_label* behind[256]; /* `end` counts from here; null: from the code's begin */
  int count;
  int pushed[32], pushes; /* by their numbers in instructions */
} jit_marks;

static void jit_say(jit_marks* m, int does, int reg, struct sljit_label* behind, int end, int64_t value) {
  const ju_jit_mark mark = {(uint16_t)does, JU_JIT_X86_64(reg), 0, end, value};
  if (m->count == 256) return;
  m->behind[m->count] = behind;
  m->all[m->count++] = mark;
}
/* Notes the registers `from` down to `to`. */
static void jit_pushes(jit_marks* m, int from, int to) {
  for (; from >= to; --from) m->pushed[m->pushes++] = sljit_get_register_index(SLJIT_GP_REGISTER, from);
}
static void jit_say_enter(struct sljit_compiler* c, jit_marks* m) { /* behind sljit_emit_enter() */
  int end = 0;
  m->pushes = 0;
  jit_pushes(m, SLJIT_S0, SLJIT_S0 - c->saveds + 1);
  jit_pushes(m, c->scratches, SLJIT_NUMBER_OF_SCRATCH_REGISTERS + 1);
  for (int i = 0; i < m->pushes; ++i) jit_say(m, JU_JIT_PUSH, m->pushed[i], NULL, end += m->pushed[i] < 8 ? 1 : 2, 0);
  if (c->local_size > 0) jit_say(m, JU_JIT_ALLOCATE, 0, sljit_emit_label(c), 0, c->local_size);
}
static void jit_say_return(struct sljit_compiler* c, jit_marks* m) { /* behind each sljit_emit_return() */
  struct sljit_label* const behind = sljit_emit_label(c);
  int bytes = 1; /* ret */
  for (int i = 0; i < m->pushes; ++i) bytes += m->pushed[i] < 8 ? 1 : 2;
  jit_say(m, JU_JIT_REMEMBER, 0, behind, 0, 0);
  if (c->local_size > 0) jit_say(m, JU_JIT_DEALLOCATE, 0, behind, -bytes, c->local_size);
  for (int i = m->pushes; i-- > 0;)
    jit_say(m, JU_JIT_POP, m->pushed[i], behind, -(bytes -= m->pushed[i] < 8 ? 1 : 2), 0);
  jit_say(m, JU_JIT_RESTORE, 0, behind, 0, 0);
}
/* Behind sljit_generate_code(). ju_jit_take_back() stands in front of sljit_free_code(). */
static ju_jit_known* jit_announce(struct sljit_compiler* c, jit_marks* m, const void* code, const char* name) {
  ju_jit_frame frame = {m->all, (size_t)m->count, 0, NULL, NULL};
  const ju_jit_code at = JU_JIT_CODE(code, sljit_get_generated_code_size(c), name, &frame);
  ju_jit_known* known = NULL;
  for (int i = 0; i < m->count; ++i)
    if (m->behind[i] != NULL) m->all[i].end += (int)(sljit_get_label_addr(m->behind[i]) - (uintptr_t)code);
  return ju_jit_announce(&at, &known, NULL) == JU_JIT_OK ? known : NULL;
}
