/* The Unwind Express interface: a walk by two callbacks, of which one reads the target and one knows its code. Names,
   values and prototypes are those of HP-UX 11i v3 (uwx(3X) and the pages that it names); what is another on CPUs other
   than Itanium, and why, is in docs/uwx.md. C99 and C++.

   An environment belongs to one thread at a time; different ones are independent. Functions are signal-safe where the
   callbacks are, but for those that say that they allocate. A NULL environment is UWX_ERR_NOENV everywhere. On an error
   the current context stays what it was. */
#ifndef JITUNWIND_UWX_H
#define JITUNWIND_UWX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the callback interface: the value of UWX_KEY_VERSION. */
#define UWX_VERSION 3

/* What functions return. */
#define UWX_OK 0
#define UWX_BOTTOM 1              /* uwx_step: this frame has no caller */
#define UWX_ABI_FRAME 2           /* uwx_step: a signal frame; uwx_get_abi_context_code tells which kind */
#define UWX_ERR_NOENV (-1)        /* env is NULL */
#define UWX_ERR_IPNOTFOUND (-2)   /* nothing knows the code of a frame that has called, so that it is no leaf */
#define UWX_ERR_LOOKUPERR (-3)    /* the lookup-ip callback returned UWX_LKUP_ERR, or no answer to the request */
#define UWX_ERR_BADKEY (-4)       /* its vector has an unknown key, lacks one, or has a value that none can have */
#define UWX_ERR_COPYIN_UTBL (-5)  /* the copy-in callback failed: in the unwind table */
#define UWX_ERR_COPYIN_UINFO (-6) /* in an entry of it */
#define UWX_ERR_COPYIN_MSTK (-7)  /* on the stack */
#define UWX_ERR_COPYIN_RSTK (-8)  /* in Itanium's register stack */
#define UWX_ERR_COPYIN_REG (-9)   /* for a register */
#define UWX_ERR_NOUENTRY (-10)    /* as IPNOTFOUND; there is a table, without an entry */
#define UWX_ERR_NOUDESC (-11)     /* as IPNOTFOUND; there is an entry, of which the code is not part */
#define UWX_ERR_BADUDESC (-12)    /* unwind information that contradicts itself, or of an unknown kind */
#define UWX_ERR_NOMEM (-13)       /* no memory */
#define UWX_ERR_PROLOG_UF (-14)   /* a description pops more states than it has */
#define UWX_ERR_UNDEFLABEL (-15)  /* a description copies a state that it has not labelled */
#define UWX_ERR_BADREGID (-16)    /* no such register on this CPU, or it has no value in this frame */
#define UWX_ERR_CANTUNWIND (-17)  /* the caller cannot be told: registers are missing, frames repeat */
#define UWX_ERR_NOCALLBACKS (-18) /* uwx_register_callbacks was not called */
#define UWX_ERR_NOCONTEXT (-19)   /* there is no context; for uwx_self_do_context_frame: no signal frame */
#define UWX_ERR_UCACCESS (-20)    /* the context that a signal has left cannot be read */
#define UWX_ERR_NOSYM (-21)       /* no symbolic information */

/* Register ids of every CPU. Those that name Itanium's registers are UWX_ERR_BADREGID on others. */
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
/* x86-64 and AArch64: general register by its DWARF number (docs/uwx.md). */
#define UWX_REG_GR(x) (0x100 | (x))
/* AArch64: vector register, of which calls preserve the low 8 bytes of v8-v15, and these are what is known of it. */
#define UWX_REG_FR(x) (0x200 | (x))
#define UWX_REG_BR(x) (0x300 | (x)) /* Itanium */

/* Copy-in callback. It writes `len` bytes to `loc`, which is aligned for them, as they are in the target's memory: in
   its byte order, registers included. Returns len; 0 for an error, and any other number is one too. */
typedef int (*copyin_cb)(int request, char* loc, uint64_t rem, int len, intptr_t tok);

#define UWX_COPYIN_UINFO 1  /* at address rem in the unwind information, len 4 or 8 */
#define UWX_COPYIN_MSTACK 2 /* at address rem on the stack, len 8 */
#define UWX_COPYIN_RSTACK 3 /* Itanium's register stack; never requested on other CPUs */
#define UWX_COPYIN_REG 4    /* rem is a register id, of the context that the walk began in; len 8 */

/* Lookup-ip callback. *resultp leads to pairs of a key and a value, ended by key 0: to what the engine says, and, where
   the callback finds something, to what it has put together and keeps until UWX_LKUP_FREE. That comes exactly once for
   each such answer, with the answer in *resultp. Strings in it may be reused then. At most 256 pairs. */
typedef int (*lookupip_cb)(int request, uint64_t ip, intptr_t tok, uint64_t** resultp);

/* Requests. */
#define UWX_LKUP_LOOKUP 1  /* how to unwind at ip: once for each step */
#define UWX_LKUP_FREE 2    /* the answer *resultp is not needed any more; ip means nothing */
#define UWX_LKUP_SYMBOLS 3 /* names and source of ip */
#define UWX_LKUP_MODULE 4  /* the module of ip */

/* Answers. To LOOKUP: */
#define UWX_LKUP_NOTFOUND 0 /* nothing is known: taken for a leaf, if it can be one */
#define UWX_LKUP_ERR 1
#define UWX_LKUP_UTABLE 2 /* a table: TBASE, USTART, UEND; UFLAGS, GP */
#define UWX_LKUP_FDESC 3  /* the frame itself: FSIZE, SPILL, or CONTEXT alone; FUNCSTART, MODULE, FUNC */
#define UWX_LKUP_REMAP 5  /* unwind as at another address, once: NEWIP */
#define UWX_LKUP_UINFO 6  /* one entry of a table: UINFO; FUNCSTART, UFLAGS, TBASE, GP */
/* To SYMBOLS and MODULE, besides NOTFOUND and ERR: */
#define UWX_LKUP_SYMINFO 4

/* Keys. */
#define UWX_KEY_END 0
/* What the engine says. */
#define UWX_KEY_PREDS 1   /* Itanium's predicates, never given on other CPUs */
#define UWX_KEY_VERSION 2 /* UWX_VERSION */
/* UWX_KEY_FUNCSTART and UWX_KEY_INLINE as well, to SYMBOLS and MODULE, where they are known */
#define UWX_KEY_CALLER \
  24 /* to LOOKUP: 1 where ip is a return address, behind the call that it belongs to; an addition */
/* UTABLE */
#define UWX_KEY_TBASE 1           /* address from which a module-relative ip counts: the first byte of the module */
#define UWX_KEY_UFLAGS 2          /* UWX_UFLAGS_*; without it the former */
#define UWX_KEY_USTART 3          /* address of the table */
#define UWX_KEY_UEND 4            /* address behind it */
#define UWX_KEY_GP 7              /* what DW_EH_PE_datarel counts from */
#define UWX_UFLAGS_EH_FRAME_HDR 1 /* .eh_frame_hdr, with entries of 4 or 8 bytes as it says itself */
#define UWX_UFLAGS_EH_FRAME 2     /* .eh_frame, which is read from its beginning */
/* FDESC. PSP = SP + FSIZE, or as SPILL of UWX_REG_PSP says; without either the frame is a leaf's. */
#define UWX_KEY_FSIZE 1
#define UWX_KEY_SPILL(reg) (2 | ((reg) << 4)) /* the value is a disposition */
#define UWX_KEY_CONTEXT 3                     /* code of a context frame */
/* REMAP, UINFO */
#define UWX_KEY_NEWIP 5
#define UWX_KEY_UINFO 6 /* address of the entry, an FDE of .eh_frame */
/* SYMINFO. Pointers to strings, NULL where nothing is known. */
#define UWX_KEY_MODULE 17
#define UWX_KEY_FUNC 18
#define UWX_KEY_FUNCSTART 19    /* address of the function that FUNC names */
#define UWX_KEY_INLINED_FUNC 20 /* that the instruction, or the last call of uwx_step_inline, is inlined from */
#define UWX_KEY_SRCFILE 21
#define UWX_KEY_LINENUM 22
#define UWX_KEY_INLINE 23 /* for uwx_step_inline; 0: no inlined call is left */

/* Where a register of the caller is: SPILL's values, and what uwx_get_spill_loc tells. Displacements and addresses are
   multiples of 8. */
#define UWX_DISP_NONE 0                                /* still where it was; uwx_get_spill_loc: nowhere */
#define UWX_DISP_SPPLUS(k) (1 | (uint64_t)(k))         /* of PSP: it is SP + k */
#define UWX_DISP_SPREL(disp) (2 | (uint64_t)(disp))    /* at SP + disp */
#define UWX_DISP_PSPREL(disp) (3 | (uint64_t)(disp))   /* at PSP - disp; Itanium: PSP + 16 - disp */
#define UWX_DISP_REG(reg) (4 | ((uint64_t)(reg) << 4)) /* in that register */
#define UWX_DISP_MSTK(addr) (5 | (uint64_t)(addr))     /* uwx_get_spill_loc: at that address */
#define UWX_DISP_RSTK(addr) (6 | (uint64_t)(addr))     /* Itanium */
/* An addition, for frame pointers: it is reg + k. k has 48 bits. */
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

/* Memory of environments made from now on, malloc and free where NULL. Before any other call; not thread-safe. */
extern int uwx_register_alloc_cb(alloc_cb allocate, free_cb release);

/* An environment for targets of this machine's CPU. NULL: no memory. Allocates once, for all that a walk needs. */
extern struct uwx_env* uwx_init(void);
/* Releases it with all that it has given out. */
extern int uwx_free(struct uwx_env* env);

/* The target is another process or machine, of this byte order. Forgets the context. UWX_ERR_CANTUNWIND: the CPU has no
   such order. */
extern int uwx_set_remote(struct uwx_env* env, int is_big_endian_target);
/* The CPU of a remote target, by its number in ELF files (EM_X86_64, EM_AARCH64), in its usual byte order until
   uwx_set_remote says otherwise. Forgets the context. UWX_ERR_CANTUNWIND: no such CPU is known. An addition. */
extern int uwx_set_target(struct uwx_env* env, int elf_machine);
/* Vector registers are of no interest: neither read nor known. */
extern int uwx_set_nofr(struct uwx_env* env);

/* `tok` is handed to the callbacks. Forgets the context. Callbacks that are NULL are UWX_ERR_NOCALLBACKS. */
extern int uwx_register_callbacks(struct uwx_env* env, intptr_t tok, copyin_cb copyin, lookupip_cb lookupip);

/* The walk begins at a frame with these registers; all others are asked for when they are needed, by UWX_COPYIN_REG.
   `ip` is taken for the next instruction. bsp and cfm mean nothing but on Itanium. */
extern int uwx_init_context(struct uwx_env* env, uint64_t ip, uint64_t sp, uint64_t bsp, uint64_t cfm);
/* Sets a register of the current context, here and nowhere else. */
extern int uwx_set_reg(struct uwx_env* env, int regid, uint64_t val);
/* The same of a vector register: `val` leads to 16 bytes, of which the first 8 are kept. */
extern int uwx_set_fr(struct uwx_env* env, int regid, uint64_t* val);

/* To the caller, which is the current context then. UWX_BOTTOM, UWX_ABI_FRAME, errors: it is the same as before. */
extern int uwx_step(struct uwx_env* env);
/* Names and source are from now on those of the code around an inlined call; `inline_context` is what
   uwx_get_source_info has told of it. UWX_ERR_NOSYM: it is 0. */
extern int uwx_step_inline(struct uwx_env* env, int inline_context);

/* Of the current context. Of vector registers two words are written, the second one 0. */
extern int uwx_get_reg(struct uwx_env* env, int regid, uint64_t* valp);
/* 0: general registers of other CPUs than Itanium are always something. */
extern int uwx_get_nat(struct uwx_env* env, int regid, int* natp);
/* UWX_DISP_NONE, SPPLUS (of PSP), REG or MSTK. */
extern int uwx_get_spill_loc(struct uwx_env* env, int regid, uint64_t* dispp);
/* Of the frame at which uwx_step has just returned UWX_ABI_FRAME; 0 elsewhere. */
extern int uwx_get_abi_context_code(struct uwx_env* env);

/* Of the current context. Strings live until the next uwx_step or uwx_free. Pointers may be NULL. What is not known is
   NULL or 0, and UWX_ERR_NOSYM is returned where nothing is. They allocate when strings have more than 4 KiB. */
extern int uwx_get_module_info(struct uwx_env* env, char** modp, uint64_t* text_base);
extern int uwx_get_funcstart(struct uwx_env* env, uint64_t* funcstart);
extern int uwx_get_sym_info(struct uwx_env* env, char** modp, char** symp, uint64_t* offsetp);
extern int uwx_get_source_info(struct uwx_env* env, char** ifuncp, char** srcfilep, int* linenump,
                               int* inline_contextp);

/* From the ELF file `mod`: the symbol that covers relip, which counts from the first byte of the module. `cachep` may
   be NULL; else it leads to NULL at first, and keeps what was read until uwx_release_symbol_cache. The environment
   needs no context. Strings live as those above. They allocate. */
extern int uwx_find_symbol(struct uwx_env* env, struct uwx_symbol_cache** cachep, char* mod, uint64_t relip,
                           char** funcp, uint64_t* offsetp);
/* The same with its source, by the file's debug information. `relfuncstart`: where the function begins, 0 where that
   is not known. `inline_context` as for uwx_step_inline. All pointers may be NULL. */
extern int uwx_find_source_info(struct uwx_env* env, struct uwx_symbol_cache** cachep, char* mod, uint64_t relip,
                                uint64_t relfuncstart, int inline_context, char** ifuncp, char** funcp,
                                uint64_t* offsetp, char** srcfilep, int* linenump, int* inline_contextp);
extern int uwx_release_symbol_cache(struct uwx_env* env, struct uwx_symbol_cache* cache);

#ifdef __cplusplus
}
#endif
#endif
