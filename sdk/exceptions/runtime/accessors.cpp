// The functions by which personality routines and stop functions read a context. A context of another runtime is passed
// on to it: glibc unwinds by libgcc_s whatever the program is linked with, and the personality routines then ask here.
#include <array>
#include <atomic>
#include <cstddef>

#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/sdk/exceptions/runtime/unwind_frame_p.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

extern "C" {
/// unwind-dw2-fde.h of libgcc: part of its ABI.
struct Bases {
  void* text;
  void* data;
  void* function;
};
[[gnu::weak]] const void* _Unwind_Find_FDE(const void* pc, Bases* bases);
}

namespace jitunwind::eh {
namespace {

/// Written once.
struct FoundBefore {
  std::atomic<const char*> name;
  LoadedFunction found;
};
constinit std::array<FoundBefore, 64> found_before{};
constinit std::atomic<std::size_t> found_count{0};

void* find_before(const char* name) noexcept {
  for (const FoundBefore& known : found_before)
    if (known.name.load(std::memory_order_acquire) == name && is_still_loaded(known.found, name))
      return known.found.function;
  return nullptr;
}

void keep(const char* name, const LoadedFunction& found) noexcept {
  if (found_count.load(std::memory_order_relaxed) >= found_before.size()) return;
  const std::size_t number = found_count.fetch_add(1, std::memory_order_relaxed);
  if (number >= found_before.size()) return;
  found_before[number].found = found;
  found_before[number].name.store(name, std::memory_order_release);
}

template <class Function>
Function owners(Function, _Unwind_Context* context, const char* name) noexcept {
  if (void* const found = function_of_owner(context, name)) return reinterpret_cast<Function>(found);
  give_up("context of an unknown unwinder");
}

bool is_own(const _Unwind_Context* context) noexcept { return context->mark == _Unwind_Context::k_mark; }

}  // namespace

/// pthread_cancel loads libgcc_s where no search from here finds it; it is loaded for good
/// (nptl/unwind-forcedunwind.c).
void* other_function(const char* name) noexcept {
  constinit static const char here = 0;
  if (void* const known = find_before(name)) return known;
  const LoadedFunction found = find_function_behind(reinterpret_cast<std::uintptr_t>(&here), "libgcc_s.so.1", name);
  if (found.function) keep(name, found);
  return found.function;
}

void* function_of_owner(const _Unwind_Context* context, const char* name) noexcept {
  // libgcc: where a register was saved, on the stack, or null. LLVM, nongnu: a pointer into the library itself.
  const Addr first = *reinterpret_cast<const Addr*>(context);
  if (void* const found = first == 0 ? nullptr : find_function_around(first, name).function) return found;
  return other_function(name);
}

bool find_fde_of_others(Addr at, ForeignFde& out) noexcept {
  Bases bases{};
  const auto find = reinterpret_cast<decltype(&_Unwind_Find_FDE)>(other_function("_Unwind_Find_FDE"));
  const void* const fde = find ? find(pointer_to(at), &bases) : nullptr;
  const auto address = [](const void* p) { return Addr{reinterpret_cast<std::uintptr_t>(p)}; };
  out = {address(fde), address(bases.text), address(bases.data)};
  return fde != nullptr;
}

}  // namespace jitunwind::eh

using jitunwind::eh::is_own;
using jitunwind::eh::owners;

#define JITUNWIND_LIBUNWIND_NAME(result, name, parameters) \
  extern "C" __attribute__((alias(#name), visibility("default"))) result __libunwind##name parameters;

extern "C" {

_Unwind_Word _Unwind_GetGR(_Unwind_Context* context, int index) {
  if (!is_own(context)) return owners(&_Unwind_GetGR, context, "_Unwind_GetGR")(context, index);
  return context->frame.get(index);
}

void _Unwind_SetGR(_Unwind_Context* context, int index, _Unwind_Word value) {
  if (!is_own(context)) return owners(&_Unwind_SetGR, context, "_Unwind_SetGR")(context, index, value);
  if (!context->frame.set(index, value)) {
    jitunwind::eh::report("a register cannot be written", context->frame);
    jitunwind::eh::give_up("_Unwind_SetGR");
  }
}

_Unwind_Ptr _Unwind_GetIP(_Unwind_Context* context) {
  if (!is_own(context)) return owners(&_Unwind_GetIP, context, "_Unwind_GetIP")(context);
  return context->frame.pc();
}

_Unwind_Ptr _Unwind_GetIPInfo(_Unwind_Context* context, int* before_instruction) {
  if (!is_own(context)) return owners(&_Unwind_GetIPInfo, context, "_Unwind_GetIPInfo")(context, before_instruction);
  *before_instruction = context->frame.was_interrupted();
  return context->frame.pc();
}

void _Unwind_SetIP(_Unwind_Context* context, _Unwind_Ptr value) {
  if (!is_own(context)) return owners(&_Unwind_SetIP, context, "_Unwind_SetIP")(context, value);
  context->frame.set_pc(value);
}

_Unwind_Word _Unwind_GetCFA(_Unwind_Context* context) {
  if (!is_own(context)) return owners(&_Unwind_GetCFA, context, "_Unwind_GetCFA")(context);
  return context->frame.sp();
}

void* _Unwind_GetLanguageSpecificData(_Unwind_Context* context) {
  if (!is_own(context))
    return owners(&_Unwind_GetLanguageSpecificData, context, "_Unwind_GetLanguageSpecificData")(context);
  return jitunwind::pointer_to(context->frame.lsda());
}

_Unwind_Ptr _Unwind_GetRegionStart(_Unwind_Context* context) {
  if (!is_own(context)) return owners(&_Unwind_GetRegionStart, context, "_Unwind_GetRegionStart")(context);
  return context->frame.start();
}

_Unwind_Ptr _Unwind_GetDataRelBase(_Unwind_Context* context) {
  if (!is_own(context)) return owners(&_Unwind_GetDataRelBase, context, "_Unwind_GetDataRelBase")(context);
  return context->frame.gp();
}

_Unwind_Ptr _Unwind_GetTextRelBase(_Unwind_Context* context) {
  if (!is_own(context)) return owners(&_Unwind_GetTextRelBase, context, "_Unwind_GetTextRelBase")(context);
  return 0;
}

void* _Unwind_FindEnclosingFunction(void* pc) {
  using namespace jitunwind;
  own_runtime_questions.fetch_add(1, std::memory_order_relaxed);
  const AddressSpace& space = local_space();
  MemoryWindow window;
  Lookup lookup(space, CodeAddress::returned_to(reinterpret_cast<std::uintptr_t>(pc)), window);
  ProcedureInfo info;
  const Found found = space.find_procedure(lookup, info);
  if (found && *found) return pointer_to(info.range.begin);
  // libgcc_s may know frames that were registered with it alone. The probe also expects this call:
  // adapters/system_unwinder/frames/registered_fde_p.h.
  Bases bases{};
  const bool known = &_Unwind_Find_FDE && _Unwind_Find_FDE(static_cast<char*>(pc) - 1, &bases);
  return known ? bases.function : nullptr;
}

void _Unwind_DeleteException(_Unwind_Exception* exception) {
  if (exception->exception_cleanup) exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
}
}

JITUNWIND_LIBUNWIND_NAME(_Unwind_Word, _Unwind_GetGR, (_Unwind_Context*, int))
JITUNWIND_LIBUNWIND_NAME(void, _Unwind_SetGR, (_Unwind_Context*, int, _Unwind_Word))
JITUNWIND_LIBUNWIND_NAME(_Unwind_Ptr, _Unwind_GetIP, (_Unwind_Context*))
JITUNWIND_LIBUNWIND_NAME(_Unwind_Ptr, _Unwind_GetIPInfo, (_Unwind_Context*, int*))
JITUNWIND_LIBUNWIND_NAME(void, _Unwind_SetIP, (_Unwind_Context*, _Unwind_Ptr))
JITUNWIND_LIBUNWIND_NAME(_Unwind_Word, _Unwind_GetCFA, (_Unwind_Context*))
JITUNWIND_LIBUNWIND_NAME(void*, _Unwind_GetLanguageSpecificData, (_Unwind_Context*))
JITUNWIND_LIBUNWIND_NAME(_Unwind_Ptr, _Unwind_GetRegionStart, (_Unwind_Context*))
JITUNWIND_LIBUNWIND_NAME(_Unwind_Ptr, _Unwind_GetDataRelBase, (_Unwind_Context*))
JITUNWIND_LIBUNWIND_NAME(_Unwind_Ptr, _Unwind_GetTextRelBase, (_Unwind_Context*))
JITUNWIND_LIBUNWIND_NAME(void*, _Unwind_FindEnclosingFunction, (void*))
JITUNWIND_LIBUNWIND_NAME(void, _Unwind_DeleteException, (_Unwind_Exception*))
