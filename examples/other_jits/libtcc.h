/* libtcc: tccrun.c includes this file in front of tcc_relocate(). */
#pragma once

#include <jitunwind_jit.h>

static const ju_jit_mark jit_marks[] = {
    {JU_JIT_PUSH, JU_JIT_X86_64(5), 0, 1, 0}, /* push rbp; mov rbp,rsp; ..; leave; ret */
    {JU_JIT_SET_FRAME_POINTER, JU_JIT_X86_64(5), 0, 4, 0},
    {JU_JIT_LEAVE, 0, 0, -1, 0},
};
static ju_jit_frame jit_frame = {jit_marks, 3, 1, NULL, NULL};

static void jit_announce(TCCState* s1) {
  const size_t count = symtab_section->data_offset / sizeof(ElfW(Sym));
  for (size_t i = 0; i < count && ju_jit_wanted(); ++i) {
    const ElfW(Sym)* const sym = (const ElfW(Sym)*)symtab_section->data + i;
    const char* const name = (const char*)symtab_section->link->data + sym->st_name;
    const ju_jit_code code = JU_JIT_CODE((const void*)sym->st_value, sym->st_size, name, &jit_frame);
    ju_jit_known* known = NULL;
    if (ELFW(ST_TYPE)(sym->st_info) != STT_FUNC || sym->st_shndx != text_section->sh_num || code.size == 0) continue;
    if (ju_jit_announce(&code, &known, NULL) == JU_JIT_OK) dynarray_add(&s1->jit_known, &s1->jit_known_count, known);
  }
}
static void jit_take_back(TCCState* s1) {
  while (s1->jit_known_count > 0) ju_jit_take_back(s1->jit_known[--s1->jit_known_count], NULL);
  dynarray_reset(&s1->jit_known, &s1->jit_known_count);
}
