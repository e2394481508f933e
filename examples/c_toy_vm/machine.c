/* Converts compiled functions to running code that the library knows, and enters it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "examples/c_toy_vm/emitter.h"

/* push rbx; mov rbx,rdi; mov rdi,[rbx]; mov rsi,[rbx+16]; call [rbx+8]; mov [rbx+24],rax; mov [rbx+32],rdx; jmp over
   the landing pad: mov [rbx+40],rax; pop rbx; ret */
static const char entry_code[] =
    "53 48 89 fb 48 8b 3b 48 8b 73 10 ff 53 08 48 89 43 18 48 89 53 20 eb 04 48 89 43 28 5b c3";

static void toy_check(machine* m, int done, const ju_error* error) {
  if (!done) toy_refuse(m, 0, "%s", error->text);
}

/* Describes the frames of a function, or of the entry if it is null. The caller frees the description. */
static ju_description* describe(machine* m, function* f, ju_error* error) {
  ju_builder* b = NULL;
  ju_description* description = NULL;
  ju_describe(JU_CPU_HOST, f != NULL ? f->name : "<script>", &b, error);
  ju_push(b, 0, 1, JU_X86_64_RBX);
  if (f != NULL) {
    ju_allocate(b, 1, 8, content(f->slots));
    ju_deallocate(b, -9, -2, content(f->slots));
    ju_handled_by(b, toy_decide, f, NULL);
  } else {
    ju_handled_by(b, toy_decide_entry, m, NULL);
  }
  ju_pop(b, -2, -1, JU_X86_64_RBX);
  ju_build(b, &description, error);
  ju_builder_free(b);
  return description;
}

static int make_known(machine* m, function* f, int64_t begin, int64_t end, ju_error* error) {
  ju_description* const description = describe(m, f, error);
  ju_registration* registration = NULL;
  ju_code place;
  ju_code_init(&place, (const char*)m->memory + begin, (size_t)(end - begin));
  place.user = f;
  if (description != NULL) ju_register(description, &place, &registration, error);
  ju_description_free(description);
  if (registration == NULL) return 0;
  if (ju_batch_add(m->registered, registration, error) == JU_OK) return 1;
  ju_cancel(registration, NULL);
  return 0;
}

static void place_code(machine* m, int64_t entry) {
  ju_error error;
  ju_error_init(&error);
  void* const memory = mmap(NULL, (size_t)m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) toy_refuse(m, 0, "no memory for code");
  m->memory = memory;
  m->memory_size = (size_t)m->size;
  memcpy(memory, m->bytes, m->memory_size);
  if (mprotect(memory, m->memory_size, PROT_READ | PROT_EXEC) != 0) toy_refuse(m, 0, "code may not be run");
  toy_check(m, ju_batch_new(&m->registered, &error) == JU_OK, &error);
  toy_check(m, make_known(m, NULL, entry, m->size, &error), &error);
  m->entry = (const unsigned char*)memory + entry;
  for (size_t i = m->native_count; i < m->function_count; ++i) {
    function* const f = m->functions[i];
    const unsigned char* const start = (const unsigned char*)memory + f->begin;
    toy_check(m, make_known(m, f, f->begin, f->end, &error), &error);
    memcpy(&f->code, &start, sizeof f->code);
  }
}

static void add_native(machine* m, const native* added) {
  function* const f = toy_keep(m, sizeof *f);
  f->name = added->name;
  f->arity = added->arity;
  f->code = added->code;
  m->functions = toy_grown(m, m->functions, m->function_count, sizeof *m->functions);
  m->functions[m->function_count++] = f;
}

/* Returns 0 on failure, with the reason in `message`. */
int toy_load(machine* m, const native* natives, size_t count, const char* script, size_t size) {
  if (setjmp(m->refused) != 0) return 0;
  compiler c = {0};
  c.m = m;
  for (size_t i = 0; i < count; ++i) add_native(m, &natives[i]);
  m->native_count = count;
  toy_compile(m, script, size);
  const int64_t entry = m->size;
  toy_put(&c, entry_code);
  place_code(m, entry);
  return 1;
}

void toy_run_protected(protected_call* call) {
  void (*enter)(protected_call*);
  memcpy(&enter, &call->m->entry, sizeof enter);
  enter(call);
}
