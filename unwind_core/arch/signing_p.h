// Return addresses that a CPU has signed: what the CPU itself says of them, in the process that it runs.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// The instructions of this machine's CPU. Both work on CPUs that sign nothing, where they change nothing. Signal-safe.
struct SigningInstructions {
  /// Whether this CPU signs addresses, and the kernel lets programs do so.
  bool (*are_there)() noexcept;
  /// The address with the signature of this process's key over it and the modifier. Precondition: key is a or b.
  Addr (*sign)(Addr address, Addr modifier, SigningKey key) noexcept;
  /// The address without its signature.
  Addr (*strip)(Addr address) noexcept;

  /// Whether `address` carries the signature of this process over it and the modifier.
  bool is_signed_so(Addr address, Addr modifier, SigningKey key) const noexcept {
    const Addr plain = strip(address);
    const auto is_by = [&](SigningKey one) { return sign(plain, modifier, one) == address; };
    if (key != SigningKey::any) return is_by(key);
    return is_by(SigningKey::a) || is_by(SigningKey::b);
  }
};

}  // namespace jitunwind
