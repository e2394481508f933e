/* Functions that compiled code calls for values of all kinds, and the functions in C that scripts find. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "examples/c_toy_vm/toy.h"

enum { longest_text = 1 << 20 };

static value of_number(int64_t number) {
  const value made = {{number}, kind_number};
  return made;
}

static value of_text(const text* of, enum kind kind) {
  value made = {{0}, kind};
  made.as.text = of;
  return made;
}

const text* toy_to_text(machine* m, value of) {
  char number[24];
  if (of.kind == kind_text || of.kind == kind_error) return of.as.text;
  if (of.kind == kind_number) {
    snprintf(number, sizeof number, "%" PRId64, of.as.number);
    return toy_text(m, number, strlen(number));
  }
  const size_t size = strlen("function ") + strlen(of.as.function->name);
  char* const name = toy_keep(m, size + 1);
  snprintf(name, size + 1, "function %s", of.as.function->name);
  return toy_text(m, name, size);
}

static int64_t compared(int order, enum op op) {
  switch (op) {
    case op_less:
      return order < 0;
    case op_less_equal:
      return order <= 0;
    case op_greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

static int order_of_texts(const text* a, const text* b) {
  const int order = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);
  return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

/* Division rounds towards zero; all operations wrap around at 64 bits. Compiled code does the rest. */
static value toy_divide(machine* m, int64_t a, int64_t b, enum op op) {
  if (b == 0) toy_fail(m, "division by zero");
  if (b == -1) return of_number(op == op_divide ? (int64_t)(0 - (uint64_t)a) : 0);
  return of_number(op == op_divide ? a / b : a % b);
}

static value toy_join(machine* m, const text* a, const text* b) {
  if (a->size + b->size > longest_text) toy_fail(m, "text too long");
  char* const joined = malloc(a->size + b->size + 1);
  if (joined == NULL) toy_fail(m, "no memory for a text");
  memcpy(joined, a->bytes, a->size);
  memcpy(joined + a->size, b->bytes, b->size);
  const value made = of_text(toy_text(m, joined, a->size + b->size), kind_text);
  free(joined);
  return made;
}

value toy_compute(machine* m, const value* operands, enum op op) {
  static const char* const kinds[] = {"a number", "a text", "a function", "an error"};
  static const char* const verbs[] = {"add", "subtract", "multiply", "divide", "divide"};
  const value a = operands[0], b = operands[1];
  if (op == op_equal || op == op_not_equal)
    return of_number((a.kind == b.kind && a.as.number == b.as.number) == (op == op_equal));
  if (a.kind == kind_number && b.kind == kind_number) return toy_divide(m, a.as.number, b.as.number, op);
  if (a.kind == kind_text && b.kind == kind_text && op >= op_less && op <= op_greater_equal)
    return of_number(compared(order_of_texts(a.as.text, b.as.text), op));
  if (op == op_add && (a.kind == kind_text || b.kind == kind_text))
    return toy_join(m, toy_to_text(m, a), toy_to_text(m, b));
  toy_fail(m, "cannot %s %s and %s", op <= op_remainder ? verbs[op] : "compare", kinds[a.kind], kinds[b.kind]);
}

value toy_call(machine* m, value of, const value* arguments, int count) {
  if (of.kind != kind_function) toy_fail(m, "'%s' is no function", toy_to_text(m, of)->bytes);
  const function* const f = of.as.function;
  if (count != f->arity)
    toy_fail(m, "'%s' takes %d argument%s, not %d", f->name, f->arity, f->arity == 1 ? "" : "s", count);
  return f->code(m, arguments);
}

/* Natives. Traces show their names. */

__attribute__((noreturn)) static void toy_native_error(const text* message) {
  const value what = of_text(message, kind_error);
  toy_throw(&what);
}

static value native_print(machine* m, const value* arguments) {
  const text* const shown = toy_to_text(m, arguments[0]);
  fwrite(shown->bytes, 1, shown->size, stdout);
  putchar('\n');
  return of_number(0);
}

/* text(value): the text that print() shows of it; of an error, its message. */
static value native_text(machine* m, const value* arguments) {
  return of_text(toy_to_text(m, arguments[0]), kind_text);
}

/* number(text): its error is the text of the C++ machine's library. */
static value native_number(machine* m, const value* arguments) {
  const text* const digits = toy_to_text(m, arguments[0]);
  char* end = NULL;
  errno = 0;
  const long long number = strtoll(digits->bytes, &end, 10);
  if (end == digits->bytes || errno != 0) toy_native_error(toy_text(m, "stoll", strlen("stoll")));
  return of_number(number);
}

/* fail(message): an error that is no value of the script. */
static value native_fail(machine* m, const value* arguments) { toy_native_error(toy_to_text(m, arguments[0])); }

/* apply(function, value): function(value) */
static value native_apply(machine* m, const value* arguments) { return toy_call(m, arguments[0], &arguments[1], 1); }

/* each(count, function): function(0), function(1), ... */
static value native_each(machine* m, const value* arguments) {
  static const char wrong[] = "each: count is no number";
  if (arguments[0].kind != kind_number) toy_native_error(toy_text(m, wrong, sizeof wrong - 1));
  for (int64_t i = 0; i < arguments[0].as.number; ++i) {
    const value turn = of_number(i);
    toy_call(m, arguments[1], &turn, 1);
  }
  return of_number(0);
}

static void toy_leave_scope(const text* const* name) { printf("leave %s\n", (*name)->bytes); }

/* scoped(name, function): function(), within a scope of C that prints when it is entered and left: GNU C runs cleanups
   of frames that exceptions pass, if it gets -fexceptions. */
static value native_scoped(machine* m, const value* arguments) {
  const text* const name __attribute__((cleanup(toy_leave_scope))) = toy_to_text(m, arguments[0]);
  printf("enter %s\n", name->bytes);
  return toy_call(m, arguments[1], NULL, 0);
}

/* Runs within a protected call: C has no catch. */
static value toy_call_first(machine* m, const value* arguments) { return toy_call(m, arguments[0], NULL, 0); }

/* attempt(function, otherwise): function(); if it throws a value of the script, otherwise(value). */
static value native_attempt(machine* m, const value* arguments) {
  protected_call call = {m, toy_call_first, arguments, {{0}, kind_number}, NULL, 0};
  toy_run_protected(&call);
  if (call.exception == NULL) return call.result;
  const value thrown = toy_caught(call.exception);
  return toy_call(m, arguments[1], &thrown, 1);
}

const native toy_natives[] = {{"print", 1, native_print},   {"text", 1, native_text},      {"number", 1, native_number},
                              {"fail", 1, native_fail},     {"apply", 2, native_apply},    {"each", 2, native_each},
                              {"scoped", 2, native_scoped}, {"attempt", 2, native_attempt}};
const size_t toy_native_count = sizeof toy_natives / sizeof *toy_natives;
