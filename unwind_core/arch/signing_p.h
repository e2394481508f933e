// Operations of a CPU on the return addresses that it has signed, in the process that it runs.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// The instructions of this machine's CPU. Both also work on CPUs that sign nothing: they change nothing there.
/// Signal-safe.
struct SigningInstructions {
  /// Whether this CPU signs addresses, and the kernel lets programs do so.
  bool (*are_there)() noexcept;
  /// Signs an address with this process's key and the modifier. Precondition: key is a or b.
  Addr (*sign)(Addr address, Addr modifier, SigningKey key) noexcept;
  /// Removes the signature of an address.
  Addr (*strip)(Addr address) noexcept;

  /// Whether `address` carries this process's signature over it and the modifier.
  bool is_signed_so(Addr address, Addr modifier, SigningKey key) const noexcept {
    const Addr plain = strip(address);
    const auto is_by = [&](SigningKey one) { return sign(plain, modifier, one) == address; };
    if (key != SigningKey::any) return is_by(key);
    return is_by(SigningKey::a) || is_by(SigningKey::b);
  }
};

}  // namespace jitunwind
