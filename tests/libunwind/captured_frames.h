/* The record that functions of captured_frame.inc write about themselves. */
#pragma once

#include <libunwind.h>

#define CAPTURED_FRAME_TEXT2(x) #x
#define CAPTURED_FRAME_TEXT(x) CAPTURED_FRAME_TEXT2(x)

struct captured_frame {
  unw_context_t context;
  unw_word_t sp; /* in the function */
  int returned;  /* by unw_getcontext */
};

#ifdef __cplusplus
#define CAPTURED_FRAME_LINKAGE extern "C"
#else
#define CAPTURED_FRAME_LINKAGE
#endif

/* The linker says where a section of such a name begins and ends. */
#define CAPTURED_FRAME(name)                                                                                 \
  CAPTURED_FRAME_LINKAGE void name(struct captured_frame* frame);                                            \
  CAPTURED_FRAME_LINKAGE __attribute__((noinline, section("code_of_" CAPTURED_FRAME_TEXT(name)))) void name( \
      struct captured_frame* frame)
