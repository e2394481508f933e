/* MIR: mir-gen-x86_64.c includes this file in front of target_translate(). */
#pragma once

#include <jitunwind_jit.h>
#include <stdint.h>

static __thread ju_jit_mark jit_said[256];
static __thread unsigned jit_count, jit_saved; /* `jit_saved` has a bit for each register */

static void jit_say(int does, MIR_reg_t reg, size_t end, int64_t value) {
  if (jit_count < 256) jit_said[jit_count++] = ju_jit_x86_64(does, (int)reg, (int32_t)end, value);
}
static void jit_say_insn(MIR_insn_t insn, size_t end) { /* `end`: bytes of code, this instruction included */
  const MIR_op_t to = insn->ops[0], from = insn->ops[1];
  const MIR_reg_t base = to.mode == MIR_OP_VAR_MEM ? to.u.var_mem.base : R15_HARD_REG;
  const int64_t by = insn->nops == 3 && insn->ops[2].mode == MIR_OP_INT ? insn->ops[2].u.i : 0;
  const int saves = from.mode == MIR_OP_VAR && from.u.var < 16 && (jit_saved >> from.u.var & 1) == 0 &&
                    (from.u.var == FP_HARD_REG || !target_call_used_hard_reg_p(from.u.var, MIR_T_UNDEF));
  const int place = base == SP_HARD_REG ? JU_JIT_SAVE_AT_SP : JU_JIT_SAVE_AT_FP;
  if (insn->code == MIR_MOV && saves && (base == SP_HARD_REG || base == FP_HARD_REG))
    jit_say(place, from.u.var, end, to.u.var_mem.disp), jit_saved |= 1u << from.u.var;
  if (by == 0 || to.mode != MIR_OP_VAR || from.mode != MIR_OP_VAR) return;
  if (insn->code == MIR_SUB && to.u.var == SP_HARD_REG) jit_say(JU_JIT_ALLOCATE, 0, end, by);
  if (insn->code == MIR_ADD && to.u.var == FP_HARD_REG && from.u.var == SP_HARD_REG)
    jit_say(JU_JIT_SET_FRAME_POINTER, FP_HARD_REG, end, by);
  if (insn->code != MIR_ADD || to.u.var != SP_HARD_REG) return;
  jit_say(from.u.var == FP_HARD_REG ? JU_JIT_RESTORE_SP : JU_JIT_DEALLOCATE, FP_HARD_REG, end, by);
  if (from.u.var != FP_HARD_REG) return;
  jit_say(JU_JIT_SPILL_SP_REL, FP_HARD_REG, end, -8); /* mov rbp,[rsp-8] follows, of 5 bytes */
  jit_say(JU_JIT_RELOAD, FP_HARD_REG, end + 5, 0);
}
static ju_jit_known* jit_announce(const void* code, size_t size, const char* name) {
  ju_jit_frame frame = {jit_said, jit_count, 0, NULL, NULL};
  const ju_jit_code at = JU_JIT_CODE(code, size, name, &frame);
  ju_jit_known* known = NULL;
  ju_jit_announce(&at, &known, NULL);
  return jit_count = jit_saved = 0, known;
}
