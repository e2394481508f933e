/* The headers as a C99 program sees them, without extensions. */
#include <uwx.h>
#include <uwx_libunwind.h>
#include <uwx_self.h>

int jitunwind_test_uwx_from_c(uint64_t* frames);

/* Counts the frames of the calling thread. */
int jitunwind_test_uwx_from_c(uint64_t* frames) {
  struct uwx_env* env = uwx_init();
  struct uwx_self_info* info = uwx_self_init_info(env);
  int status = uwx_register_callbacks(env, (intptr_t)info, uwx_self_copyin, uwx_self_lookupip);
  if (status == UWX_OK) status = uwx_self_init_context(env);
  for (*frames = 0; status == UWX_OK; ++*frames) {
    uint64_t ip;
    status = uwx_get_reg(env, UWX_REG_IP, &ip);
    if (status == UWX_OK) status = uwx_step(env);
  }
  uwx_self_free_info(info);
  uwx_free(env);
  return status;
}
