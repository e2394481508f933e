/* Numbers and sizes that programs compiled against libunwind rely on; checked by whoever includes this behind a header
   of libunwind, C or C++. */
#pragma once

#ifdef __cplusplus
#define SAME(a, b) static_assert(static_cast<long>(a) == static_cast<long>(b), #a " is " #b)
#else
#define SAME(a, b) _Static_assert((a) == (b), #a " is " #b)
#endif

#if !defined(UNW_REG_IP) || !defined(UNW_REG_SP)
#error "the numbers that every target has are macros"
#endif

SAME(UNW_ESUCCESS, 0);
SAME(UNW_EUNSPEC, 1);
SAME(UNW_ENOMEM, 2);
SAME(UNW_EBADREG, 3);
SAME(UNW_EREADONLYREG, 4);
SAME(UNW_ESTOPUNWIND, 5);
SAME(UNW_EINVALIDIP, 6);
SAME(UNW_EBADFRAME, 7);
SAME(UNW_EINVAL, 8);
SAME(UNW_EBADVERSION, 9);
SAME(UNW_ENOINFO, 10);
SAME(UNW_CACHE_NONE, 0);
SAME(UNW_CACHE_GLOBAL, 1);
SAME(UNW_CACHE_PER_THREAD, 2);
SAME(UNW_SLT_NONE, 0);
SAME(UNW_SLT_MEMORY, 1);
SAME(UNW_SLT_REG, 2);
SAME(UNW_INIT_SIGNAL_FRAME, 1);
SAME(UNW_INFO_FORMAT_DYNAMIC, 0);
SAME(UNW_INFO_FORMAT_TABLE, 1);
SAME(UNW_INFO_FORMAT_REMOTE_TABLE, 2);
SAME(UNW_INFO_FORMAT_ARM_EXIDX, 3);
SAME(UNW_INFO_FORMAT_IP_OFFSET, 4);
SAME(UNW_INFO_FORMAT_REMOTE_TABLE_64, 5);
SAME(sizeof(unw_word_t), 8);
SAME(sizeof(unw_regnum_t), sizeof(int));
SAME(UNW_DYN_STOP, 0);
SAME(UNW_DYN_SAVE_REG, 1);
SAME(UNW_DYN_SPILL_FP_REL, 2);
SAME(UNW_DYN_SPILL_SP_REL, 3);
SAME(UNW_DYN_ADD, 4);
SAME(UNW_DYN_POP_FRAMES, 5);
SAME(UNW_DYN_LABEL_STATE, 6);
SAME(UNW_DYN_COPY_STATE, 7);
SAME(UNW_DYN_ALIAS, 8);
#ifdef UNW_TARGET_X86_64
SAME(UNW_X86_64_RAX, 0);
SAME(UNW_X86_64_RBX, 3);
SAME(UNW_X86_64_RBP, 6);
SAME(UNW_X86_64_RSP, 7);
SAME(UNW_X86_64_R15, 15);
SAME(UNW_X86_64_RIP, 16);
SAME(UNW_X86_64_CFA, 17);
SAME(UNW_REG_IP, 16);
SAME(UNW_REG_SP, 7);
SAME(UNW_REG_LAST, 16);
SAME(UNW_REG_EH, 0);
SAME(UNW_NUM_EH_REGS, 2);
SAME(sizeof(unw_cursor_t), 1016);
SAME(sizeof(unw_context_t), 968);
SAME(sizeof(unw_fpreg_t), 16);
SAME(sizeof(unw_proc_info_t), 72);
SAME(sizeof(unw_save_loc_t), 24);
#endif
#ifdef UNW_TARGET_AARCH64
SAME(UNW_AARCH64_X0, 0);
SAME(UNW_AARCH64_X30, 30);
SAME(UNW_AARCH64_SP, 31);
SAME(UNW_AARCH64_PC, 32);
SAME(UNW_AARCH64_PSTATE, 33);
SAME(UNW_AARCH64_RA_SIGN_STATE, 34);
SAME(UNW_AARCH64_VG, 46);
SAME(UNW_AARCH64_V0, 64);
SAME(UNW_AARCH64_V31, 95);
SAME(UNW_AARCH64_FPSR, 96);
SAME(UNW_AARCH64_FPCR, 97);
SAME(UNW_REG_IP, 30);
SAME(UNW_REG_SP, 31);
SAME(UNW_REG_LAST, 97);
SAME(UNW_REG_EH, 0);
SAME(UNW_NUM_EH_REGS, 4);
SAME(sizeof(unw_cursor_t), 2000);
SAME(sizeof(unw_context_t), 992);
SAME(sizeof(unw_fpreg_t), 16);
SAME(sizeof(unw_proc_info_t), 64);
SAME(sizeof(unw_save_loc_t), 16);
#endif

#undef SAME
