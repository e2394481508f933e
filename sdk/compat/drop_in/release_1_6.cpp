// Functions of libunwind.h that behave differently in libunwind 1.6: here they behave as programs built with it expect.
#include "jitunwind/sdk/compat/drop_in/release_1_6_p.h"

#include <unwind.h>

#include "jitunwind/sdk/compat/target_p.h"

extern "C" {
#pragma GCC visibility push(default)

int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t* descriptor,
                                       unw_proc_info_t* info, int need_unwind_info, void* argument) {
  const auto& of_release = *reinterpret_cast<const jitunwind::release_1_6::DynInfo*>(descriptor);
  unw_dyn_info_t today = in_todays_layout(of_release);
  return UNW_OBJ(search_unwind_table)(space, ip, &today, info, need_unwind_info, argument);
}
JITUNWIND_LOCAL(dwarf_search_unwind_table)

/// Positive at the interrupted frame, whose IP is no return address, and not at the trampoline: programs subtract 1
/// from the IP of all other frames before a lookup.
int unw_is_signal_frame(unw_cursor_t* cursor) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  const jitunwind::Cursor& at = jitunwind::cursor_of(cursor);
  return at.depth() != 0 && !at.address().is_return_address();
}
JITUNWIND_LOCAL(is_signal_frame)

/// Stripped code gets the name of the symbol before it.
int unw_get_proc_name(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset) {
  return UNW_OBJ(get_nearest_proc_name)(cursor, buffer, size, offset);
}
JITUNWIND_LOCAL(get_proc_name)

// Other names of the exception ABI. Contexts and exceptions belong to the runtime of the process, so these names call
// its functions.
#define JITUNWIND_NAME(result, name, parameters, arguments) \
  result __libunwind##name parameters { return name arguments; }

JITUNWIND_NAME(_Unwind_Reason_Code, _Unwind_RaiseException, (_Unwind_Exception * exception), (exception))
JITUNWIND_NAME(_Unwind_Reason_Code, _Unwind_ForcedUnwind,
               (_Unwind_Exception * exception, _Unwind_Stop_Fn stop, void* argument), (exception, stop, argument))
JITUNWIND_NAME(void, _Unwind_Resume, (_Unwind_Exception * exception), (exception))
JITUNWIND_NAME(_Unwind_Reason_Code, _Unwind_Resume_or_Rethrow, (_Unwind_Exception * exception), (exception))
JITUNWIND_NAME(void, _Unwind_DeleteException, (_Unwind_Exception * exception), (exception))
JITUNWIND_NAME(_Unwind_Reason_Code, _Unwind_Backtrace, (_Unwind_Trace_Fn trace, void* argument), (trace, argument))
JITUNWIND_NAME(void*, _Unwind_FindEnclosingFunction, (void* pc), (pc))
JITUNWIND_NAME(_Unwind_Word, _Unwind_GetGR, (_Unwind_Context * context, int index), (context, index))
JITUNWIND_NAME(void, _Unwind_SetGR, (_Unwind_Context * context, int index, _Unwind_Word value), (context, index, value))
JITUNWIND_NAME(_Unwind_Ptr, _Unwind_GetIP, (_Unwind_Context * context), (context))
JITUNWIND_NAME(_Unwind_Ptr, _Unwind_GetIPInfo, (_Unwind_Context * context, int* before), (context, before))
JITUNWIND_NAME(void, _Unwind_SetIP, (_Unwind_Context * context, _Unwind_Ptr value), (context, value))
JITUNWIND_NAME(_Unwind_Word, _Unwind_GetCFA, (_Unwind_Context * context), (context))
JITUNWIND_NAME(void*, _Unwind_GetLanguageSpecificData, (_Unwind_Context * context), (context))
JITUNWIND_NAME(_Unwind_Ptr, _Unwind_GetRegionStart, (_Unwind_Context * context), (context))
JITUNWIND_NAME(_Unwind_Ptr, _Unwind_GetDataRelBase, (_Unwind_Context * context), (context))
JITUNWIND_NAME(_Unwind_Ptr, _Unwind_GetTextRelBase, (_Unwind_Context * context), (context))

/// The backing store of IA-64's registers, which no other CPU has.
unsigned long _Unwind_GetBSP(_Unwind_Context*) { return 0; }
JITUNWIND_NAME(unsigned long, _Unwind_GetBSP, (_Unwind_Context * context), (context))

#pragma GCC visibility pop
}
