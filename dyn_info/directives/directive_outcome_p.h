// What the directives of one procedure say about one address: a row, or the address whose row it is. Two steps, so that
// the procedure's memory is read in the first alone.
#pragma once

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/directives/frame_state_p.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"

namespace jitunwind {

struct DirectiveOutcome {
  explicit DirectiveOutcome(const Arch& arch) noexcept : state(arch) {}
  FrameState state;
  AddrRange range{};  ///< addresses it holds for; empty behind an ALIAS
};

/// `regions`: address of the first one for `reader`, or 0. `lookup` is CodeAddress::lookup(). Errors as directive_row.
Status run_directives(const RegionReader& reader, Addr regions, AddrRange procedure, const Arch& arch, Addr lookup,
                      DirectiveOutcome& out) noexcept;
/// Of this process, format DYNAMIC.
Status run_directives(const unw_dyn_info_t& info, const Arch& arch, Addr lookup, DirectiveOutcome& out) noexcept;

/// `regions` likewise.
LsdaExtension lsda_extension(const RegionReader& reader, Addr regions) noexcept;

/// Precondition: not an alias. Origin and range included.
Status make_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept;

/// Of what is no ALIAS; that one is an error where there is no place to look its address up.
Status make_own_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept;

/// Precondition: `row` is that of alias's address. Makes it the row of the aliasing procedure.
Status take_over(const FrameState& alias, FrameRow& row) noexcept;
/// Looks alias's address up in lookup.space, which must not be done under a hold, and takes the row over; a guess is no
/// row. `depth`: ALIAS followed so far, this one included.
Status follow_alias(const FrameState& alias, const Lookup& lookup, unsigned depth, FrameRow& out) noexcept;

}  // namespace jitunwind
