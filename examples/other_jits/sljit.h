/* sljit: a program that calls it includes this file behind sljitLir.h. */
#pragma once

#include <jitunwind_jit.h>
#include <stdint.h>

enum { JIT_MOST_RETURNS = 16, JIT_MOST_SAVED = 16, JIT_SHAPES = 64 };
typedef struct jit_frame { /* of a compiler */
  int saveds, scratches, local_size;
  struct sljit_label *built, *returned[JIT_MOST_RETURNS]; /* behind the prologue, and behind each return */
  int returns;
} jit_frame;
typedef struct jit_shape { /* of all functions with one return, which ends them */
  int saveds, scratches, local_size, built;
  ju_jit_frame frame; /* serves many, from the first of them on */
  ju_jit_mark marks[2 * (JIT_MOST_SAVED + 1)];
} jit_shape;
static jit_shape jit_shapes[JIT_SHAPES]; /* one thread compiles; several need a lock */

static void jit_say_enter(struct sljit_compiler* c, jit_frame* f) { /* behind sljit_emit_enter() */
  f->saveds = c->saveds;
  f->scratches = c->scratches;
  f->local_size = c->local_size;
  f->returns = 0;
  if (f->local_size > 0) f->built = sljit_emit_label(c);
}
/* Behind each sljit_emit_return(). A function with one return, which is its last instruction, does without. */
static void jit_say_return(struct sljit_compiler* c, jit_frame* f) {
  struct sljit_label* const behind = sljit_emit_label(c);
  if (f->returns < JIT_MOST_RETURNS) f->returned[f->returns] = behind;
  ++f->returns;
}
/* Adds the registers `from` down to `to` by their numbers in instructions. */
static int jit_pushes(int* pushed, int count, int from, int to) {
  for (; from >= to; --from) pushed[count++] = sljit_get_register_index(SLJIT_GP_REGISTER, from);
  return count;
}
static int jit_bytes(int pushed) { return pushed < 8 ? 1 : 2; }
static ju_jit_mark* jit_say(ju_jit_mark* to, int does, int reg, int end, int64_t value) {
  const ju_jit_mark mark = {(uint16_t)does, JU_JIT_X86_64(reg), 0, end, value};
  *to = mark;
  return to + 1;
}
/* Writes the marks of a frame. `built`: the prologue's bytes. Returns are counted from the end if none was said. */
static size_t jit_write(const jit_frame* f, uintptr_t code, int built, ju_jit_mark* marks) {
  int pushed[JIT_MOST_SAVED], end = 0;
  const int saved = jit_pushes(pushed, 0, SLJIT_S0, SLJIT_S0 - f->saveds + 1);
  const int pushes = jit_pushes(pushed, saved, f->scratches, SLJIT_NUMBER_OF_SCRATCH_REGISTERS + 1);
  ju_jit_mark* to = marks;
  for (int i = 0; i < pushes; ++i) to = jit_say(to, JU_JIT_PUSH, pushed[i], end += jit_bytes(pushed[i]), 0);
  if (f->local_size > 0) to = jit_say(to, JU_JIT_ALLOCATE, 0, built, f->local_size);
  for (int n = 0; n < f->returns || n == 0; ++n) {
    int at = (f->returns ? (int)(sljit_get_label_addr(f->returned[n]) - code) : 0) - end - 1; /* pops and ret */
    if (f->returns) to = jit_say(to, JU_JIT_REMEMBER, 0, 0, 0);
    if (f->local_size > 0) to = jit_say(to, JU_JIT_DEALLOCATE, 0, at, f->local_size);
    for (int i = pushes; i-- > 0;) to = jit_say(to, JU_JIT_POP, pushed[i], at += jit_bytes(pushed[i]), 0);
    if (f->returns) to = jit_say(to, JU_JIT_RESTORE, 0, at + 1, 0);
  }
  return (size_t)(to - marks);
}
/* The shape of a function, if its place is free or has it. */
static ju_jit_frame* jit_find_shape(const jit_frame* f, int built) {
  const unsigned key = (unsigned)(f->local_size + 41 * f->saveds + 13 * f->scratches + built);
  jit_shape* const shape = &jit_shapes[key % JIT_SHAPES];
  if (!shape->frame.serves_many) {
    const ju_jit_frame frame = {shape->marks, jit_write(f, 0, built, shape->marks), 1, NULL, NULL};
    shape->saveds = f->saveds, shape->scratches = f->scratches, shape->local_size = f->local_size;
    shape->built = built, shape->frame = frame;
  }
  return shape->saveds == f->saveds && shape->scratches == f->scratches && shape->local_size == f->local_size &&
                 shape->built == built
             ? &shape->frame
             : NULL;
}
/* Behind sljit_generate_code(). ju_jit_take_back() stands in front of sljit_free_code(). */
static ju_jit_known* jit_announce(struct sljit_compiler* c, const jit_frame* f, const void* code, const char* name) {
  const int built = f->local_size > 0 ? (int)(sljit_get_label_addr(f->built) - (uintptr_t)code) : 0;
  ju_jit_mark marks[(JIT_MOST_RETURNS + 1) * (JIT_MOST_SAVED + 3)];
  ju_jit_frame own = {marks, 0, 0, NULL, NULL}, *shared = f->returns ? NULL : jit_find_shape(f, built);
  ju_jit_code at = JU_JIT_CODE(code, sljit_get_generated_code_size(c), name, shared ? shared : &own);
  ju_jit_known* known = NULL;
  if (f->returns > JIT_MOST_RETURNS) return NULL;
  if (!shared) own.mark_count = jit_write(f, (uintptr_t)code, built, marks);
  return ju_jit_announce(&at, &known, NULL) == JU_JIT_OK ? known : NULL;
}
