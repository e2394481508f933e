// The other unwinders of this process.
#include "jitunwind/sdk/exceptions/runtime/unwind_frame_p.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "jitunwind/unwind_core/modules/loaded_functions_internal.h"

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
  // libgcc, unwind-dw2-fde.h: struct dwarf_eh_bases.
  struct Bases {
    void* text;
    void* data;
    void* function;
  } bases{};
  const auto find = reinterpret_cast<const void* (*)(void*, Bases*)>(other_function("_Unwind_Find_FDE"));
  const void* const fde = find ? find(pointer_to(at), &bases) : nullptr;
  const auto address = [](const void* p) { return Addr{reinterpret_cast<std::uintptr_t>(p)}; };
  out = {address(fde), address(bases.text), address(bases.data)};
  return fde != nullptr;
}

}  // namespace jitunwind::eh
