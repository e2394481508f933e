/* Descriptions by the C interface. */
#ifndef JITUNWIND_TESTS_C_INTERFACE_EXAMPLES_H
#define JITUNWIND_TESTS_C_INTERFACE_EXAMPLES_H

#include <jitunwind/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* type_a, type_b: addresses of types of exceptions. */
typedef struct example_in_c {
  const char* name;
  ju_cpu cpu;
  void (*describe)(ju_builder* builder, const void* type_a, const void* type_b);
} example_in_c;

extern const example_in_c examples_in_c[];
extern const size_t examples_in_c_count;

#ifdef __cplusplus
}
#endif

#endif
