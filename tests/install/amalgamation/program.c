/* A JIT that has the library among its own sources, as two files and a header. Its function pushes rbx, allocates a
   frame and calls back: once into a walk, once into a throw that is caught behind it. */
#include "jitunwind.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

void throw_it(void);
int catches(void (*call_it)(void (*)(void)));

static int walked;

static int print_frame(const ju_cursor* cursor, void* context) {
  char name[100];
  (void)context;
  if (ju_frame_demangled_name(cursor, name, sizeof name, NULL) == JU_OK) printf("%s\n", name);
  walked += strcmp(name, "call_it") == 0;
  return strcmp(name, "main") == 0;
}

static void walk_it(void) { ju_walk_here(print_frame, NULL, NULL); }

static ju_description* described(ju_error* error) {
  ju_description* description = NULL;
  ju_builder* builder = NULL;
  if (ju_describe(JU_CPU_HOST, "call_it", &builder, error) != JU_OK) return NULL;
  ju_push(builder, 0, 1, JU_X86_64_RBX);
  ju_allocate(builder, 1, 5, 16);
  ju_deallocate(builder, -6, -2, 16);
  ju_pop(builder, -2, -1, JU_X86_64_RBX);
  ju_build(builder, &description, error);
  ju_builder_free(builder);
  return description;
}

int main(void) {
  /* push rbx; sub rsp,16; call rdi; add rsp,16; pop rbx; ret */
  static const unsigned char bytes[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
  void* const code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, bytes, sizeof bytes);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  if (ju_check_version(JITUNWIND_VERSION, NULL) != JU_OK) return 1;
  ju_error error;
  ju_error_init(&error);
  ju_code place;
  ju_code_init(&place, code, sizeof bytes);
  ju_registration* registration = NULL;
  ju_description* const description = described(&error);
  if (description == NULL || ju_register(description, &place, &registration, &error) != JU_OK)
    return fprintf(stderr, "%s\n", error.text), 1;
  ju_description_free(description);
  void (*call_it)(void (*)(void));
  memcpy(&call_it, &code, sizeof call_it);
  call_it(walk_it);
  printf("%s\n", catches(call_it) ? "caught behind it" : "not caught");
  ju_cancel(registration, NULL);
  munmap(code, 4096);
  return walked == 1 ? 0 : 1;
}
