/* A stack that tools are shown: main, enter, jit_outer, go_on, jit_inner, look. The two in the middle are made at run
   time, in one of several ways. All others keep frame pointers. C99, x86-64. */
#ifndef JITUNWIND_TESTS_TOOLS_KNOWN_STACK_H
#define JITUNWIND_TESTS_TOOLS_KNOWN_STACK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The end of the stack, which a program defines: the tool looks, or is called, there. */
void* look(void* argument);

/* Makes the stack; what `look` returns is returned. `words`: the way to make code (c, described, marked, asmjit, orc);
   `held`, or `overwritten` if it overwrites the frame pointer's register; `segments`, `sealed` if these are sealed
   then, or `registered` if it is only registered. Null: a word is none of them, or something failed, as standard error
   says. */
void* make_known_stack(const char* const words[3], void* argument);

/* void* frame(void* (*f)(void*), void* argument), which returns what f does. */
typedef struct known_code {
  unsigned char bytes[25];
  size_t size;
} known_code;
extern const known_code k_held, k_overwritten;

/* Makes a function with a frame of one kind. Null: it failed. */
typedef void* compile_function(const char* name, int is_held, int is_published);
compile_function compile_in_c, compile_by_orc;

/* Memory that is known to nobody. Null: there is none. */
void* plain_memory(const known_code* code);

#ifdef __cplusplus
}
#endif
#endif
