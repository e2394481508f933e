/* A JIT that loads a module of functions at once, as compilers with an intermediate language do. All frames are alike,
   so that one description serves every function, and one batch registers them. A recompiled module replaces the old
   one, whose code may still be running in other threads. x86-64, C99. The integrating part is load() and replace(). */
#define _GNU_SOURCE
#include <jitunwind/c.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { most_functions = 8, room = 4096 };

/* A function of the module: adds a number to the result of the next one, or to its argument. */
typedef struct function {
  const char* name;
  int number;
} function;

typedef struct module {
  unsigned char* code;
  size_t size;
  size_t start[most_functions + 1];
  ju_batch* registered;
} module;

static void emit(module* m, const void* bytes, size_t count) {
  memcpy(m->code + m->size, bytes, count);
  m->size += count;
}

/* Every function has a frame pointer and ends in leave; ret, whatever its size. */
static void compile(module* m, const function* functions, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    m->start[i] = m->size;
    emit(m, "\x55\x48\x89\xe5\x48\x83\xec\x10", 8); /* push rbp; mov rbp,rsp; sub rsp,16 */
    if (i + 1 < count) {
      const int distance = 11; /* the next function begins after add; leave; ret */
      emit(m, "\xe8", 1);      /* call the next one, with the same argument */
      emit(m, &distance, 4);
    } else {
      emit(m, "\xff\xd7\x90\x90\x90", 5); /* call rdi */
    }
    emit(m, "\x48\x05", 2); /* add rax,number */
    emit(m, &functions[i].number, 4);
    emit(m, "\xc9\xc3", 2); /* leave; ret */
    emit(m, "\x90\x90\x90", 3);
  }
  m->start[count] = m->size;
}

/* The shape is made once. It fits functions of any size, since places at their end are counted from there. */
static ju_description* describe_frames(ju_error* error) {
  ju_builder* builder = NULL;
  ju_description* description = NULL;
  ju_describe(JU_CPU_HOST, NULL, &builder, error);
  ju_push(builder, 0, 1, JU_X86_64_RBP);
  ju_set_frame_pointer(builder, 1, 4, JU_X86_64_RBP, 0);
  ju_leave(builder, -2, -1);
  ju_build(builder, &description, error);
  ju_builder_free(builder);
  return description;
}

static int load(module* m, const ju_description* frames, const function* functions, size_t count, ju_error* error) {
  const ju_description* descriptions[most_functions];
  ju_code codes[most_functions];
  for (size_t i = 0; i < count; ++i) {
    descriptions[i] = frames;
    ju_code_init(&codes[i], m->code + m->start[i], m->start[i + 1] - m->start[i] - 3);
    codes[i].name = functions[i].name;
    codes[i].user = (void*)(uintptr_t)&functions[i];
  }
  if (ju_batch_new(&m->registered, error) != JU_OK) return 0;
  return ju_batch_register(m->registered, descriptions, codes, count, error) == JU_OK;
}

/* It never waits. */
static void replace(module* old, ju_ticket* ticket) {
  ju_batch_retire(old->registered, ticket, NULL);
  ju_batch_free(old->registered, NULL);
}
/* The integration ends here. */

static int make(module* m, const ju_description* frames, const function* functions, size_t count, ju_error* error) {
  m->size = 0;
  m->code = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m->code == MAP_FAILED) return 0;
  compile(m, functions, count);
  return mprotect(m->code, room, PROT_READ | PROT_EXEC) == 0 && load(m, frames, functions, count, error);
}

static int print_frame(const ju_cursor* cursor, void* context) {
  char name[64];
  const function* const of = ju_frame_user(cursor);
  (void)context;
  if (of != NULL && ju_frame_name(cursor, name, sizeof name, NULL) == JU_OK) printf("  %s adds %d\n", name, of->number);
  return 0;
}

static long innermost(void) { return ju_walk_here(print_frame, NULL, NULL) == JU_OK ? 1 : -1000; }

int main(void) {
  static const function first[] = {{"outer", 20}, {"middle", 20}, {"inner", 1}};
  static const function second[] = {{"outer", 1000}, {"inner", 1}};
  ju_error error;
  module m, n;
  ju_ticket ticket;
  long (*call)(long (*)(void));
  ju_error_init(&error);
  ju_description* const frames = describe_frames(&error);
  if (frames == NULL || !make(&m, frames, first, 3, &error)) return puts(error.text), 1;
  memcpy(&call, &m.code, sizeof call);
  printf("%ld\n", call(innermost));
  if (!make(&n, frames, second, 2, &error)) return puts(error.text), 1;
  replace(&m, &ticket);
  memcpy(&call, &n.code, sizeof call);
  printf("%ld\n", call(innermost));
  ju_batch_free(n.registered, NULL);
  ju_description_free(frames);
  munmap(m.code, room); /* retired: nothing reads its description, and no thread runs it */
  munmap(n.code, room);
  return 0;
}
