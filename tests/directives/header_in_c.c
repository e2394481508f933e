/* dyn_info/libunwind-dynamic.h as a C program uses it: included twice, every macro, negative values. */
#include "jitunwind/dyn_info/libunwind-dynamic.h"

#include "tests/directives/header_ops.h"

_Static_assert(_U_dyn_region_info_size(0) == 16 && _U_dyn_region_info_size(5) == 96, "size of a region");

void ops_made_by_c(unw_dyn_op_t* ops) { FILL_OPS(ops); }
