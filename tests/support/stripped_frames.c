/* A stripped library, as in packages: only exported functions have a name. A function without a name follows one that
   has a name. */
typedef void (*function_t)(void);
void stripped_before(function_t function);
void stripped_exported(function_t function);

__attribute__((noinline)) void stripped_before(function_t function) { function(); }

/* The function is not static, because clang moves static functions to the end. */
__attribute__((noinline, visibility("hidden"))) void nameless(function_t function);
void nameless(function_t function) {
  function();
  __asm__ volatile("");
}

__attribute__((noinline)) void stripped_exported(function_t function) {
  nameless(function);
  __asm__ volatile("");
}
