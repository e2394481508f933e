// The registration interface of libunwind over the registry.
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"

extern "C" {

// The interface cannot report errors: a refused descriptor is ignored.
void _U_dyn_register(unw_dyn_info_t* di) { (void)jitunwind::register_procedure(di); }
void _U_dyn_cancel(unw_dyn_info_t* di) { (void)jitunwind::cancel_procedure(di); }

unw_word_t _U_dyn_info_list_addr(void) { return reinterpret_cast<unw_word_t>(jitunwind::procedure_list()); }

size_t _U_dyn_region_size(int op_count) {
  return op_count < 0 ? 0 : _U_dyn_region_info_size(static_cast<unsigned>(op_count));
}
}
