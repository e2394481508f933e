/* Memory that lives as long as the machine, and texts, which are kept once. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "examples/c_toy_vm/toy.h"

typedef struct block {
  struct block* next;
  value contents[];
} block;

void* toy_keep(machine* m, size_t size) {
  block* const made = calloc(1, sizeof *made + size);
  if (made == NULL) {
    fputs("toy_vm: out of memory\n", stderr);
    exit(2);
  }
  made->next = m->blocks;
  m->blocks = made;
  return made->contents;
}

/* Arrays have room for a power of two. */
void* toy_grown(machine* m, void* array, size_t count, size_t size) {
  if (count != 0 && (count & (count - 1)) != 0) return array;
  void* const more = toy_keep(m, (count == 0 ? 1 : 2 * count) * size);
  if (count != 0) memcpy(more, array, count * size);
  return more;
}

const text* toy_text(machine* m, const char* bytes, size_t size) {
  size_t hash = size;
  for (size_t i = 0; i < size; ++i) hash = hash * 31 + (unsigned char)bytes[i];
  text** const bucket = &m->texts[hash % text_buckets];
  for (const text* t = *bucket; t != NULL; t = t->next)
    if (t->size == size && memcmp(t->bytes, bytes, size) == 0) return t;
  text* const made = toy_keep(m, sizeof *made + size + 1);
  made->next = *bucket;
  made->size = size;
  memcpy(made->bytes, bytes, size);
  return *bucket = made;
}

/* Code is cancelled before its memory is freed, and before the data of its handlers are. */
void toy_free(machine* m) {
  ju_batch_free(m->registered, NULL);
  if (m->memory != NULL) munmap(m->memory, m->memory_size);
  while (m->blocks != NULL) {
    block* const next = m->blocks->next;
    free(m->blocks);
    m->blocks = next;
  }
}

void toy_refuse(machine* m, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(m->message, sizeof m->message, format, arguments);
  va_end(arguments);
  m->refused_line = line;
  longjmp(m->refused, 1);
}
