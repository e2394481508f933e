/* A stripped library, as packages have them: of its functions only those that it exports have a name, and in front of
   one that has none lies one that has. */
typedef void (*function_t)(void);
void stripped_before(function_t function);
void stripped_exported(function_t function);

__attribute__((noinline)) void stripped_before(function_t function) { function(); }

/* Not static: clang moves functions that are to the end. */
__attribute__((noinline, visibility("hidden"))) void nameless(function_t function);
void nameless(function_t function) {
  function();
  __asm__ volatile("");
}

__attribute__((noinline)) void stripped_exported(function_t function) {
  nameless(function);
  __asm__ volatile("");
}
