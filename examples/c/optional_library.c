/* A JIT that is not linked to jitunwind, and uses it where it is loaded: LD_PRELOAD=libjitunwind.so.1 switches it on.
   Its build needs the headers alone. x86-64, C99. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <jitunwind/c_weak.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* long twice(void (*watch)(void), long n) */
static const unsigned char code[] = {
    0x53,                   /* push rbx */
    0x48, 0x89, 0xf3,       /* mov rbx,rsi */
    0xff, 0xd7,             /* call rdi */
    0x48, 0x8d, 0x04, 0x1b, /* lea rax,[rbx+rbx] */
    0x5b,                   /* pop rbx */
    0xc3,                   /* ret */
};

/* Null without the library: the JIT then works as before. */
static ju_registration* make_known(const void* start) {
  ju_registration* registration = NULL;
  ju_description* description = NULL;
  ju_builder* frame = NULL;
  ju_code place;
  if (!ju_available()) return NULL;
  ju_describe(JU_CPU_HOST, "twice", &frame, NULL);
  ju_push(frame, 0, 1, JU_X86_64_RBX);
  ju_pop(frame, -2, -1, JU_X86_64_RBX);
  ju_code_init(&place, start, sizeof code);
  if (ju_build(frame, &description, NULL) == JU_OK) ju_register(description, &place, &registration, NULL);
  ju_description_free(description);
  ju_builder_free(frame);
  return registration;
}

static void watch(void) {
  void* frames[16];
  const int count = backtrace(frames, 16); /* this function, the code, and then what called it */
  printf("%s: backtrace() %s\n", ju_available() ? "loaded" : "not loaded", count > 2 ? "goes on" : "ends at the code");
}

int main(void) {
  const size_t size = 4096;
  void* const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  long (*twice)(void (*)(void), long);
  if (memory == MAP_FAILED) return 1;
  memcpy(memory, code, sizeof code);
  if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) return 1;
  ju_registration* const registration = make_known(memory);
  memcpy(&twice, &memory, sizeof twice);
  const long result = twice(watch, 21);
  if (registration != NULL) ju_cancel(registration, NULL); /* before the code is freed */
  munmap(memory, size);
  return result == 42 ? 0 : 1;
}
