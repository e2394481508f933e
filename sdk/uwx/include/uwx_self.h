/* Unwind Express for the calling thread itself (uwx_self_init_info(3X) and its relatives). These callbacks make a walk
   one of the engine's local walks: through signal frames, and code that was registered with _U_dyn_register. */
#ifndef JITUNWIND_UWX_SELF_H
#define JITUNWIND_UWX_SELF_H

#include <stdint.h>

#include "uwx.h"

#ifdef __cplusplus
extern "C" {
#endif

struct uwx_self_info;

/* Makes the token for the callbacks below. NULL: no memory, or env is NULL. Allocates once. It is freed before env. */
extern struct uwx_self_info* uwx_self_init_info(struct uwx_env* env);
extern int uwx_self_free_info(struct uwx_self_info* info);

/* Begins at the context of the calling function. UWX_ERR_NOCALLBACKS as for uwx_step; UWX_ERR_CANTUNWIND: env is
   remote, or has no uwx_self_info. */
extern int uwx_self_init_context(struct uwx_env* env);

/* Callbacks for uwx_register_callbacks with the token from uwx_self_init_info. No value of `rem` causes a fault. */
extern int uwx_self_copyin(int request, char* loc, uint64_t rem, int len, intptr_t tok);
/* Requests SYMBOLS and MODULE may allocate, and read files. */
extern int uwx_self_lookupip(int request, uint64_t ip, intptr_t tok, uint64_t** resultp);

/* Makes the context that of the code which a signal has interrupted. UWX_ERR_NOCONTEXT: uwx_step has not just returned
   UWX_ABI_FRAME, or uwx_get_abi_context_code is not UWX_ABI_CONTEXT_SIGNAL. UWX_ERR_UCACCESS: the context that the
   signal has left cannot be read. */
extern int uwx_self_do_context_frame(struct uwx_env* env, struct uwx_self_info* info);

#ifdef __cplusplus
}
#endif
#endif
