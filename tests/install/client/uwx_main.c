#include <uwx.h>
#include <uwx_self.h>

#include <stdio.h>

int innermost(int n);
int middle(int n);

__attribute__((noinline)) int innermost(int n) {
  struct uwx_env* env = uwx_init();
  struct uwx_self_info* info = uwx_self_init_info(env);
  int status = uwx_register_callbacks(env, (intptr_t)info, uwx_self_copyin, uwx_self_lookupip);
  if (status == UWX_OK) status = uwx_self_init_context(env);
  while (status == UWX_OK) {
    char* name;
    if (uwx_get_sym_info(env, NULL, &name, NULL) == UWX_OK && name) printf("%s\n", name);
    status = uwx_step(env);
  }
  uwx_self_free_info(info);
  uwx_free(env);
  return status == UWX_BOTTOM ? n : -100;
}

__attribute__((noinline)) int middle(int n) { return innermost(n) + 1; }

int main(void) { return middle(1) == 2 ? 0 : 1; }
