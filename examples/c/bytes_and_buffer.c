/* A JIT that writes bytes into a buffer, as small ones do. Its function adds numbers and calls back from the middle.
   x86-64, C99. The code that uses jitunwind is between the two marks. */
#define _GNU_SOURCE
#include <jitunwind/c.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* A buffer of bytes. */
typedef struct buffer {
  unsigned char* bytes;
  size_t size;
} buffer;

static void emit(buffer* code, const void* bytes, size_t count) {
  memcpy(code->bytes + code->size, bytes, count);
  code->size += count;
}

static void emit_int32(buffer* code, int value) { emit(code, &value, sizeof value); }

/* The places of the instructions that build and release the frame. */
typedef struct frame_places {
  int64_t pushed, allocated, released, popped, end;
} frame_places;

/* long sum(void (*watch)(long)): adds numbers in rbx and shows each sum to `watch`. */
static frame_places compile(buffer* code, const int* numbers, size_t count) {
  frame_places at;
  emit(code, "\x53", 1); /* push rbx */
  at.pushed = (int64_t)code->size;
  emit(code, "\x48\x83\xec\x10", 4); /* sub rsp,16 */
  at.allocated = (int64_t)code->size;
  emit(code, "\x48\x89\x3c\x24\x31\xdb", 6); /* mov [rsp],rdi; xor ebx,ebx */
  for (size_t i = 0; i < count; ++i) {
    emit(code, "\x48\x81\xc3", 3); /* add rbx,number */
    emit_int32(code, numbers[i]);
    emit(code, "\x48\x89\xdf\xff\x14\x24", 6); /* mov rdi,rbx; call [rsp] */
  }
  emit(code, "\x48\x89\xd8", 3); /* mov rax,rbx */
  at.released = (int64_t)code->size;
  emit(code, "\x48\x83\xc4\x10", 4); /* add rsp,16 */
  at.popped = (int64_t)code->size;
  emit(code, "\x5b\xc3", 2); /* pop rbx; ret */
  at.end = (int64_t)code->size;
  return at;
}

/* The integration: describe, register, take back. */
static ju_registration* make_known(const buffer* code, const frame_places* at) {
  ju_registration* registration = NULL;
  ju_description* description = NULL;
  ju_builder* builder = NULL;
  ju_code place;
  ju_error error;
  ju_error_init(&error);
  ju_describe(JU_CPU_HOST, "sum", &builder, &error);
  ju_push(builder, 0, at->pushed, JU_X86_64_RBX);
  ju_allocate(builder, at->pushed, at->allocated, 16);
  ju_deallocate(builder, at->released, at->popped, 16);
  ju_pop(builder, at->popped, at->popped + 1, JU_X86_64_RBX);
  ju_set_size(builder, (uint64_t)at->end);
  if (ju_build(builder, &description, &error) == JU_OK) {
    ju_code_init(&place, code->bytes, code->size);
    ju_register(description, &place, &registration, &error);
  }
  if (registration == NULL) fprintf(stderr, "%s\n", error.text);
  ju_description_free(description);
  ju_builder_free(builder);
  return registration;
}
/* The integration ends here. */

static int print_frame(const ju_cursor* cursor, void* context) {
  char name[100];
  (void)context;
  if (ju_frame_demangled_name(cursor, name, sizeof name, NULL) == JU_OK) printf("  %s\n", name);
  return strcmp(name, "main") == 0;
}

static void watch(long sum) {
  printf("%ld\n", sum);
  if (sum > 41 && ju_walk_here(print_frame, NULL, NULL) == JU_STOP_UNWIND) printf("  ...\n");
}

int main(void) {
  static const int numbers[] = {20, 21, 1};
  const size_t size = 4096;
  buffer code = {NULL, 0};
  code.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code.bytes == MAP_FAILED) return 1;
  const frame_places at = compile(&code, numbers, 3);
  if (mprotect(code.bytes, size, PROT_READ | PROT_EXEC) != 0) return 1;
  ju_registration* const registration = make_known(&code, &at);
  if (registration == NULL) return 1;
  long (*sum)(void (*)(long));
  memcpy(&sum, &code.bytes, sizeof sum);
  const long result = sum(watch);
  ju_cancel(registration, NULL); /* nothing reads it any more: the code may be freed */
  munmap(code.bytes, size);
  return result == 42 ? 0 : 1;
}
