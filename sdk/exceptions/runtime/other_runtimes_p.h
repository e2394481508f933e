// The other unwinders of this process: contexts and exceptions that are theirs go to them.
#pragma once

#include <unwind.h>

#include <cstdint>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::eh {

/// Another runtime's function of this name in the exception ABI: libgcc_s's, or else the next in search order after
/// this library. Null: there is none. Takes no lock; signal-safe.
void* other_function(const char* name) noexcept;
/// The function of that name in the runtime that made `context`.
void* function_of_owner(const _Unwind_Context* context, const char* name) noexcept;

struct ForeignFde {
  Addr fde = 0;
  Addr text_base = 0;
  Addr data_base = 0;
};
/// Call frame information that only another runtime knows, by its _Unwind_Find_FDE(). False: it knows none. Takes its
/// lock.
bool find_fde_of_others(Addr at, ForeignFde& out) noexcept;

/// Exceptions in flight carry their runtime's notes in two private words. The first word of this runtime has these
/// upper bits, which no address has. Its lower bits are the stop function of a forced unwind, 0 for an exception that
/// was raised. The second one is the identity of the handler's frame, or the argument of the stop function.
inline constexpr unsigned k_tag_shift = 56;
inline constexpr std::uint64_t k_tag = std::uint64_t{0x6a} << k_tag_shift;

inline bool is_ours(const _Unwind_Exception& exception) noexcept {
  return exception.private_1 >> k_tag_shift == k_tag >> k_tag_shift;
}

}  // namespace jitunwind::eh
