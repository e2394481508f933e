/* sljit: a program that calls it includes this file behind sljitLir.h. */
#pragma once

#include <jitunwind_jit.h>
#include <stdint.h>

typedef struct jit_frame {                  /* of a compiler; zeros at first */
  struct sljit_label *built, *returned[16]; /* behind the prologue if there are locals, and behind each return */
  int returns;
} jit_frame;
static int jit_at(struct sljit_label* l, uintptr_t code) { return l ? (int)(sljit_get_label_addr(l) - code) : 0; }
static void jit_say_return(jit_frame* f, struct sljit_label* behind) { f->returned[f->returns++ % 16] = behind; }

/* Behind sljit_generate_code(). ju_jit_take_back() stands in front of sljit_free_code(). */
static ju_jit_known* jit_announce(struct sljit_compiler* c, const jit_frame* f, uintptr_t code, const char* name) {
  /* Functions whose one return ends them share the frames of 61 shapes. One thread compiles; several need a lock. */
  static uint64_t keys[61];
  static ju_jit_frame frames[61];
  static ju_jit_mark marks_of[61][34];
  const int built = jit_at(f->built, code), keeps = c->options & 3; /* SLJIT_ENTER_KEEP */
  const uint64_t prologue = (uint64_t)c->saveds << 8 | (uint64_t)c->scratches << 2 | (uint64_t)keeps;
  const uint64_t key = (uint64_t)c->local_size << 32 | (uint64_t)built << 16 | prologue, n = key % 61;
  const int shares = f->returns == 0 && (!frames[n].serves_many || keys[n] == key);
  ju_jit_mark own_marks[17 * 19], *const marks = shares ? marks_of[n] : own_marks, *to = marks;
  ju_jit_frame own = {own_marks, 0, 0, NULL, NULL}, *const frame = shares ? &frames[n] : &own;
  int pushed[16], pushes = 0, end = 0;
  if (!frame->serves_many) {
    for (int r = SLJIT_S0 - keeps; r > SLJIT_NUMBER_OF_SCRATCH_REGISTERS; r--) {
      if (r <= SLJIT_S0 - c->saveds && r > c->scratches) continue;
      const int reg = pushed[pushes++] = sljit_get_register_index(SLJIT_GP_REGISTER, r);
      *to++ = ju_jit_x86_64(JU_JIT_PUSH, reg, end += reg < 8 ? 1 : 2, 0);
    }
    if (f->built) *to++ = ju_jit_x86_64(JU_JIT_ALLOCATE, 0, built, c->local_size);
    for (int i = 0; i == 0 || (i < f->returns && i < 16); i++) {
      int at = jit_at(f->returned[i], code) - end - 1; /* pops and ret; from the code's end if no return was said */
      if (f->returns) *to++ = ju_jit_x86_64(JU_JIT_REMEMBER, 0, 0, 0);
      if (f->built) *to++ = ju_jit_x86_64(JU_JIT_DEALLOCATE, 0, at, c->local_size);
      for (int k = pushes; k-- > 0;) *to++ = ju_jit_x86_64(JU_JIT_POP, pushed[k], at += pushed[k] < 8 ? 1 : 2, 0);
      if (f->returns) *to++ = ju_jit_x86_64(JU_JIT_RESTORE, 0, at + 1, 0);
    }
    *frame = (ju_jit_frame){marks, (size_t)(to - marks), shares, NULL, NULL};
    if (shares) keys[n] = key;
  }
  const ju_jit_code at = JU_JIT_CODE((void*)code, sljit_get_generated_code_size(c), name, frame);
  ju_jit_known* known = NULL;
  if (f->returns <= 16) ju_jit_announce(&at, &known, NULL);
  return known;
}
