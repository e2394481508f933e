/* A compiler interface like those of portable JIT back ends: emit_enter() and emit_return() make the frame, whatever
   the code between them does. No other place knows the frame, so that they describe it. x86-64, C99. The parts for
   jitunwind are those with ju_, and finish(). */
#define _GNU_SOURCE
#include <jitunwind/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { most_saved = 5, room = 4096 };
/* Registers that functions must save, by their numbers in instructions, and by jitunwind's names. */
static const unsigned char saved_code[most_saved] = {3, 12, 13, 14, 15};
static const ju_reg saved_reg[most_saved] = {JU_X86_64_RBX, JU_X86_64_R12, JU_X86_64_R13, JU_X86_64_R14, JU_X86_64_R15};

typedef struct compiler {
  unsigned char* code;
  size_t size;
  int saved;  /* how many of these registers the function uses */
  int locals; /* size in bytes */
  ju_builder* frame;
} compiler;

static void emit(compiler* c, const char* bytes, size_t count) {
  memcpy(c->code + c->size, bytes, count);
  c->size += count;
}
static void emit_push_or_pop(compiler* c, unsigned char opcode, unsigned char reg) {
  if (reg >= 8) emit(c, "\x41", 1);
  c->code[c->size++] = (unsigned char)(opcode + reg % 8);
}
static int64_t here(const compiler* c) { return (int64_t)c->size; }

static void emit_enter(compiler* c, const char* name, int saved, int locals) {
  c->saved = saved;
  c->locals = locals + (saved % 2 == 0 ? 8 : 0); /* calls find the stack aligned */
  ju_describe(JU_CPU_HOST, name, &c->frame, NULL);
  for (int i = 0; i < saved; ++i) {
    const int64_t begin = here(c);
    emit_push_or_pop(c, 0x50, saved_code[i]);
    ju_push(c->frame, begin, here(c), saved_reg[i]);
  }
  const int64_t begin = here(c);
  emit(c, "\x48\x81\xec", 3); /* sub rsp,locals */
  emit(c, (const char*)&c->locals, 4);
  ju_allocate(c->frame, begin, here(c), c->locals);
}

/* A function may return in any number of places: code after a return has the same frame as code before it. */
static void emit_return(compiler* c) {
  ju_remember(c->frame);
  int64_t begin = here(c);
  emit(c, "\x48\x81\xc4", 3); /* add rsp,locals */
  emit(c, (const char*)&c->locals, 4);
  ju_deallocate(c->frame, begin, here(c), c->locals);
  for (int i = c->saved; i-- > 0;) {
    begin = here(c);
    emit_push_or_pop(c, 0x58, saved_code[i]);
    ju_pop(c->frame, begin, here(c), saved_reg[i]);
  }
  begin = here(c);
  emit(c, "\xc3", 1); /* ret */
  ju_restore(c->frame, begin, here(c));
}

typedef struct compiled {
  void* code;
  ju_registration* registration;
} compiled;

static int finish(compiler* c, compiled* out) {
  ju_error error;
  ju_description* description = NULL;
  ju_code place;
  ju_error_init(&error);
  ju_code_init(&place, c->code, c->size);
  ju_set_size(c->frame, c->size);
  out->code = c->code;
  out->registration = NULL;
  if (ju_build(c->frame, &description, &error) == JU_OK) ju_register(description, &place, &out->registration, &error);
  ju_description_free(description);
  ju_builder_free(c->frame);
  if (out->registration == NULL) fprintf(stderr, "%s\n", error.text);
  return out->registration != NULL && mprotect(c->code, room, PROT_READ | PROT_EXEC) == 0;
}

static void release(compiled* function) {
  ju_cancel(function->registration, NULL);
  munmap(function->code, room);
}

static int print_frame(const ju_cursor* cursor, void* context) {
  char name[100], row[200];
  (void)context;
  if (ju_frame_demangled_name(cursor, name, sizeof name, NULL) != JU_OK) return 0;
  if (strcmp(name, "clamp") == 0 && ju_frame_row(cursor, row, sizeof row, NULL) == JU_OK) printf("%s: %s\n", name, row);
  return strcmp(name, "main") == 0;
}

static long look(long value) { return ju_walk_here(print_frame, NULL, NULL) == JU_STOP_UNWIND ? value : -1; }

int main(void) {
  compiler c = {NULL, 0, 0, 0, NULL};
  compiled clamp;
  c.code = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (c.code == MAP_FAILED) return 1;
  /* long clamp(long value, long (*look)(long)): values below 100 are unchanged, others become look(100) */
  emit_enter(&c, "clamp", 2, 16);
  emit(&c, "\x48\x89\xfb\x49\x89\xf4", 6); /* mov rbx,rdi; mov r12,rsi */
  emit(&c, "\x48\x83\xfb\x64\x7d\x0e", 6); /* cmp rbx,100; jge over the return */
  emit(&c, "\x48\x89\xd8", 3);             /* mov rax,rbx */
  emit_return(&c);
  emit(&c, "\xbf\x64\x00\x00\x00\x41\xff\xd4", 8); /* mov edi,100; call r12 */
  emit_return(&c);
  if (!finish(&c, &clamp)) return 1;
  long (*call)(long, long (*)(long));
  memcpy(&call, &clamp.code, sizeof call);
  const long small = call(7, look), large = call(700, look);
  release(&clamp);
  printf("%ld %ld\n", small, large);
  return small == 7 && large == 100 ? 0 : 1;
}
