#include "jitunwind/adapters/listen/frames/next_functions_p.h"

#include <dlfcn.h>

#include "jitunwind/unwind_core/errno_keeper_internal.h"

// A static program has none of these, and no next functions.
#pragma weak dlsym
#pragma weak dlopen

namespace jitunwind {
namespace {

template <class Function>
void find(Function*& function, const char* name, void* run_time) noexcept {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr && run_time != nullptr) found = dlsym(run_time, name);
  function = reinterpret_cast<Function*>(found);
}

}  // namespace

NextFrameFunctions next_frame_functions() noexcept {
  NextFrameFunctions next;
  if (&dlsym == nullptr || &dlopen == nullptr) return next;
  const ErrnoKeeper keep_errno;
  void* const run_time = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
  find(next.register_frame, "__register_frame", run_time);
  find(next.register_info, "__register_frame_info", run_time);
  find(next.register_info_bases, "__register_frame_info_bases", run_time);
  find(next.register_table, "__register_frame_table", run_time);
  find(next.register_info_table, "__register_frame_info_table", run_time);
  find(next.register_info_table_bases, "__register_frame_info_table_bases", run_time);
  find(next.deregister_frame, "__deregister_frame", run_time);
  find(next.deregister_info, "__deregister_frame_info", run_time);
  find(next.deregister_info_bases, "__deregister_frame_info_bases", run_time);
  if (run_time != nullptr) dlclose(run_time);
  return next;
}

void* first_register_frame() noexcept {
  const ErrnoKeeper keep_errno;
  return &dlsym == nullptr ? nullptr : dlsym(RTLD_DEFAULT, "__register_frame");
}

}  // namespace jitunwind
