/* Unwind Express and libunwind's accessors, each made of the other, so that one target is described once. C99 and C++;
   the structures are those of this library's <libunwind.h>. */
#ifndef JITUNWIND_UWX_LIBUNWIND_H
#define JITUNWIND_UWX_LIBUNWIND_H

#include <libunwind.h>
#include <stdint.h>

#include "uwx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* libunwind's accessors over the callbacks of an environment: for unw_create_addr_space. The argument of
   unw_init_remote is the struct uwx_env*. The walk begins at its context, which does not change. The callback's answers
   become rows as in uwx_step. Registered procedures of the target are not looked up. */
extern void uwx_get_accessors(unw_accessors_t* into);

/* The reverse: callbacks for uwx_register_callbacks over accessors, and their token. */
struct uwx_accessor_info;

/* Makes the token. `accessors` are copied, and are called with `space` and `argument`. The target's CPU and byte order
   are those of `env`, so that uwx_set_target and uwx_set_remote come before. NULL: no memory, or env or accessors are
   NULL. Allocates once. It is freed before env. */
extern struct uwx_accessor_info* uwx_accessor_init_info(struct uwx_env* env, unw_addr_space_t space,
                                                        const unw_accessors_t* accessors, void* argument);
extern int uwx_accessor_free_info(struct uwx_accessor_info* info);
/* Begins at the context of access_reg's IP and SP. UWX_ERR_COPYIN_REG: they cannot be read. */
extern int uwx_accessor_init_context(struct uwx_env* env, struct uwx_accessor_info* info);
extern int uwx_accessor_copyin(int request, char* loc, uint64_t rem, int len, intptr_t tok);
/* Looks up registered procedures of the target first (get_dyn_info_list_addr), then calls find_proc_info. */
extern int uwx_accessor_lookupip(int request, uint64_t ip, intptr_t tok, uint64_t** resultp);

#ifdef __cplusplus
}
#endif
#endif
