/* LuaJIT with 64-bit references: lj_trace.c includes this file behind its other headers. */
#pragma once

#include <jitunwind_jit.h>
#include <stdint.h>

static void jit_take_back(GCtrace* T) {
  ju_jit_take_back(T->jit_known, NULL);
  T->jit_known = NULL;
}
static void jit_announce(jit_State* J, GCtrace* T) {
  static const int saved[] = {RID_EBP, 16, RID_EBX, 24, RID_R15D, 32, RID_R14D, 40, RID_R13D, 80, RID_R12D, 88};
  const TraceNo parent = T->ir[REF_BASE].op1;
  const int from = CFRAME_SIZE_JIT + (parent ? traceref(J, parent)->spadjust : 0); /* of the code that jumps here */
  const int moved = CFRAME_SIZE_JIT + T->spadjust - from, jump = T->mcode[T->szmcode - 5] == XI_JMP ? 5 : 6;
  ju_jit_mark marks[10], *to = marks;
  ju_jit_frame frame = {marks, 0, 0, (const void*)err_unwind_jit, NULL};
  char name[24];
  ju_jit_code code = JU_JIT_CODE(T->mcode, T->szmcode, name, &frame);
  code.user = T; /* what a walk finds for the frame */
  *to++ = ju_jit_x86_64(JU_JIT_ENDS_WITHOUT_RETURN, 0, 0, 0);
  *to++ = ju_jit_x86_64(JU_JIT_ADD_TO_SP, 0, 0, 8 - from);
  for (int i = 0; i < 12; i += 2) *to++ = ju_jit_x86_64(JU_JIT_SPILL_SP_REL, saved[i], 0, from - saved[i + 1]);
  if (moved) *to++ = ju_jit_x86_64(JU_JIT_ADD_TO_SP, 0, (int)(T->jit_built - T->mcode), -moved);
  if (T->spadjust && !T->mcloop) *to++ = ju_jit_x86_64(JU_JIT_ADD_TO_SP, 0, (int)T->szmcode - jump, T->spadjust);
  snprintf(name, sizeof name, "TRACE_%d", T->traceno);
  frame.mark_count = (size_t)(to - marks);
  T->jit_known = NULL;
  ju_jit_announce(&code, &T->jit_known, NULL);
}
