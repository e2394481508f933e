/* The IR framework: ir_x86.dasc includes this file behind its ir_backend_data. */
#pragma once

#include <jitunwind_jit.h>
#include <stdint.h>

__thread const char* ir_jit_name;    /* the caller of ir_jit_compile() sets it, */
__thread ju_jit_known* ir_jit_known; /* and takes this back before it frees the code */

static void ir_jit_announce(ir_ctx* ctx, const void* entry, size_t size, ir_backend_data* data) {
  const ir_regset saved = IR_REGSET_INTERSECTION((ir_regset)ctx->used_preserved_regs, IR_REGSET_GP);
  const int fp = (ctx->flags & IR_USE_FRAME_POINTER) != 0;
  ju_jit_mark* const marks = ir_mem_malloc((size_t)(data->jit_returns + 1) * 20 * sizeof *marks);
  int m = 0, pushes = 0, bytes = 4 * fp, room = ctx->stack_frame_size + ctx->call_stack_size;
  marks[m++] = ju_jit_x86_64(JU_JIT_ENDS_WITHOUT_RETURN, 0, 0, 0); /* cold code or constants may end it */
  if (fp) marks[m++] = ju_jit_x86_64(JU_JIT_PUSH, IR_REG_RBP, 1, 0);
  if (fp) marks[m++] = ju_jit_x86_64(JU_JIT_SET_FRAME_POINTER, IR_REG_RBP, 4, 0);
  for (int i = IR_REG_GP_FIRST; i <= IR_REG_GP_LAST; i++)
    if (IR_REGSET_IN(saved, i)) marks[m++] = ju_jit_x86_64(JU_JIT_PUSH, i, bytes += i < 8 ? 1 : 2, 0), pushes++;
  room = ctx->fixed_stack_red_zone ? 0 : room - 8 * pushes;
  if (room != 0) marks[m++] = ju_jit_x86_64(JU_JIT_ALLOCATE, 0, bytes + (room < 128 ? 4 : 7), room);
  for (int n = 0; n < data->jit_returns; n++) {
    int at = dasm_getpclabel(&data->dasm_state, (unsigned)(data->jit_label + n)) - (bytes - 4 * fp) - fp;
    marks[m++] = ju_jit_x86_64(JU_JIT_REMEMBER, 0, at, 0);
    if (fp) marks[m++] = ju_jit_x86_64(JU_JIT_RESTORE_SP, IR_REG_RBP, at, -8 * pushes);
    if (!fp && room != 0) marks[m++] = ju_jit_x86_64(JU_JIT_DEALLOCATE, 0, at, room);
    for (int i = IR_REG_GP_LAST; i >= IR_REG_GP_FIRST; i--)
      if (IR_REGSET_IN(saved, i)) marks[m++] = ju_jit_x86_64(JU_JIT_POP, i, at += i < 8 ? 1 : 2, 0);
    if (fp) marks[m++] = ju_jit_x86_64(JU_JIT_POP, IR_REG_RBP, ++at, 0);
    marks[m++] = ju_jit_x86_64(JU_JIT_RESTORE, 0, at + 1, 0);
  }
  ju_jit_frame frame = {marks, (size_t)m, 0, NULL, NULL};
  const ju_jit_code code = JU_JIT_CODE(entry, size, ir_jit_name, &frame);
  ir_jit_known = NULL;
  if (!(ctx->flags & IR_SKIP_PROLOGUE)) ju_jit_announce(&code, &ir_jit_known, NULL);
  ir_mem_free(marks);
}
