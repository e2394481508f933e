// libunwind's other names of the exception ABI. Contexts and exceptions belong to the runtime of the process, so these
// names call its functions.
#include <unwind.h>

extern "C" {
#pragma GCC visibility push(default)

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
