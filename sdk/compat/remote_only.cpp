// The local part of libraries for other CPUs, which is empty: they have no space for this process.
#include <cstdlib>

#include "jitunwind/sdk/compat/callback_space_p.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

unw_addr_space* local_handle() noexcept { return nullptr; }
const AddressSpace& space_of_process() noexcept { std::abort(); }  // nobody has such a handle
const AddressSpace& choose_space_of_process() noexcept { std::abort(); }
bool is_of_process(const AddressSpace&) noexcept { return false; }

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

int unw_init_local(unw_cursor_t*, unw_context_t*) { return -UNW_EINVAL; }
int unw_init_local2(unw_cursor_t*, unw_context_t*, int) { return -UNW_EINVAL; }
void unw_set_iterate_phdr_function(unw_addr_space_t, unw_iterate_phdr_func_t) {}
}
