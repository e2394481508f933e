/* Directives that C and C++ make alike, by the header's macros. */
#ifndef JITUNWIND_TESTS_HEADER_OPS_H
#define JITUNWIND_TESTS_HEADER_OPS_H

enum { HEADER_OPS = 12 };

#define FILL_OPS(ops)                                                \
  do {                                                               \
    _U_dyn_op_save_reg(&(ops)[0], _U_QP_TRUE, 3, 7, 6);              \
    _U_dyn_op_spill_fp_rel(&(ops)[1], _U_QP_TRUE, 4, 3, -24);        \
    _U_dyn_op_spill_sp_rel(&(ops)[2], _U_QP_TRUE, 0, 6, 0);          \
    _U_dyn_op_add(&(ops)[3], _U_QP_TRUE, 8, 7, -24);                 \
    _U_dyn_op_add(&(ops)[4], _U_QP_TRUE, 9, 7, UNW_DYN_ADD_UNKNOWN); \
    _U_dyn_op_pop_frames(&(ops)[5], _U_QP_TRUE, 5, 1);               \
    _U_dyn_op_label_state(&(ops)[6], 100402);                        \
    _U_dyn_op_copy_state(&(ops)[7], 100402);                         \
    _U_dyn_op_alias(&(ops)[8], _U_QP_TRUE, -1, (unw_word_t)-4096);   \
    _U_dyn_op_stop(&(ops)[9]);                                       \
    (ops)[10] = _U_dyn_op(-1, -2, -3, -4, -5);                       \
    (ops)[11] = _U_dyn_op(UNW_DYN_ADD, _U_QP_TRUE, -1, 7, -8);       \
  } while (0)

#ifdef __cplusplus
extern "C"
#endif
    void
    ops_made_by_c(unw_dyn_op_t* ops);

#endif
