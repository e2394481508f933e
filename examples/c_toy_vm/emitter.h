/* The compiler's writer of x86-64 code: code is a text of hexadecimal bytes. Every value has a slot in the frame: SP
   stays where the prologue put it, and the machine is in rbx.

     cfa-8 return address | cfa-16 rbx | ... slot 1 (16 bytes) | slot 0 (16 bytes) = [rsp] */
#pragma once

#include <stdint.h>

#include "examples/c_toy_vm/toy.h"

/* Jumps to one place, which is not known yet, by the places of their distances. */
typedef struct jumps {
  int64_t* at;
  size_t count;
} jumps;

/* A construct that a statement may have to leave: a loop; a try statement with `finally`, through which every way out
   leads; and the code of `finally`. */
typedef struct surrounding {
  enum { around_loop, around_guarded, around_finishing } kind;
  jumps ends; /* to the code after the loop; to the code of `finally` */
  int64_t top;
  int slot; /* of a try statement: the result, which only `return` has; the exception kept; the number of the exit */
  int handler;
  struct way_out {
    enum way { way_returns, way_breaks, way_continues } way;
    size_t to; /* number of the surrounding */
  } * exits;
  size_t exit_count;
} surrounding;

typedef struct local {
  const char* name;
  int slot, scope;
} local;

typedef struct compiler {
  machine* m;
  const token* tokens;
  size_t count, next;
  int nesting;
  /* State of the function that is being compiled. */
  function* f;
  jumps returns;
  int depth, handler, scope; /* depth: slots in use */
  local* locals;
  size_t local_count;
  surrounding* around;
  size_t around_count;
} compiler;

static inline int content(int slot) { return 16 * slot; }
static inline int kind_of(int slot) { return 16 * slot + 8; }

/* "48 8b 84 24 L": L stands for an int, 4 bytes; Q for a uint64_t, 8 bytes. */
void toy_put(compiler* c, const char* format, ...);
int64_t toy_here(const compiler* c); /* code offset in the function */
void toy_call_runtime(compiler* c, uintptr_t function);
void toy_jump(compiler* c, const char* opcode, jumps* to);
void toy_jump_back(compiler* c, int64_t to);
void toy_bind(compiler* c, const jumps* to);
/* The next code belongs to this line; its exceptions go to this handler. */
void toy_at_line(compiler* c, int line);
void toy_inside(compiler* c, int handler);
void toy_take_slots(compiler* c, int count);
void toy_push_constant(compiler* c, uint64_t content, enum kind kind);
void toy_copy(compiler* c, int to, int from);
void toy_store_result(compiler* c, int slot);
void toy_negate_truth(compiler* c);
void toy_jump_if_zero(compiler* c, jumps* to);
void toy_compute_top(compiler* c, enum op op, const char* fast);
void toy_emit_call(compiler* c, const function* callee);
void toy_prologue(compiler* c);
void toy_epilogue(compiler* c);

/* statements.c; expressions.c */
void toy_block(compiler* c);
void toy_expression(compiler* c, int binding);
/* compiler.c */
const token* toy_peek(const compiler* c, size_t ahead);
const token* toy_take(compiler* c);
int toy_is(const token* t, const char* word);
int toy_accept(compiler* c, const char* word);
void toy_expect(compiler* c, const char* word);
const char* toy_name(compiler* c, const char* what);
__attribute__((noreturn)) void toy_expected(compiler* c, const char* what);
void toy_declare(compiler* c, const char* name, int slot);
const local* toy_find_local(const compiler* c, const char* name);
function* toy_find_function(const compiler* c, const char* name, size_t* number);
/* Scripts nest as deeply as people write, not as deep as this program's stack is. */
void toy_nest(compiler* c);
