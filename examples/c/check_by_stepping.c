/* The test that a JIT compiler written in C has of its descriptions: its code runs one instruction at a time, and each
   row is compared. x86-64, C99. */
#define _GNU_SOURCE
#include <jitunwind/c.h>
#include <jitunwind/c_testing.h>
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

static void watch(void) {}

/* Returns 0 if the code does what it should. */
static int run(void* start) {
  long (*twice)(void (*)(void), long);
  memcpy(&twice, &start, sizeof twice);
  return twice(watch, 21) == 42 ? 0 : 1;
}

static int check(ju_registration* registration, void* start) {
  ju_range range;
  char report[2000];
  size_t not_run = 0;
  if (ju_registration_range(registration, &range.begin, &range.end) != JU_OK) return 1;
  const ju_status status = ju_check_by_stepping(&range, 1, run, start, report, sizeof report, &not_run);
  fputs(report, stdout);
  return status == JU_OK && not_run == 0 ? 0 : 1;
}

int main(void) {
  void* const start = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ju_registration* registration = NULL;
  ju_description* description = NULL;
  ju_builder* frame = NULL;
  ju_code place;
  if (start == MAP_FAILED) return 1;
  memcpy(start, code, sizeof code);
  if (mprotect(start, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  ju_describe(JU_CPU_HOST, "twice", &frame, NULL);
  ju_push(frame, 0, 1, JU_X86_64_RBX);
  ju_pop(frame, -2, -1, JU_X86_64_RBX);
  ju_code_init(&place, start, sizeof code);
  if (ju_build(frame, &description, NULL) == JU_OK) ju_register(description, &place, &registration, NULL);
  ju_description_free(description);
  ju_builder_free(frame);
  const int result = registration == NULL ? 1 : check(registration, start);
  ju_cancel(registration, NULL);
  munmap(start, 4096);
  return result;
}
