// A run through the directives of one procedure that stops at ascending addresses. All rows of a procedure therefore
// cost no more than a lookup of the last one.
#pragma once

#include <cstdint>

#include "jitunwind/dyn_info/directives/directive_machine_p.h"
#include "jitunwind/dyn_info/directives/directive_outcome_p.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Signal-safe; no allocation; some 6 KiB.
class DirectiveRun {
 public:
  /// `regions`: address of the first one for `reader`, or 0.
  DirectiveRun(const RegionReader& reader, Addr regions, AddrRange procedure, const Arch& arch) noexcept;
  /// The procedure is one of this process, in format DYNAMIC.
  DirectiveRun(const unw_dyn_info_t& info, const Arch& arch) noexcept;
  DirectiveRun(const DirectiveRun&) = delete;
  DirectiveRun& operator=(const DirectiveRun&) = delete;

  /// `lookup` is CodeAddress::lookup(), not smaller than the one before. Errors are those of directive_row; all later
  /// calls fail, too.
  Status go_to(Addr lookup, DirectiveOutcome& out) noexcept;
  /// Number of directives examined so far, repetitions included.
  std::uint32_t work() const noexcept { return machine_.work(); }

 private:
  std::int64_t unit_of(Addr at) const noexcept {
    return static_cast<std::int64_t>((at - procedure_.begin) / arch_.unit);
  }

  const AddrRange procedure_;
  const Arch& arch_;
  DirectiveMachine machine_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
