/* libjit: jit-rules-x86-64.c includes this file in front of _jit_gen_prolog(). */
#pragma once

#include <jitunwind_jit.h>

static void jit_announce(jit_gencode_t gen, jit_function_t func, const unsigned char* start, ju_jit_mark* marks,
                         int count) {
  const ju_jit_mark release = {JU_JIT_RESTORE_SP, JU_JIT_X86_64(X86_64_RBP), 0, -2, 0};
  const ju_jit_mark pop = {JU_JIT_POP, JU_JIT_X86_64(X86_64_RBP), 0, -1, 0}; /* of the one epilogue */
  ju_jit_frame frame = {marks, (size_t)count + 2, 0, NULL, NULL};
  const char* const name = jit_function_get_meta(func, JIT_NAME);
  const ju_jit_code code = JU_JIT_CODE(start, (size_t)(gen->code_end - start), name, &frame);
  marks[count] = release;
  marks[count + 1] = pop;
  ju_jit_take_back(func->known, NULL);
  func->known = NULL;
  ju_jit_announce(&code, &func->known, NULL);
}
