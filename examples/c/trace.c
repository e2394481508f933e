/* A trace: code without a prologue, to which an interpreter jumps and which runs in the interpreter's frame. x86-64,
   C99. The part for jitunwind is make_known(). */
#define _GNU_SOURCE
#include <jitunwind/c.h>
#include <jitunwind/c_testing.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef struct trace {
  int number;
  void* code;
  size_t size;
} trace;

/* void interpreter(void (*native)(void), void* trace, void* exit): its frame is rbx and 32 bytes. */
static const unsigned char interpreter[] = {
    0x53,                   /* push rbx */
    0x48, 0x83, 0xec, 0x20, /* sub rsp,32 */
    0x48, 0x89, 0xd3,       /* mov rbx,rdx */
    0xff, 0xe6,             /* jmp rsi */
    0x48, 0x83, 0xc4, 0x20, /* exit: add rsp,32 */
    0x5b,                   /* pop rbx */
    0xc3,                   /* ret */
};
enum { exit_of_interpreter = 10, room = 4096 };
static const unsigned char trace_code[] = {0xff, 0xd7, 0xff, 0xe3}; /* call rdi; jmp rbx */

static ju_registration* make_known(trace* made) {
  ju_registration* registration = NULL;
  ju_description* description = NULL;
  ju_builder* frame = NULL;
  ju_code place;
  char name[32];
  snprintf(name, sizeof name, "TRACE_%d", made->number);
  ju_describe(JU_CPU_HOST, name, &frame, NULL);
  ju_entry_state(frame, "cfa=rsp+48 rbx=[cfa-16] ra=[cfa-8]"); /* the interpreter's frame */
  ju_ends_without_return(frame);                               /* all exits are jumps that keep it */
  ju_code_init(&place, made->code, made->size);
  place.user = made; /* what a walk finds for the frame */
  if (ju_build(frame, &description, NULL) == JU_OK) ju_register(description, &place, &registration, NULL);
  ju_description_free(description);
  ju_builder_free(frame);
  return registration;
}

static int print_frame(const ju_cursor* cursor, void* context) {
  char name[100] = "";
  const trace* const of = ju_frame_user(cursor);
  (void)context;
  ju_frame_demangled_name(cursor, name, sizeof name, NULL);
  if (of != NULL) printf("%s, of %d bytes\n", name, (int)of->size);
  return strcmp(name, "main") == 0; /* 1 ends the walk */
}
static int reached_main;
static void native(void) { reached_main = ju_walk_here(print_frame, NULL, NULL) == JU_STOP_UNWIND; }
static void quiet(void) {}

static void interpret(const trace* compiled, void (*called)(void)) {
  unsigned char* const start = (unsigned char*)compiled->code - sizeof interpreter;
  void (*call)(void (*)(void), void*, void*);
  memcpy(&call, &start, sizeof call);
  call(called, compiled->code, start + exit_of_interpreter);
}
static int run(void* compiled) {
  interpret(compiled, quiet);
  interpret(compiled, quiet);
  return 0;
}

int main(void) {
  unsigned char* const memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  trace compiled = {1, NULL, sizeof trace_code};
  ju_range range;
  char report[1000];
  if (memory == MAP_FAILED) return 1;
  memcpy(memory, interpreter, sizeof interpreter);
  compiled.code = memcpy(memory + sizeof interpreter, trace_code, sizeof trace_code);
  if (mprotect(memory, room, PROT_READ | PROT_EXEC) != 0) return 1;
  ju_registration* const registration = make_known(&compiled);
  if (ju_registration_range(registration, &range.begin, &range.end) != JU_OK) return 1;
  interpret(&compiled, native);
  const ju_status status = ju_check_by_stepping(&range, 1, run, &compiled, report, sizeof report, NULL);
  fputs(report, stdout);
  ju_cancel(registration, NULL); /* before the trace is flushed */
  munmap(memory, room);
  return reached_main && status == JU_OK ? 0 : 1;
}
