/* Unwind Express for the calling thread itself (uwx_self_init_info(3X) and its relatives). With these callbacks a walk
   is one of the engine's own local walks: through signal frames, and code that was registered with _U_dyn_register. */
#ifndef JITUNWIND_UWX_SELF_H
#define JITUNWIND_UWX_SELF_H

#include <stdint.h>

#include "uwx.h"

#ifdef __cplusplus
extern "C" {
#endif

struct uwx_self_info;

/* The token for the two callbacks below. NULL: no memory, or env is NULL. Allocates once. It is freed before env. */
extern struct uwx_self_info* uwx_self_init_info(struct uwx_env* env);
extern int uwx_self_free_info(struct uwx_self_info* info);

/* The context is that of the calling function. UWX_ERR_NOCALLBACKS as for uwx_step; UWX_ERR_CANTUNWIND: env is remote,
   or has no uwx_self_info. */
extern int uwx_self_init_context(struct uwx_env* env);

/* For uwx_register_callbacks with the token from uwx_self_init_info. Nothing faults, whatever `rem` is. */
extern int uwx_self_copyin(int request, char* loc, uint64_t rem, int len, intptr_t tok);
/* SYMBOLS and MODULE may allocate, and read files. */
extern int uwx_self_lookupip(int request, uint64_t ip, intptr_t tok, uint64_t** resultp);

/* The context becomes that of the code which a signal has interrupted. Only where uwx_step has just returned
   UWX_ABI_FRAME and uwx_get_abi_context_code is UWX_ABI_CONTEXT_SIGNAL: UWX_ERR_NOCONTEXT elsewhere. UWX_ERR_UCACCESS:
   what the signal has left cannot be read. */
extern int uwx_self_do_context_frame(struct uwx_env* env, struct uwx_self_info* info);

#ifdef __cplusplus
}
#endif
#endif
