/* The functions by which JITs ask a program for memory, over code segments: of a JIT that knows two addresses of its
   code, as sljit, and of one that writes where its code runs, as MIR. The C library names their functions. x86-64, C11.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <jitunwind/c.h>
#include <string.h>
#include <sys/mman.h>

/* Two addresses: memory to write to, and the distance to where it runs. */
static _Thread_local ju_code_room room; /* the JIT asks for the distance right behind the memory */

static void* allocate_code(ju_code_segments* segments, size_t size) {
  return ju_code_allocate(segments, size, &room, NULL) == JU_OK ? room.writable : NULL;
}
static ptrdiff_t distance_of_code(void) { return (char*)room.start - (char*)room.writable; }
/* They end here. */

/* One address: pages, which are made writable and executable in turn. */
struct pages {
  ju_code_segments* segments;
  ju_code_room rooms[1000];
  size_t count;
};

static void* map_pages(size_t size, void* user) {
  struct pages* const all = user;
  ju_code_room* const next = &all->rooms[all->count];
  if (size > 1 << 20 || all->count == 1000) return NULL; /* MIR asks for 128 MiB, and then for what it needs */
  if (ju_code_allocate_functions(all->segments, size, size / 64, 4096, next, NULL) != JU_OK) return NULL;
  return ++all->count, next->start;
}
static int protect_pages(void* at, size_t size, int is_written, void* user) {
  const struct pages* const all = user;
  const size_t bytes = (size + 4095) / 4096 * 4096;
  size_t i = all->count;
  if (is_written) return mprotect(at, bytes, PROT_READ | PROT_WRITE | PROT_EXEC); /* copies of the file's pages */
  while (i != 0 && (size_t)((char*)at - (char*)all->rooms[i - 1].start) >= all->rooms[i - 1].size) --i;
  if (i == 0) return -1;
  memcpy((char*)all->rooms[i - 1].writable + ((char*)at - (char*)all->rooms[i - 1].start), at, bytes);
  return madvise(at, bytes, MADV_DONTNEED) == 0 ? mprotect(at, bytes, PROT_READ | PROT_EXEC) : -1;
}
static int unmap_pages(void* at, size_t size, void* user) {
  return size == 0 || ju_code_release(((struct pages*)user)->segments, at, NULL) != JU_OK ? -1 : 0;
}
/* They end here. */

static void show_stack(void) {
  void* stack[16];
  backtrace_symbols_fd(stack, backtrace(stack, 16), 1);
}

static const unsigned char bytes[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3}; /* push rbx; call rdi; pop rbx; ret */

static void describe(ju_builder* marks) {
  ju_push(marks, 0, 1, JU_X86_64_RBX);
  ju_pop(marks, 3, 4, JU_X86_64_RBX);
}
static void run(void* start) {
  void (*call)(void (*)(void));
  memcpy(&call, &start, sizeof call);
  call(show_stack);
}

static ju_status run_at_two_addresses(ju_code_segments* segments, ju_builder* marks) {
  char* const code = allocate_code(segments, sizeof bytes);
  ju_code place;
  if (code == NULL) return JU_OUT_OF_MEMORY;
  memcpy(code, bytes, sizeof bytes);
  ju_code_init(&place, code + distance_of_code(), sizeof bytes);
  place.name = "at_two_addresses";
  describe(marks);
  if (ju_code_commit_marks(segments, marks, &place, NULL) != JU_OK) return JU_UNSPECIFIED;
  run(code + distance_of_code());
  return ju_code_release(segments, code + distance_of_code(), NULL);
}

/* Two functions in one room, the second of which comes when the first has run. */
static ju_status run_in_pages(struct pages* pages, ju_builder* marks) {
  char* const code = map_pages(4096, pages);
  ju_registration* made[2];
  ju_status status = code == NULL ? JU_OUT_OF_MEMORY : JU_OK;
  for (size_t i = 0; i < 2 && status == JU_OK; ++i) {
    ju_code place;
    if (protect_pages(code, 4096, 1, pages) != 0) return JU_UNSPECIFIED;
    memcpy(code + 64 * i, bytes, sizeof bytes);
    if (protect_pages(code, 4096, 0, pages) != 0) return JU_UNSPECIFIED;
    ju_code_init(&place, code + 64 * i, sizeof bytes);
    place.name = i == 0 ? "first_in_pages" : "second_in_pages";
    describe(marks);
    status = ju_register_marks(marks, &place, &made[i], NULL);
    if (status == JU_OK) status = ju_code_publish(pages->segments, code + 64 * i, sizeof bytes, NULL);
    if (status == JU_OK) run(code + 64 * i);
  }
  if (status != JU_OK) return status;
  for (size_t i = 0; i < 2; ++i) ju_cancel(made[i], NULL);
  return unmap_pages(code, 4096, pages) == 0 ? JU_OK : JU_UNSPECIFIED;
}

int main(void) {
  static struct pages pages;
  ju_code_options options = {sizeof options, 0, 0, 1}; /* pages that have code are written to again */
  ju_code_segments* segments = NULL;
  ju_builder* marks = NULL;
  if (ju_describe_marks(JU_CPU_HOST, &marks, NULL) != JU_OK) return 1;
  if (ju_code_new(NULL, &segments, NULL) != JU_OK || ju_code_new(&options, &pages.segments, NULL) != JU_OK) return 1;
  if (run_at_two_addresses(segments, marks) != JU_OK || run_in_pages(&pages, marks) != JU_OK) return 1;
  ju_builder_free(marks);
  return ju_code_free(pages.segments) == JU_OK && ju_code_free(segments) == JU_OK ? 0 : 1;
}
