/* Compiles a script to machine code in one pass: functions, names and expressions. examples/toy_vm/parser.h has the
   grammar. */
#include <stdio.h>
#include <string.h>

#include "examples/c_toy_vm/emitter.h"

enum { most_slots = 1000, deepest = 200 };

const token* toy_peek(const compiler* c, size_t ahead) {
  const size_t at = c->next + ahead;
  return &c->tokens[at < c->count ? at : c->count - 1];
}

const token* toy_take(compiler* c) {
  const token* const taken = toy_peek(c, 0);
  if (c->next + 1 < c->count) ++c->next;
  return taken;
}

int toy_is(const token* t, const char* word) { return t->kind == token_word && strcmp(t->spelling, word) == 0; }

int toy_accept(compiler* c, const char* word) {
  const int found = toy_is(toy_peek(c, 0), word);
  if (found) toy_take(c);
  return found;
}

void toy_expected(compiler* c, const char* what) {
  const token* const t = toy_peek(c, 0);
  if (t->kind == token_end) toy_refuse(c->m, t->line, "expected %s, not end of script", what);
  if (t->kind == token_text) toy_refuse(c->m, t->line, "expected %s, not a text", what);
  toy_refuse(c->m, t->line, "expected %s, not '%s'", what, t->spelling);
}

void toy_expect(compiler* c, const char* word) {
  char quoted[16];
  if (toy_accept(c, word)) return;
  snprintf(quoted, sizeof quoted, "'%s'", word);
  toy_expected(c, quoted);
}

const char* toy_name(compiler* c, const char* what) {
  if (toy_peek(c, 0)->kind != token_name) toy_expected(c, what);
  return toy_take(c)->spelling;
}

void toy_nest(compiler* c) {
  if (++c->nesting > deepest) toy_refuse(c->m, toy_peek(c, 0)->line, "nested too deep");
}

void toy_declare(compiler* c, const char* name, int slot) {
  for (size_t i = 0; i < c->local_count; ++i)
    if (c->locals[i].scope == c->scope && strcmp(c->locals[i].name, name) == 0)
      toy_refuse(c->m, toy_peek(c, 0)->line, "'%s' is declared twice", name);
  c->locals = toy_grown(c->m, c->locals, c->local_count, sizeof *c->locals);
  c->locals[c->local_count++] = (local){name, slot, c->scope};
}

const local* toy_find_local(const compiler* c, const char* name) {
  for (size_t i = c->local_count; i > 0; --i)
    if (strcmp(c->locals[i - 1].name, name) == 0) return &c->locals[i - 1];
  return NULL;
}

function* toy_find_function(const compiler* c, const char* name, size_t* number) {
  for (size_t i = 0; i < c->m->function_count; ++i) {
    if (strcmp(c->m->functions[i]->name, name) != 0) continue;
    if (number != NULL) *number = i;
    return c->m->functions[i];
  }
  return NULL;
}

typedef struct operator_sign {
  const char* sign;
  int binding;
  enum op op;
  const char* fast; /* toy_compute_top() */
} operator_sign;

enum { binds_or = 1, binds_and, binds_not, binds_comparison, binds_sum, binds_product, binds_minus };

/* xor ecx,ecx; cmp rax,[b]; setCC cl; mov rax,rcx */
#define COMPARE(condition) "31 c9 48 3b 84 24 L 0f " condition " c1 48 89 c8"

static const operator_sign operators[] = {
    {"or", binds_or, op_or, NULL},
    {"and", binds_and, op_and, NULL},
    {"<", binds_comparison, op_less, COMPARE("9c")},
    {"<=", binds_comparison, op_less_equal, COMPARE("9e")},
    {">", binds_comparison, op_greater, COMPARE("9f")},
    {">=", binds_comparison, op_greater_equal, COMPARE("9d")},
    {"==", binds_comparison, op_equal, COMPARE("94")},
    {"!=", binds_comparison, op_not_equal, COMPARE("95")},
    {"+", binds_sum, op_add, "48 03 84 24 L"},
    {"-", binds_sum, op_subtract, "48 2b 84 24 L"},
    {"*", binds_product, op_multiply, "48 0f af 84 24 L"},
    {"/", binds_product, op_divide, NULL},
    {"%", binds_product, op_remainder, NULL},
};

static const operator_sign* next_operator(const compiler* c, int binding) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; ++i)
    if (toy_is(toy_peek(c, 0), operators[i].sign)) return operators[i].binding > binding ? &operators[i] : NULL;
  return NULL;
}

/* "and" and "or" give 1 or 0. The right side counts only if the left one did not decide. */
static void either(compiler* c, const operator_sign* o) {
  jumps decided = {NULL, 0}, end = {NULL, 0};
  if (o->op == op_or) toy_negate_truth(c);
  toy_jump_if_zero(c, &decided);
  toy_expression(c, o->binding);
  toy_negate_truth(c);
  toy_negate_truth(c);
  toy_jump(c, "e9", &end);
  --c->depth;
  toy_bind(c, &decided);
  toy_push_constant(c, o->op == op_or, kind_number);
  toy_bind(c, &end);
}

static void call(compiler* c, const function* callee) {
  toy_expect(c, "(");
  const int line = toy_peek(c, 0)->line;
  int given = 0;
  for (; !toy_is(toy_peek(c, 0), ")"); ++given) {
    if (given > 0) toy_expect(c, ",");
    toy_expression(c, 0);
  }
  if (given != callee->arity)
    toy_refuse(c->m, toy_peek(c, 0)->line, "'%s' takes %d argument%s, not %d", callee->name, callee->arity,
               callee->arity == 1 ? "" : "s", given);
  toy_take(c);
  toy_at_line(c, line);
  toy_emit_call(c, callee);
}

static void name_or_call(compiler* c) {
  const token* const t = toy_peek(c, 0);
  const int called = toy_is(toy_peek(c, 1), "(");
  const local* const variable = toy_find_local(c, t->spelling);
  size_t number = 0;
  const function* const found = toy_find_function(c, t->spelling, &number);
  if (variable != NULL && !called) {
    toy_take(c);
    toy_copy(c, c->depth, variable->slot);
    toy_take_slots(c, 1);
    return;
  }
  if (found == NULL && !called) toy_refuse(c->m, t->line, "unknown name '%s'", t->spelling);
  if (found == NULL && variable != NULL)
    toy_refuse(c->m, t->line, "'%s' is no function: call what it holds with apply()", t->spelling);
  if (found == NULL) toy_refuse(c->m, t->line, "unknown function '%s'", t->spelling);
  toy_take(c);
  if (called)
    call(c, found);
  else
    toy_push_constant(c, (uint64_t)(uintptr_t)found, kind_function);
}

static void operand(compiler* c) {
  const token* const t = toy_peek(c, 0);
  if (t->kind == token_name) {
    name_or_call(c);
  } else if (t->kind == token_number) {
    toy_push_constant(c, (uint64_t)toy_take(c)->number, kind_number);
  } else if (t->kind == token_text) {
    toy_push_constant(c, (uint64_t)(uintptr_t)toy_text(c->m, t->spelling, t->size), kind_text);
    toy_take(c);
  } else if (toy_accept(c, "(")) {
    toy_expression(c, 0);
    toy_expect(c, ")");
  } else if (toy_accept(c, "not")) {
    toy_expression(c, binds_not);
    toy_negate_truth(c);
  } else if (toy_accept(c, "-")) {
    toy_push_constant(c, 0, kind_number);
    toy_expression(c, binds_minus);
    toy_at_line(c, t->line);
    toy_compute_top(c, op_subtract, "48 2b 84 24 L");
  } else {
    toy_expected(c, "an expression");
  }
}

/* Compiles an expression, which leaves its value on the stack. It ends before the first operator that does not bind
   more than `binding`. */
void toy_expression(compiler* c, int binding) {
  toy_nest(c);
  operand(c);
  for (const operator_sign* o = next_operator(c, binding); o != NULL; o = next_operator(c, binding)) {
    toy_take(c);
    if (o->op == op_and || o->op == op_or) {
      either(c, o);
      continue;
    }
    toy_expression(c, o->binding);
    toy_at_line(c, c->tokens[c->next - 1].line);
    toy_compute_top(c, o->op, o->fast);
  }
  --c->nesting;
}

static void read_function(compiler* c) {
  const int line = toy_accept(c, "fn") ? toy_peek(c, 0)->line : (toy_expected(c, "'fn'"), 0);
  const char* const name = toy_name(c, "name of a function");
  size_t number = 0;
  function* const f = toy_find_function(c, name, &number);
  if (number < c->m->native_count) toy_refuse(c->m, toy_peek(c, 0)->line, "function '%s' is there already, in C", name);
  if (f->line != 0) toy_refuse(c->m, toy_peek(c, 0)->line, "function '%s' is defined twice", name);
  f->line = line;
  f->begin = c->m->size;
  c->f = f;
  c->depth = 0;
  c->local_count = 0;
  c->returns = (jumps){NULL, 0};
  toy_inside(c, -1);
  toy_at_line(c, line);
  toy_expect(c, "(");
  while (!toy_is(toy_peek(c, 0), ")")) {
    if (c->local_count > 0) toy_expect(c, ",");
    const char* const parameter = toy_name(c, "name of a parameter");
    toy_declare(c, parameter, c->depth);
    toy_take_slots(c, 1);
  }
  toy_take(c);
  toy_prologue(c);
  toy_block(c);
  toy_put(c, "31 c0 31 d2"); /* xor eax,eax; xor edx,edx */
  toy_epilogue(c);
  if (f->slots > most_slots) toy_refuse(c->m, line, "function '%s' needs too many values at a time", name);
}

/* Functions may be called before they are defined: names and parameter counts are read first. Errors are reported
   later. */
static void declare_functions(compiler* c) {
  machine* const m = c->m;
  for (size_t i = 0; i + 1 < c->count; ++i) {
    const token* const name = &c->tokens[i + 1];
    if (!toy_is(&c->tokens[i], "fn") || name->kind != token_name) continue;
    if (toy_find_function(c, name->spelling, NULL) != NULL) continue;
    function* const f = toy_keep(m, sizeof *f);
    f->name = name->spelling;
    for (size_t at = i + 2; at + 1 < c->count && !toy_is(&c->tokens[at], ")") && !toy_is(&c->tokens[at], "{"); ++at)
      f->arity += c->tokens[at].kind == token_name;
    m->functions = toy_grown(m, m->functions, m->function_count, sizeof *m->functions);
    m->functions[m->function_count++] = f;
  }
}

void toy_compile(machine* m, const char* script, size_t size) {
  compiler c = {0};
  c.m = m;
  c.tokens = toy_tokens(m, script, size);
  for (c.count = 1; c.tokens[c.count - 1].kind != token_end;) ++c.count;
  declare_functions(&c);
  while (toy_peek(&c, 0)->kind != token_end) read_function(&c);
  if (toy_find_function(&c, "main", NULL) == NULL) toy_refuse(m, toy_peek(&c, 0)->line, "no function 'main'");
}
