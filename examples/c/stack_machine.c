/* A compiled stack machine with exceptions of its own, whose handlers tell where `try` lands. No table is written: a
   function is called for each frame that an exception passes. Exceptions are those of <unwind.h>, so that they pass
   frames of C and C++ as well. x86-64, C99. The integrating part is decide() and make_known(). */
#define _GNU_SOURCE
#include <jitunwind/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

/* The thrown object. */
typedef struct thrown {
  struct _Unwind_Exception header;
  long code;
} thrown;

static void free_thrown(_Unwind_Reason_Code reason, struct _Unwind_Exception* exception) {
  (void)reason;
  free(exception);
}

/* Natives, which compiled code calls through r12. */
static long check(long value) {
  if (value < 100) return value;
  thrown* const exception = calloc(1, sizeof *exception);
  if (exception == NULL) abort();
  memcpy(&exception->header.exception_class, "STACKMCH", 8);
  exception->header.exception_cleanup = free_thrown;
  exception->code = value - 100;
  _Unwind_RaiseException(&exception->header);
  printf("nobody catches %ld\n", exception->code);
  exit(1);
}
static long caught(thrown* exception) {
  const long code = exception->code;
  _Unwind_DeleteException(&exception->header);
  return code;
}
static void (*const natives[])(void) = {(void (*)(void))check, (void (*)(void))caught};

enum op { op_push, op_add, op_check, op_try, op_catch, op_return }; /* try .. catch: catch pushes the caught value */
typedef struct instruction {
  enum op op;
  int number;
} instruction;

typedef struct procedure {
  unsigned char* code;
  int64_t size, epilogue;
  int64_t try_begin, try_end, landing_pad; /* code offsets */
  int depth_at_try, depth_at_check;        /* of the operand stack */
} procedure;

static void emit(procedure* p, const char* bytes, int64_t count) {
  memcpy(p->code + p->size, bytes, (size_t)count);
  p->size += count;
}

/* long run(long* operands, natives): operands grow upwards in rbx. */
static void compile(procedure* p, const instruction* at) {
  int depth = 0;
  emit(p, "\x53\x41\x54\x48\x83\xec\x08", 7); /* push rbx; push r12; sub rsp,8 */
  emit(p, "\x48\x89\xfb\x49\x89\xf4", 6);     /* mov rbx,rdi; mov r12,rsi */
  for (;; ++at) switch (at->op) {
      case op_push: /* mov qword [rbx],number; add rbx,8 */
        emit(p, "\x48\xc7\x03", 3), emit(p, (const char*)&at->number, 4), emit(p, "\x48\x83\xc3\x08", 4);
        ++depth;
        break;
      case op_add: /* sub rbx,8; mov rax,[rbx]; add [rbx-8],rax */
        emit(p, "\x48\x83\xeb\x08\x48\x8b\x03\x48\x01\x43\xf8", 11);
        --depth;
        break;
      case op_check: /* mov rdi,[rbx-8]; call [r12]; mov [rbx-8],rax */
        emit(p, "\x48\x8b\x7b\xf8\x41\xff\x14\x24\x48\x89\x43\xf8", 12);
        p->depth_at_check = depth;
        break;
      case op_try:
        p->try_begin = p->size;
        p->depth_at_try = depth;
        break;
      case op_catch: /* jmp over it; mov rdi,rax; call [r12+8]; mov [rbx],rax; add rbx,8 */
        p->try_end = p->size;
        emit(p, "\xeb\x0f", 2);
        p->landing_pad = p->size;
        emit(p, "\x48\x89\xc7\x41\xff\x54\x24\x08\x48\x89\x03\x48\x83\xc3\x08", 15);
        depth = p->depth_at_try + 1;
        break;
      case op_return:
        emit(p, "\x48\x8b\x43\xf8", 4); /* mov rax,[rbx-8] */
        p->epilogue = p->size;
        emit(p, "\x48\x83\xc4\x08\x41\x5c\x5b\xc3", 8); /* add rsp,8; pop r12; pop rbx; ret */
        return;
    }
}

static void decide(const ju_passed_frame* frame, ju_decision* decision, void* context) {
  const procedure* const p = context;
  const int64_t at = (int64_t)frame->call_offset;
  uint64_t operands;
  if (at < p->try_begin || at >= p->try_end || ju_passed_frame_get(frame, JU_X86_64_RBX, &operands) != JU_OK) return;
  ju_catch_at(decision, frame->start + (uint64_t)p->landing_pad);
  ju_land_with(decision, JU_X86_64_RBX, operands - 8 * (uint64_t)(p->depth_at_check - p->depth_at_try));
}

static ju_registration* make_known(procedure* p, ju_error* error) {
  ju_builder* b = NULL;
  ju_description* description = NULL;
  ju_registration* registration = NULL;
  ju_code place;
  ju_describe(JU_CPU_HOST, "run", &b, error);
  ju_push(b, 0, 1, JU_X86_64_RBX), ju_push(b, 1, 3, JU_X86_64_R12), ju_allocate(b, 3, 7, 8);
  ju_deallocate(b, -8, -4, 8), ju_pop(b, -4, -2, JU_X86_64_R12), ju_pop(b, -2, -1, JU_X86_64_RBX);
  ju_handled_by(b, decide, p, NULL);
  ju_code_init(&place, p->code, (size_t)p->size);
  if (ju_build(b, &description, error) == JU_OK) ju_register(description, &place, &registration, error);
  ju_description_free(description);
  ju_builder_free(b);
  return registration;
}

int main(void) {
  /* 1 + (try 2 + check(141) catch) */
  static const instruction program[] = {{op_push, 1}, {op_try, 0},   {op_push, 2}, {op_push, 141}, {op_check, 0},
                                        {op_add, 0},  {op_catch, 0}, {op_add, 0},  {op_return, 0}};
  static long operands[16];
  procedure p = {mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0, 0, 0, 0, 0, 0, 0};
  ju_error error;
  long (*run)(long*, void (*const*)(void));
  ju_error_init(&error);
  if (p.code == MAP_FAILED) return 1;
  compile(&p, program);
  ju_registration* const registration = make_known(&p, &error);
  if (registration == NULL || mprotect(p.code, 4096, PROT_READ | PROT_EXEC) != 0) return puts(error.text), 1;
  memcpy(&run, &p.code, sizeof run);
  printf("%ld\n", run(operands, natives)); /* 1 + the caught value, 41 */
  ju_cancel(registration, NULL);
  munmap(p.code, 4096);
  return 0;
}
