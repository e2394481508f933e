/* Code made at run time in a program of x86 with 32 bits of which GDB is told: by a list as GDB's manual has it ("JIT
   Compilation Interface"), with a file of ELF that has the code's name and its frame. */
#ifndef JITUNWIND_TESTS_I386_TOLD_H
#define JITUNWIND_TESTS_I386_TOLD_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

struct jit_code_entry {
  struct jit_code_entry *next, *previous;
  const char* file;
  uint64_t size;
};
/* The structures are those that tests/listen/gdb_list_test.cpp writes. */
_Static_assert(offsetof(struct jit_code_entry, size) == 12, "numbers of 8 bytes are aligned by 4");
struct jit_descriptor {
  uint32_t version, action;
  struct jit_code_entry *relevant, *first;
};
struct jit_descriptor __jit_debug_descriptor = {1, 0, 0, 0};
__attribute__((noinline)) void __jit_debug_register_code(void) { __asm__ volatile(""); }

enum {
  k_told_code = 4096,
  k_told_text = 1,
  k_told_frames,
  k_told_symbols,
  k_told_strings,
  k_told_names,
  k_told_sections
};

/* long told(long (*callee)(long), long n): push ebp; mov ebp, esp; sub esp, 24; mov eax, [ebp + 12]; mov [esp], eax;
   call [ebp + 8]; leave; ret */
static const unsigned char k_told_instructions[] = {0x55, 0x89, 0xe5, 0x83, 0xec, 24,   0x8b, 0x45, 12,
                                                    0x89, 0x04, 0x24, 0xff, 0x55, 0x08, 0xc9, 0xc3};
/* A CIE without augmentation: CFA = esp + 4, eip at CFA - 4. An FDE: pushed ebp, which is CFA - 8 then. */
static struct {
  uint32_t cie_length, cie_id;
  unsigned char cie[12];
  uint32_t length, to_cie, begin, size;
  unsigned char rows[12];
  uint32_t end;
} told_frames = {4 + 12,
                 0,
                 {1, 0, 1, 0x7c, 8, 0x0c, 4, 4, 0x88, 1, 0, 0},
                 12 + 12,
                 4 + 4 + 12 + 4,
                 0,
                 sizeof k_told_instructions,
                 {0x41, 0x0e, 8, 0x85, 2, 0x42, 0x0d, 5, 0, 0, 0, 0},
                 0};

static struct {
  Elf32_Ehdr head;
  Elf32_Shdr sections[k_told_sections];
  unsigned char frames[sizeof told_frames];
  Elf32_Sym symbols[2];
  char strings[8], names[64];
} told_file;
static struct jit_code_entry told_entry;

static void set_section(int number, const char* name, uint32_t type, const void* at, uint32_t size) {
  static uint32_t used = 1;
  Elf32_Shdr* const section = &told_file.sections[number];
  strcpy(told_file.names + used, name);
  section->sh_name = used;
  used += (uint32_t)strlen(name) + 1;
  section->sh_type = type;
  section->sh_offset = at ? (uint32_t)((const char*)at - (const char*)&told_file) : 0;
  section->sh_size = size;
  section->sh_addralign = 4;
}

static long (*told_function(void))(long (*)(long), long) {
  char* const code = mmap(0, k_told_code, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, k_told_instructions, sizeof k_told_instructions);
  told_frames.begin = (uint32_t)code;
  memcpy(told_file.frames, &told_frames, sizeof told_frames);
  strcpy(told_file.strings + 1, "told");
  set_section(k_told_text, ".text", SHT_NOBITS, 0, k_told_code);
  told_file.sections[k_told_text].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  told_file.sections[k_told_text].sh_addr = (uint32_t)code;
  set_section(k_told_frames, ".eh_frame", SHT_PROGBITS, told_file.frames, sizeof told_file.frames);
  told_file.sections[k_told_frames].sh_flags = SHF_ALLOC;
  set_section(k_told_symbols, ".symtab", SHT_SYMTAB, told_file.symbols, sizeof told_file.symbols);
  told_file.sections[k_told_symbols].sh_link = k_told_strings;
  told_file.sections[k_told_symbols].sh_info = 1;
  told_file.sections[k_told_symbols].sh_entsize = sizeof(Elf32_Sym);
  set_section(k_told_strings, ".strtab", SHT_STRTAB, told_file.strings, sizeof told_file.strings);
  set_section(k_told_names, ".shstrtab", SHT_STRTAB, told_file.names, sizeof told_file.names);
  told_file.symbols[1].st_name = 1;
  told_file.symbols[1].st_size = sizeof k_told_instructions;
  told_file.symbols[1].st_info = ELF32_ST_INFO(STB_GLOBAL, STT_FUNC);
  told_file.symbols[1].st_shndx = k_told_text;

  memcpy(told_file.head.e_ident, ELFMAG, SELFMAG);
  told_file.head.e_ident[EI_CLASS] = ELFCLASS32;
  told_file.head.e_ident[EI_DATA] = ELFDATA2LSB;
  told_file.head.e_ident[EI_VERSION] = EV_CURRENT;
  told_file.head.e_type = ET_REL;
  told_file.head.e_machine = EM_386;
  told_file.head.e_version = EV_CURRENT;
  told_file.head.e_ehsize = sizeof told_file.head;
  told_file.head.e_shoff = offsetof(__typeof__(told_file), sections);
  told_file.head.e_shentsize = sizeof(Elf32_Shdr);
  told_file.head.e_shnum = k_told_sections;
  told_file.head.e_shstrndx = k_told_names;

  told_entry.file = (const char*)&told_file;
  told_entry.size = sizeof told_file;
  __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = &told_entry;
  __jit_debug_descriptor.action = 1;
  __jit_debug_register_code();
  return (long (*)(long (*)(long), long))code;
}

#endif
