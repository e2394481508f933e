/* The C interface of another CPU as a C program sees it. */
#include <libunwind-aarch64.h>
#include <libunwind-dynamic.h>

#include "tests/libunwind/libunwind_constants.h"

_Static_assert(_Alignof(unw_context_t) == 16, "as the kernel's");
