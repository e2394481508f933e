// Return addresses that are signed by bits which nobody has told.
#pragma once

#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind {

/// Where Arch::address_mask is every bit although addresses may be signed it is not known by which. An address with
/// others than those that programs have, and where nothing is mapped, is signed: to strip it would be to guess, so that
/// the walk ends there, and says why.
class SignedAddresses final : public RowSource {
 public:
  /// Both must outlive this.
  SignedAddresses(const Arch& arch, const Mappings& mappings) noexcept : arch_(arch), mappings_(mappings) {}

  Found find_row(Lookup& lookup, FrameRow&) const noexcept override {
    constexpr unsigned k_bits = 48;  // of a program's addresses; those with 52 are mapped
    const Addr at = lookup.at.lookup();
    if (arch_.sign_state == k_no_reg || arch_.address_mask != ~Addr{0} || at >> k_bits == 0 || mappings_.find(at))
      return false;
    return Error{ErrorCode::invalid_ip, at, "return address of aarch64 that is signed, by which bits is not known"};
  }

 private:
  const Arch& arch_;
  const Mappings& mappings_;
};

}  // namespace jitunwind
