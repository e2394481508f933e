// Maps an ELF object from a file as an application's own linker does, without telling anybody. The objects follow each
// other from an offset on. Each is mapped behind the one before it in memory, or where it was linked for. The program
// calls the last one. object_host FILE OFFSET [OFFSET...] [fault]
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_segments = 16 };
static const unsigned long page = 4096;

typedef int (*Entry)(long arguments);

static int protection_of(unsigned flags) {
  return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

static Entry map_object(int file, long offset) {
  Elf64_Ehdr header;
  Elf64_Phdr segments[most_segments];
  if (pread(file, &header, sizeof header, offset) != sizeof header || header.e_phnum > most_segments) abort();
  const size_t size = header.e_phnum * sizeof segments[0];
  if (pread(file, segments, size, offset + (long)header.e_phoff) != (ssize_t)size) abort();
  unsigned long begin = ~0ul, end = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    if (segments[i].p_type != PT_LOAD) continue;
    if (begin == ~0ul) begin = segments[i].p_vaddr & -page;
    end = segments[i].p_vaddr + segments[i].p_memsz;
  }
  // An object that was linked for a fixed address is mapped there.
  char* const base = mmap((void*)begin, end - begin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) abort();
  for (int i = 0; i < header.e_phnum; ++i) {
    const Elf64_Phdr* const s = &segments[i];
    if (s->p_type != PT_LOAD || s->p_filesz == 0) continue;
    const unsigned long before = s->p_vaddr % page;
    if (mmap(base + (s->p_vaddr - before - begin), s->p_filesz + before, protection_of(s->p_flags),
             MAP_PRIVATE | MAP_FIXED, file, offset + (long)(s->p_offset - before)) == MAP_FAILED)
      abort();
  }
  return (Entry)(base + (header.e_entry - begin) + 64);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int file = open(argv[1], O_RDONLY), is_to_fault = strcmp(argv[argc - 1], "fault") == 0;
  Entry entry = 0;
  for (int i = 2; i < argc - is_to_fault; ++i) entry = map_object(file, strtol(argv[i], 0, 0));
  close(file);
  return entry(is_to_fault ? 2 : 1) + 1;
}
