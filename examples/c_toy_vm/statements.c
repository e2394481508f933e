/* Statements: a statement leaves the local variables on the stack that it declares. The code of `finally` is written
   once; every way into it leaves the number of the way out:

               the statements of try and catch; on exceptions, to K
               way = 0, kept = none, to F                  the end was reached
               ...
               way = 2 and more, kept = none, to F         return, break, continue
            K: kept = the exception, way = 1
            F: the statements of finally; if they leave, the exception in kept is discarded
               if way = 1: resume the exception in kept
               if way = 2: return, break or continue, which may lead to the next finally outside */
#include "examples/c_toy_vm/emitter.h"

enum { exit_end_reached, exit_thrown, exit_first };

static void statement(compiler* c);
static void if_statement(compiler* c);

static void push_number(compiler* c, int number) { toy_push_constant(c, (uint64_t)number, kind_number); }

static void store(compiler* c, int slot) { toy_copy(c, slot, --c->depth); }

void toy_block(compiler* c) {
  const int depth = c->depth;
  const size_t locals = c->local_count;
  ++c->scope;
  toy_expect(c, "{");
  while (!toy_accept(c, "}")) statement(c);
  --c->scope;
  c->local_count = locals;
  c->depth = depth;
}

static int add_handler(compiler* c, int kind, int slot) {
  function* const f = c->f;
  f->handlers = toy_grown(c->m, f->handlers, f->handler_count, sizeof *f->handlers);
  handler* const made = &f->handlers[f->handler_count];
  made->kind = kind == handler_catches    ? handler_catches
               : kind == handler_finishes ? handler_finishes
                                          : handler_discards;
  made->outer = c->handler;
  made->slot = slot;
  toy_inside(c, (int)f->handler_count);
  return (int)f->handler_count++;
}

static void leave_handler(compiler* c) { toy_inside(c, c->f->handlers[c->handler].outer); }

static surrounding* enter(compiler* c, int kind) {
  c->around = toy_grown(c->m, c->around, c->around_count, sizeof *c->around);
  surrounding* const made = &c->around[c->around_count++];
  *made = (surrounding){0};
  made->kind = kind == around_loop ? around_loop : around_guarded;
  made->top = toy_here(c);
  made->slot = c->depth;
  return made;
}

static void run_finally(compiler* c, surrounding* guarded, int exit_number) {
  push_number(c, exit_number);
  store(c, guarded->slot + 2);
  push_number(c, 0);
  store(c, guarded->slot + 1);
  toy_jump(c, "e9", &guarded->ends);
}

static int exit_number(compiler* c, surrounding* guarded, enum way way, size_t to) {
  size_t i = 0;
  while (i < guarded->exit_count && (guarded->exits[i].way != way || guarded->exits[i].to != to)) ++i;
  if (i == guarded->exit_count) {
    guarded->exits = toy_grown(c->m, guarded->exits, i, sizeof *guarded->exits);
    guarded->exits[i].way = way;
    guarded->exits[i].to = to;
    ++guarded->exit_count;
  }
  return exit_first + (int)i;
}

/* Leaves outwards to surrounding number `to`, a loop; or returns the value that was pushed last. */
static void leave(compiler* c, enum way way, size_t to) {
  for (size_t i = c->around_count; i > (way == way_returns ? 0 : to + 1); --i) {
    surrounding* const passed = &c->around[i - 1];
    if (passed->kind == around_finishing) {
      toy_put(c, "48 8d bc 24 L", content(passed->slot + 1)); /* lea rdi,[kept] */
      toy_call_runtime(c, (uintptr_t)toy_discard);
    }
    if (passed->kind != around_guarded) continue;
    if (way == way_returns) store(c, passed->slot);
    run_finally(c, passed, exit_number(c, passed, way, to));
    return;
  }
  if (way == way_breaks) toy_jump(c, "e9", &c->around[to].ends);
  if (way == way_continues) toy_jump_back(c, c->around[to].top);
  if (way != way_returns) return;
  --c->depth; /* mov rax,[value]; mov rdx,[value+8] */
  toy_put(c, "48 8b 84 24 L 48 8b 94 24 L", content(c->depth), kind_of(c->depth));
  toy_jump(c, "e9", &c->returns);
}

/* The token after the block that begins at token `open`; the last token if it does not end. */
static size_t behind_block(const compiler* c, size_t open) {
  size_t depth = 0;
  for (size_t at = open; at + 1 < c->count; ++at) {
    if (toy_is(&c->tokens[at], "{")) ++depth;
    if (toy_is(&c->tokens[at], "}") && --depth == 0) return at + 1;
    if (depth == 0) break;
  }
  return c->count - 1;
}

/* The block of try, and the handler of its exceptions, which are in rax there. */
static void catching_part(compiler* c) {
  const int slot = c->depth, handler = add_handler(c, handler_catches, slot);
  jumps end = {NULL, 0};
  toy_block(c);
  leave_handler(c);
  toy_jump(c, "e9", &end);
  toy_expect(c, "catch");
  c->f->handlers[handler].pad = toy_here(c);
  toy_put(c, "48 89 c7"); /* mov rdi,rax */
  toy_call_runtime(c, (uintptr_t)toy_caught);
  toy_store_result(c, slot);
  toy_take_slots(c, 1);
  ++c->scope;
  toy_declare(c, toy_name(c, "name for what is caught"), slot);
  toy_block(c);
  --c->scope;
  --c->local_count;
  c->depth = slot;
  toy_bind(c, &end);
}

/* cmp qword [exit],number; jne other */
static void on_way(compiler* c, const surrounding* guarded, int number, jumps* other) {
  toy_put(c, "48 81 bc 24 L L", content(guarded->slot + 2), number);
  toy_jump(c, "0f 85", other);
}

static void finally_part(compiler* c) {
  const int kept = content(c->around[c->around_count - 1].slot + 1);
  jumps behind = {NULL, 0}, other = {NULL, 0};
  c->around[c->around_count - 1].kind = around_finishing;
  const surrounding guarded = c->around[c->around_count - 1];
  toy_expect(c, "finally");
  c->f->handlers[guarded.handler].pad = toy_here(c);
  toy_put(c, "48 89 84 24 L 48 89 94 24 L", kept, kept + 8); /* mov [kept],rax; mov [kept+8],rdx */
  push_number(c, exit_thrown);
  store(c, guarded.slot + 2);
  toy_bind(c, &guarded.ends);
  const int discards = add_handler(c, handler_discards, guarded.slot + 1);
  toy_block(c);
  leave_handler(c);
  --c->around_count;
  toy_jump(c, "e9", &behind);
  c->f->handlers[discards].pad = toy_here(c);
  toy_put(c, "48 8d bc 24 L 48 89 c6", kept); /* lea rdi,[kept]; mov rsi,rax; rdx is there */
  toy_call_runtime(c, (uintptr_t)toy_displace);
  toy_bind(c, &behind);
  on_way(c, &guarded, exit_thrown, &other);
  toy_put(c, "48 8d bc 24 L", kept); /* lea rdi,[kept] */
  toy_call_runtime(c, (uintptr_t)toy_resume);
  toy_bind(c, &other);
  for (size_t i = 0; i < guarded.exit_count; ++i) {
    jumps next = {NULL, 0};
    on_way(c, &guarded, exit_first + (int)i, &next);
    if (guarded.exits[i].way == way_returns) {
      toy_copy(c, c->depth, guarded.slot);
      toy_take_slots(c, 1);
    }
    leave(c, guarded.exits[i].way, guarded.exits[i].to);
    toy_bind(c, &next);
  }
}

static void try_statement(compiler* c) {
  const size_t catch_at = behind_block(c, c->next);
  const int catches = toy_is(&c->tokens[catch_at], "catch");
  const size_t named = catch_at + 2 < c->count ? catch_at + 2 : c->count - 1;
  const int finishes = toy_is(&c->tokens[catches ? behind_block(c, named) : catch_at], "finally");
  if (!finishes && !catches && c->tokens[catch_at].kind != token_end)
    toy_refuse(c->m, toy_peek(c, 0)->line, "'try' without 'catch' or 'finally'");
  const int slot = c->depth;
  if (finishes) {
    enter(c, around_guarded);
    toy_take_slots(c, 3);
    c->around[c->around_count - 1].handler = add_handler(c, handler_finishes, slot + 1);
  }
  if (catches)
    catching_part(c);
  else
    toy_block(c);
  if (!finishes) return;
  run_finally(c, &c->around[c->around_count - 1], exit_end_reached);
  leave_handler(c);
  finally_part(c);
  c->depth = slot;
}

static void if_branches(compiler* c) {
  jumps otherwise = {NULL, 0}, end = {NULL, 0};
  toy_expression(c, 0);
  toy_jump_if_zero(c, &otherwise);
  toy_block(c);
  if (toy_accept(c, "else")) {
    toy_jump(c, "e9", &end);
    toy_bind(c, &otherwise);
    if (toy_accept(c, "if"))
      if_statement(c);
    else
      toy_block(c);
    toy_bind(c, &end);
  } else {
    toy_bind(c, &otherwise);
  }
}

static void if_statement(compiler* c) {
  toy_nest(c);
  if_branches(c);
  --c->nesting;
}

static void while_statement(compiler* c) {
  const size_t number = c->around_count;
  jumps end = {NULL, 0};
  enter(c, around_loop);
  toy_expression(c, 0);
  toy_jump_if_zero(c, &end);
  toy_block(c);
  toy_jump_back(c, c->around[number].top);
  toy_bind(c, &end);
  toy_bind(c, &c->around[number].ends);
  c->around_count = number;
}

static void jump_statement(compiler* c, enum way way) {
  size_t loop = c->around_count;
  while (loop > 0 && c->around[loop - 1].kind != around_loop) --loop;
  if (loop == 0)
    toy_refuse(c->m, toy_peek(c, 0)->line, "'%s' outside of a loop", way == way_breaks ? "break" : "continue");
  leave(c, way, loop - 1);
}

static void let_statement(compiler* c) {
  const char* const name = toy_name(c, "name of a variable");
  toy_expect(c, "=");
  const int slot = c->depth;
  toy_expression(c, 0);
  toy_declare(c, name, slot);
}

static void assignment(compiler* c) {
  const local* const variable = toy_find_local(c, toy_peek(c, 0)->spelling);
  if (variable == NULL) toy_refuse(c->m, toy_peek(c, 0)->line, "unknown variable '%s'", toy_peek(c, 0)->spelling);
  const int slot = variable->slot;
  toy_take(c);
  toy_take(c);
  toy_expression(c, 0);
  store(c, slot);
}

static void throw_statement(compiler* c) {
  toy_expression(c, 0);
  toy_at_line(c, c->tokens[c->next - 1].line);
  toy_put(c, "48 8d bc 24 L", content(--c->depth)); /* lea rdi,[value] */
  toy_call_runtime(c, (uintptr_t)toy_throw);
}

static void return_statement(compiler* c) {
  if (toy_is(toy_peek(c, 0), ";"))
    push_number(c, 0);
  else
    toy_expression(c, 0);
  leave(c, way_returns, 0);
}

/* These statements end in ";". */
static void simple_statement(compiler* c) {
  const int depth = c->depth;
  if (toy_accept(c, "let")) {
    let_statement(c);
  } else if (toy_peek(c, 0)->kind == token_name && toy_is(toy_peek(c, 1), "=")) {
    assignment(c);
  } else if (toy_accept(c, "throw")) {
    throw_statement(c);
  } else if (toy_accept(c, "return")) {
    return_statement(c);
  } else if (toy_accept(c, "break")) {
    jump_statement(c, way_breaks);
  } else if (toy_accept(c, "continue")) {
    jump_statement(c, way_continues);
  } else {
    toy_expression(c, 0);
    c->depth = depth;
  }
  toy_expect(c, ";");
}

static void statement(compiler* c) {
  toy_nest(c);
  if (toy_accept(c, "if"))
    if_branches(c);
  else if (toy_accept(c, "while"))
    while_statement(c);
  else if (toy_accept(c, "try"))
    try_statement(c);
  else
    simple_statement(c);
  --c->nesting;
}
