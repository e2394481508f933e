/* The Unwind Express interface: a walk by two callbacks, of which one reads the target and one knows its code. Names,
   values and prototypes are those of HP-UX 11i v3 (uwx(3X) and the pages that it names). docs/uwx.md has the
   differences on CPUs other than Itanium, and their reasons. C99 and C++. */
#ifndef JITUNWIND_UWX_H
#define JITUNWIND_UWX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the callback interface: the value of UWX_KEY_VERSION. */
#define UWX_VERSION 3

/* Return values of functions. */
#define UWX_OK 0
#define UWX_BOTTOM 1              /* uwx_step: this frame has no caller */
#define UWX_ABI_FRAME 2           /* uwx_step: a signal frame; uwx_get_abi_context_code tells which kind */
#define UWX_ERR_NOENV (-1)        /* env is NULL */
#define UWX_ERR_IPNOTFOUND (-2)   /* unknown code of a frame that has called, so that it is no leaf */
#define UWX_ERR_LOOKUPERR (-3)    /* the lookup-ip callback returned UWX_LKUP_ERR, or no answer to the request */
#define UWX_ERR_BADKEY (-4)       /* its vector has an unknown key, lacks one, or has an impossible value */
#define UWX_ERR_COPYIN_UTBL (-5)  /* the copy-in callback failed: in the unwind table */
#define UWX_ERR_COPYIN_UINFO (-6) /* in an entry of it */
#define UWX_ERR_COPYIN_MSTK (-7)  /* on the stack */
#define UWX_ERR_COPYIN_RSTK (-8)  /* in Itanium's register stack */
#define UWX_ERR_COPYIN_REG (-9)   /* for a register */
#define UWX_ERR_NOUENTRY (-10)    /* as IPNOTFOUND; there is a table, without an entry */
#define UWX_ERR_NOUDESC (-11)     /* as IPNOTFOUND; there is an entry, but it does not cover the code */
#define UWX_ERR_BADUDESC (-12)    /* unwind information that contradicts itself, or of an unknown kind */
#define UWX_ERR_NOMEM (-13)       /* no memory */
#define UWX_ERR_PROLOG_UF (-14)   /* a description pops more states than it has */
#define UWX_ERR_UNDEFLABEL (-15)  /* a description copies a state that it has not labelled */
#define UWX_ERR_BADREGID (-16)    /* no such register on this CPU, or it has no value in this frame */
#define UWX_ERR_CANTUNWIND (-17)  /* the caller cannot be found: registers are missing, frames repeat */
#define UWX_ERR_NOCALLBACKS (-18) /* uwx_register_callbacks was not called */
#define UWX_ERR_NOCONTEXT (-19)   /* there is no context; for uwx_self_do_context_frame: no signal frame */
#define UWX_ERR_UCACCESS (-20)    /* the context that a signal has left cannot be read */
#define UWX_ERR_NOSYM (-21)       /* no symbolic information */

/* Register ids of every CPU. Ids of Itanium's registers are UWX_ERR_BADREGID on others. */
#define UWX_REG_IP 0
#define UWX_REG_SP 1
#define UWX_REG_BSP 2 /* Itanium */
#define UWX_REG_CFM 3 /* Itanium */
#define UWX_REG_RP 4  /* IP of the caller; 0: there is none */
#define UWX_REG_PSP 5 /* SP of the caller: the CFA */
#define UWX_REG_PFS 6 /* Itanium, as all that follow */
#define UWX_REG_PREDS 7
#define UWX_REG_PRIUNAT 8
#define UWX_REG_AR_BSPSTORE 9
#define UWX_REG_AR_RNAT 10
#define UWX_REG_AR_UNAT 11
#define UWX_REG_AR_FPSR 12
#define UWX_REG_AR_LC 13
#define UWX_REG_AR_PFS 14
/* x86-64 and AArch64: general registers by their DWARF numbers (docs/uwx.md). */
#define UWX_REG_GR(x) (0x100 | (x))
/* AArch64: vector registers. Only the low 8 bytes of v8-v15 are known, because calls preserve these. */
#define UWX_REG_FR(x) (0x200 | (x))
#define UWX_REG_BR(x) (0x300 | (x)) /* Itanium */

/* Copy-in callback. It writes `len` bytes to `loc`, which is aligned for them, in the target's byte order, registers
   included. Returns len; 0 and any other number are errors. */
typedef int (*copyin_cb)(int request, char* loc, uint64_t rem, int len, intptr_t tok);

#define UWX_COPYIN_UINFO 1  /* at address rem in the unwind information, len 4 or 8 */
#define UWX_COPYIN_MSTACK 2 /* at address rem on the stack, len 8 */
#define UWX_COPYIN_RSTACK 3 /* Itanium's register stack; never requested on other CPUs */
#define UWX_COPYIN_REG 4    /* rem is a register id, of the context that the walk began in; len 8 */

/* Lookup-ip callback. *resultp points to pairs of a key and a value, ended by key 0. On entry they are the engine's. If
   the callback finds something, it replaces them by its own, which it keeps until UWX_LKUP_FREE. That comes exactly
   once for each such answer, with the answer in *resultp; strings in it may be reused then. The limit is 256 pairs. */
typedef int (*lookupip_cb)(int request, uint64_t ip, intptr_t tok, uint64_t** resultp);

/* Requests. */
#define UWX_LKUP_LOOKUP 1  /* how to unwind at ip: once for each step */
#define UWX_LKUP_FREE 2    /* the answer *resultp is not needed any more; ip has no meaning */
#define UWX_LKUP_SYMBOLS 3 /* names and source of ip */
#define UWX_LKUP_MODULE 4  /* the module of ip */

/* Answers to LOOKUP. */
#define UWX_LKUP_NOTFOUND 0 /* nothing is known: taken for a leaf, if it can be one */
#define UWX_LKUP_ERR 1
#define UWX_LKUP_UTABLE 2 /* a table: TBASE, USTART, UEND; UFLAGS, GP */
#define UWX_LKUP_FDESC 3  /* the frame itself: FSIZE, SPILL, or CONTEXT alone; FUNCSTART, MODULE, FUNC */
#define UWX_LKUP_REMAP 5  /* unwind as at another address, once: NEWIP */
#define UWX_LKUP_UINFO 6  /* one entry of a table: UINFO; FUNCSTART, UFLAGS, TBASE, GP */
/* Answers to SYMBOLS and MODULE, besides NOTFOUND and ERR. */
#define UWX_LKUP_SYMINFO 4

/* Keys. */
#define UWX_KEY_END 0
/* Keys that the engine passes. */
#define UWX_KEY_PREDS 1   /* Itanium's predicates, never given on other CPUs */
#define UWX_KEY_VERSION 2 /* UWX_VERSION */
/* SYMBOLS and MODULE also get UWX_KEY_FUNCSTART and UWX_KEY_INLINE, if they are known. */
#define UWX_KEY_CALLER \
  24 /* to LOOKUP: 1 if ip is a return address, which follows the call that it belongs to; an addition */
/* Keys of UTABLE. */
#define UWX_KEY_TBASE 1           /* address from which a module-relative ip counts: the first byte of the module */
#define UWX_KEY_UFLAGS 2          /* UWX_UFLAGS_*; UWX_UFLAGS_EH_FRAME_HDR without it */
#define UWX_KEY_USTART 3          /* address of the table */
#define UWX_KEY_UEND 4            /* end address of the table */
#define UWX_KEY_GP 7              /* base of DW_EH_PE_datarel */
#define UWX_UFLAGS_EH_FRAME_HDR 1 /* .eh_frame_hdr; its header says whether entries have 4 or 8 bytes */
#define UWX_UFLAGS_EH_FRAME 2     /* .eh_frame, which is read from its beginning */
/* Keys of FDESC. PSP is SP + FSIZE, or is given by SPILL of UWX_REG_PSP; without either the frame is a leaf's. */
#define UWX_KEY_FSIZE 1
#define UWX_KEY_SPILL(reg) (2 | ((reg) << 4)) /* the value is a disposition */
#define UWX_KEY_CONTEXT 3                     /* code of a context frame */
/* Keys of REMAP and UINFO. */
#define UWX_KEY_NEWIP 5
#define UWX_KEY_UINFO 6 /* address of the entry, an FDE of .eh_frame */
/* Keys of SYMINFO. Pointers to strings are NULL if nothing is known. */
#define UWX_KEY_MODULE 17
#define UWX_KEY_FUNC 18
#define UWX_KEY_FUNCSTART 19    /* address of the function that FUNC names */
#define UWX_KEY_INLINED_FUNC 20 /* that the instruction, or the last call of uwx_step_inline, is inlined from */
#define UWX_KEY_SRCFILE 21
#define UWX_KEY_LINENUM 22
#define UWX_KEY_INLINE 23 /* for uwx_step_inline; 0: no inlined call is left */

/* The place of a caller's register: values of SPILL, and results of uwx_get_spill_loc. Displacements and addresses are
   multiples of 8. */
#define UWX_DISP_NONE 0                                /* in its former place; uwx_get_spill_loc: nowhere */
#define UWX_DISP_SPPLUS(k) (1 | (uint64_t)(k))         /* of PSP: it is SP + k */
#define UWX_DISP_SPREL(disp) (2 | (uint64_t)(disp))    /* at SP + disp */
#define UWX_DISP_PSPREL(disp) (3 | (uint64_t)(disp))   /* at PSP - disp; Itanium: PSP + 16 - disp */
#define UWX_DISP_REG(reg) (4 | ((uint64_t)(reg) << 4)) /* in that register */
#define UWX_DISP_MSTK(addr) (5 | (uint64_t)(addr))     /* uwx_get_spill_loc: at that address */
#define UWX_DISP_RSTK(addr) (6 | (uint64_t)(addr))     /* Itanium */
/* An addition, for frame pointers: the value is reg + k. k has 48 bits. */
#define UWX_DISP_REGREL(reg, k) (7 | ((uint64_t)(reg) << 48) | ((uint64_t)(k)&0xfffffffffff8))
#define UWX_GET_DISP_CODE(disp) ((int)((disp)&7))
#define UWX_GET_DISP_OFFSET(disp) ((disp) & ~(uint64_t)7)
#define UWX_GET_DISP_ADDR(disp) ((disp) & ~(uint64_t)7)
#define UWX_GET_DISP_REGID(disp) ((int)((disp) >> 4))

/* Context codes are (abi << 8) | context. */
#define UWX_ABI_CONTEXT_SIGNAL 0x0101

struct uwx_env;
struct uwx_symbol_cache;

typedef void* (*alloc_cb)(size_t size);
typedef void (*free_cb)(void* memory);

/* Sets the allocator of later environments; NULL: malloc and free. Must be the first call; not thread-safe. */
extern int uwx_register_alloc_cb(alloc_cb allocate, free_cb release);

/* Makes an environment for targets of this machine's CPU. NULL: no memory. Allocates once, for the whole walk. */
extern struct uwx_env* uwx_init(void);
/* Releases an environment and all memory that it has given out. */
extern int uwx_free(struct uwx_env* env);

/* Makes the target another process or machine, of this byte order. Forgets the context. UWX_ERR_CANTUNWIND: the CPU has
   no such order. */
extern int uwx_set_remote(struct uwx_env* env, int is_big_endian_target);
/* Sets the CPU of a remote target, by its number in ELF files (EM_X86_64, EM_AARCH64), in its usual byte order until
   uwx_set_remote changes that. Forgets the context. UWX_ERR_CANTUNWIND: no such CPU is known. An addition. */
extern int uwx_set_target(struct uwx_env* env, int elf_machine);
/* Turns vector registers off: they are neither read nor known. */
extern int uwx_set_nofr(struct uwx_env* env);

/* Sets the callbacks, which get `tok`. Forgets the context. NULL callbacks cause UWX_ERR_NOCALLBACKS. */
extern int uwx_register_callbacks(struct uwx_env* env, intptr_t tok, copyin_cb copyin, lookupip_cb lookupip);

/* Begins the walk at a frame with these registers; UWX_COPYIN_REG gives all others when they are needed. `ip` counts as
   the next instruction. bsp and cfm have a meaning on Itanium only. */
extern int uwx_init_context(struct uwx_env* env, uint64_t ip, uint64_t sp, uint64_t bsp, uint64_t cfm);
/* Sets a register of the current context, and of nothing else. */
extern int uwx_set_reg(struct uwx_env* env, int regid, uint64_t val);
/* Sets a vector register likewise: `val` points to 16 bytes, of which the first 8 are kept. */
extern int uwx_set_fr(struct uwx_env* env, int regid, uint64_t* val);

/* Makes the caller the current context. UWX_BOTTOM, UWX_ABI_FRAME and errors leave the context as it was. */
extern int uwx_step(struct uwx_env* env);
/* Makes names and source those of the code around an inlined call; `inline_context` is a result of uwx_get_source_info.
   UWX_ERR_NOSYM: it is 0. */
extern int uwx_step_inline(struct uwx_env* env, int inline_context);

/* Reads a register of the current context. Vector registers fill two words, the second one with 0. */
extern int uwx_get_reg(struct uwx_env* env, int regid, uint64_t* valp);
/* The result is 0: general registers of CPUs other than Itanium always have a value. */
extern int uwx_get_nat(struct uwx_env* env, int regid, int* natp);
/* The result is UWX_DISP_NONE, SPPLUS (of PSP), REG or MSTK. */
extern int uwx_get_spill_loc(struct uwx_env* env, int regid, uint64_t* dispp);
/* The code of the frame at which uwx_step has just returned UWX_ABI_FRAME; 0 elsewhere. */
extern int uwx_get_abi_context_code(struct uwx_env* env);

/* Names and source of the current context. Strings live until the next uwx_step or uwx_free. Pointers may be NULL.
   Unknown values are NULL or 0; UWX_ERR_NOSYM: all are. They allocate when strings have more than 4 KiB. */
extern int uwx_get_module_info(struct uwx_env* env, char** modp, uint64_t* text_base);
extern int uwx_get_funcstart(struct uwx_env* env, uint64_t* funcstart);
extern int uwx_get_sym_info(struct uwx_env* env, char** modp, char** symp, uint64_t* offsetp);
extern int uwx_get_source_info(struct uwx_env* env, char** ifuncp, char** srcfilep, int* linenump,
                               int* inline_contextp);

/* Finds the symbol of the ELF file `mod` that covers relip, which counts from the first byte of the module. `cachep`
   may be NULL; else it points to NULL at first, and keeps the data until uwx_release_symbol_cache. The environment
   needs no context. Strings live as those above. Both functions allocate. */
extern int uwx_find_symbol(struct uwx_env* env, struct uwx_symbol_cache** cachep, char* mod, uint64_t relip,
                           char** funcp, uint64_t* offsetp);
/* Finds the symbol with its source, by the file's debug information. `relfuncstart`: start of the function; 0: not
   known. `inline_context` is as for uwx_step_inline. All pointers may be NULL. */
extern int uwx_find_source_info(struct uwx_env* env, struct uwx_symbol_cache** cachep, char* mod, uint64_t relip,
                                uint64_t relfuncstart, int inline_context, char** ifuncp, char** funcp,
                                uint64_t* offsetp, char** srcfilep, int* linenump, int* inline_contextp);
extern int uwx_release_symbol_cache(struct uwx_env* env, struct uwx_symbol_cache* cache);

#ifdef __cplusplus
}
#endif
#endif
