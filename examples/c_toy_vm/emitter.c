/* The code of each operation. Numbers are added, multiplied and compared here; toy_compute() does everything else. */
#include "examples/c_toy_vm/emitter.h"

#include <stdarg.h>
#include <string.h>

static void put_bytes(compiler* c, const void* bytes, size_t count) {
  machine* const m = c->m;
  for (size_t i = 0; i < count; ++i, ++m->size) {
    m->bytes = toy_grown(m, m->bytes, (size_t)m->size, 1);
    m->bytes[m->size] = ((const unsigned char*)bytes)[i];
  }
}

static int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

void toy_put(compiler* c, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at == 'L') {
      const int number = va_arg(arguments, int);
      put_bytes(c, &number, sizeof number);
    } else if (*at == 'Q') {
      const uint64_t number = va_arg(arguments, uint64_t);
      put_bytes(c, &number, sizeof number);
    } else if (*at != ' ') {
      const unsigned char byte = (unsigned char)(16 * digit(at[0]) + digit(at[1]));
      put_bytes(c, &byte, 1);
      ++at;
    }
  }
  va_end(arguments);
}

int64_t toy_here(const compiler* c) { return c->m->size - c->f->begin; }

/* mov rax,function; call rax */
void toy_call_runtime(compiler* c, uintptr_t function) { toy_put(c, "48 b8 Q ff d0", (uint64_t)function); }

static void patch(compiler* c, int64_t at, int64_t number) {
  const int32_t value = (int32_t)number;
  memcpy(c->m->bytes + c->f->begin + at, &value, sizeof value);
}

void toy_jump(compiler* c, const char* opcode, jumps* to) {
  toy_put(c, opcode);
  to->at = toy_grown(c->m, to->at, to->count, sizeof *to->at);
  to->at[to->count++] = toy_here(c);
  toy_put(c, "L", 0);
}

/* jmp to */
void toy_jump_back(compiler* c, int64_t to) { toy_put(c, "e9 L", (int)(to - (toy_here(c) + 5))); }

void toy_bind(compiler* c, const jumps* to) {
  for (size_t i = 0; i < to->count; ++i) patch(c, to->at[i], toy_here(c) - (to->at[i] + 4));
}

static void add_mark(compiler* c, marks* to, int what) {
  if (to->count != 0 && to->list[to->count - 1].what == what) return;
  to->list = toy_grown(c->m, to->list, to->count, sizeof *to->list);
  to->list[to->count++] = (mark){toy_here(c), what};
}

void toy_at_line(compiler* c, int line) { add_mark(c, &c->f->lines, line); }

void toy_inside(compiler* c, int handler) {
  c->handler = handler;
  add_mark(c, &c->f->sites, handler);
}

void toy_take_slots(compiler* c, int count) {
  c->depth += count;
  if (c->f->slots < c->depth) c->f->slots = c->depth;
}

/* mov rax,content; mov [slot],rax; mov qword [slot+8],kind */
void toy_push_constant(compiler* c, uint64_t bits, enum kind kind) {
  toy_put(c, "48 b8 Q 48 89 84 24 L 48 c7 84 24 L L", bits, content(c->depth), kind_of(c->depth), (int)kind);
  toy_take_slots(c, 1);
}

/* movups xmm0,[from]; movups [to],xmm0 */
void toy_copy(compiler* c, int to, int from) { toy_put(c, "0f 10 84 24 L 0f 11 84 24 L", content(from), content(to)); }

/* mov [slot],rax; mov [slot+8],rdx */
void toy_store_result(compiler* c, int slot) {
  toy_put(c, "48 89 84 24 L 48 89 94 24 L", content(slot), kind_of(slot));
}

/* xor eax,eax; cmp qword [slot],0; sete al; mov [slot],rax; mov qword [slot+8],0. All is true but the number 0. */
void toy_negate_truth(compiler* c) {
  const int slot = c->depth - 1;
  toy_put(c, "31 c0 48 83 bc 24 L 00 0f 94 c0 48 89 84 24 L 48 c7 84 24 L L", content(slot), content(slot),
          kind_of(slot), (int)kind_number);
}

/* cmp qword [slot],0; je */
void toy_jump_if_zero(compiler* c, jumps* to) {
  toy_put(c, "48 83 bc 24 L 00", content(--c->depth));
  toy_jump(c, "0f 84", to);
}

/* a op b, in the place of a. `fast`: the instructions for rax op= [b], of numbers; null: there are none. */
void toy_compute_top(compiler* c, enum op op, const char* fast) {
  const int b = --c->depth, a = b - 1;
  jumps slow = {NULL, 0}, done = {NULL, 0};
  if (fast != NULL) {
    /* mov rcx,[a+8]; or rcx,[b+8]; jnz slow; mov rax,[a]; op; mov [a],rax; jmp done */
    toy_put(c, "48 8b 8c 24 L 48 0b 8c 24 L", kind_of(a), kind_of(b));
    toy_jump(c, "0f 85", &slow);
    toy_put(c, "48 8b 84 24 L", content(a));
    toy_put(c, fast, content(b));
    toy_put(c, "48 89 84 24 L", content(a));
    toy_jump(c, "e9", &done);
    toy_bind(c, &slow);
  }
  /* toy_compute(rbx, &a, op) */
  toy_put(c, "48 89 df 48 8d b4 24 L ba L", content(a), (int)op);
  toy_call_runtime(c, (uintptr_t)toy_compute);
  toy_store_result(c, a);
  toy_bind(c, &done);
}

/* mov rdi,rbx; lea rsi,[first argument]; mov rax,&callee->code; call [rax] */
void toy_emit_call(compiler* c, const function* callee) {
  const int first = c->depth - callee->arity;
  toy_put(c, "48 89 df 48 8d b4 24 L 48 b8 Q ff 10", content(first), (uint64_t)(uintptr_t)&callee->code);
  toy_store_result(c, first);
  c->depth = first;
  toy_take_slots(c, 1);
}

/* push rbx; sub rsp,0 (later: all slots); mov rbx,rdi; cmp rsp,[rbx]; jae; call toy_overflow; ud2; the arguments */
void toy_prologue(compiler* c) {
  jumps enough = {NULL, 0};
  toy_put(c, "53 48 81 ec L 48 89 fb 48 3b 23", 0);
  toy_jump(c, "0f 83", &enough);
  toy_call_runtime(c, (uintptr_t)toy_overflow);
  toy_put(c, "0f 0b");
  toy_bind(c, &enough);
  /* movups xmm0,[rsi+16 i]; movups [rsp+16 i],xmm0 */
  for (int i = 0; i < c->f->arity; ++i) toy_put(c, "0f 10 86 L 0f 11 84 24 L", content(i), content(i));
}

/* add rsp,all slots; pop rbx; ret */
void toy_epilogue(compiler* c) {
  toy_bind(c, &c->returns);
  if (c->f->slots == 0) c->f->slots = 1;
  toy_put(c, "48 81 c4 L 5b c3", content(c->f->slots));
  patch(c, 4, content(c->f->slots));
  c->f->end = c->m->size;
}
