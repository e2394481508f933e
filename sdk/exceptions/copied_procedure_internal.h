// A copy of a registered procedure for others: its place, its name, and its call frame information.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/registry/observers.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// All of it is copied; the descriptor is not read later.
struct CopiedProcedure {
  /// An FDE among the bytes of `cfi`.
  struct Entry {
    Addr begin = 0;  ///< of the code that it describes
    std::size_t fde = 0;
  };

  AddrRange code{};
  std::string name{};                ///< any bytes but NUL; empty: none; longer ones are cut to 4095 bytes
  std::vector<std::byte> cfi{};      ///< CIEs and FDEs, none of which ends the section
  std::vector<Entry> entries{};      ///< in ascending order
  std::optional<Error> not_encoded;  ///< the reason why some of the code is not described
};

/// The name of the procedure that is registered there now, cut to 4095 bytes; "" if it has none. Throws std::bad_alloc.
std::string registered_name(Addr at);

/// The pointers in the call frame information.
enum class CfiPointers : bool {
  absolute,
  from_behind_the_code,  ///< relative, for bytes that begin at the next multiple of 8 behind the code
};

/// Reads a procedure that observers were told of. Returns nothing if it is registered no more. Throws std::bad_alloc.
std::optional<CopiedProcedure> copy_registered(const RegisteredProcedure& procedure, CfiPointers pointers);

}  // namespace jitunwind
