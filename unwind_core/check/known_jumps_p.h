// Jumps of code that its bytes do not tell, from the tables beside it: those of exceptions, and those of switches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/arch/instruction.h"
#include "jitunwind/unwind_core/check/check.h"

namespace jitunwind::check_code {

/// All but landing pads is told by offsets in the code.
class KnownJumps {
 public:
  /// Reads the landing pads of the code's language-specific data. Data of which not all can be right has none.
  explicit KnownJumps(const CheckedCode& code);

  /// The landing pad of the call whose last byte is there; 0: there is none. It may be in another part of the
  /// procedure.
  Addr pad_of(std::uint32_t offset) const noexcept;
  /// Calls visit(address) for each landing pad.
  template <class Visitor>
  void visit_pads(Visitor visitor) const {
    for (const Site& site : sites_)
      if (site.pad != 0) visitor(site.pad);
  }
  /// Appends the targets that a table has. False: it is not that of a jump in this code. An open one ends before the
  /// first target that is not in the code.
  bool add_targets(const JumpTable& table, std::vector<std::uint32_t>& out) const;

 private:
  struct Site {
    std::uint32_t begin, end;
    Addr pad;
  };
  void read_sites(std::span<const std::byte> table, Addr at, std::uint8_t encoding, Addr base);
  bool add_site(Addr begin, Addr size, Addr pad);

  const CheckedCode& code_;
  Addr start_;
  std::vector<Site> sites_;  // ascending
};

}  // namespace jitunwind::check_code
