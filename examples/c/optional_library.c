/* A JIT that has jitunwind_jit.h among its own sources, and nothing else of jitunwind. JITUNWIND=1 in the environment
   switches the library on. x86-64, C99. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <jitunwind_jit.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* long twice(void (*watch)(void), long n) */
static const unsigned char bytes[] = {
    0x53,                   /* push rbx */
    0x48, 0x89, 0xf3,       /* mov rbx,rsi */
    0xff, 0xd7,             /* call rdi */
    0x48, 0x8d, 0x04, 0x1b, /* lea rax,[rbx+rbx] */
    0x5b,                   /* pop rbx */
    0xc3,                   /* ret */
};

/* All functions of this compiler save the same register. */
static const ju_jit_mark marks[] = {
    {JU_JIT_PUSH, JU_JIT_X86_64(3), 0, 1, 0}, /* rbx, behind the first byte */
    {JU_JIT_POP, JU_JIT_X86_64(3), 0, -1, 0}, /* and in front of the last one */
};
static ju_jit_frame frame = {marks, 2, 1, NULL, NULL};

static ju_jit_known* make_known(const void* start, size_t size, const char* name) {
  const ju_jit_code code = JU_JIT_CODE(start, size, name, &frame);
  ju_jit_known* known = NULL;
  ju_jit_error error;
  error.struct_size = sizeof error;
  const int result = ju_jit_announce(&code, &known, &error);
  if (result > 0) fprintf(stderr, "%s: %s\n", name, error.text); /* negative ones: there is no library to tell */
  return known;
}

static void watch(void) {
  void* frames[16];
  const int count = backtrace(frames, 16); /* this function, the code, and then what called it */
  printf("%s: backtrace() %s\n", ju_jit_wanted() ? "loaded" : "not loaded", count > 2 ? "goes on" : "ends at the code");
}

int main(void) {
  const size_t size = 4096;
  void* const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  long (*twice)(void (*)(void), long);
  if (memory == MAP_FAILED) return 1;
  memcpy(memory, bytes, sizeof bytes);
  if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) return 1;
  ju_jit_known* const known = make_known(memory, sizeof bytes, "twice");
  memcpy(&twice, &memory, sizeof twice);
  const long result = twice(watch, 21);
  ju_jit_take_back(known, NULL); /* before the code is freed */
  munmap(memory, size);
  return result == 42 ? 0 : 1;
}
