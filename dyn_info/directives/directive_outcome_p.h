// The result of the directives of one procedure for one address: a row, or the address whose row it has. There are two
// steps, so that only the first one reads the procedure's memory.
#pragma once

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/directives/frame_state_p.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"

namespace jitunwind {

class CompactLayout;
struct CompactRow;

struct DirectiveOutcome {
  explicit DirectiveOutcome(const Arch& arch) noexcept : state(arch) {}
  FrameState state;
  AddrRange range{};  ///< addresses it is valid for; empty after an ALIAS
};

/// `regions`: address of the first one for `reader`, or 0. `lookup` is CodeAddress::lookup(). Errors are those of
/// directive_row.
Status run_directives(const RegionReader& reader, Addr regions, AddrRange procedure, const Arch& arch, Addr lookup,
                      DirectiveOutcome& out) noexcept;
/// The procedure is one of this process, in format DYNAMIC.
[[gnu::visibility("default")]] Status run_directives(const unw_dyn_info_t& info, const Arch& arch, Addr lookup,
                                                     DirectiveOutcome& out) noexcept;

/// The row at `at`, CodeAddress::lookup(), of a procedure of this process, and where it holds. False: its directives
/// have to be run. Signal-safe.
bool find_compact_row(const unw_dyn_info_t& info, const CompactLayout& layout, Addr at, CompactRow& out,
                      AddrRange& range) noexcept;

/// `regions`: address of the first one for `reader`, or 0.
LsdaExtension lsda_extension(const RegionReader& reader, Addr regions) noexcept;

/// Precondition: not an alias. Sets origin and range, too.
[[gnu::visibility("default")]] Status make_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept;

/// Makes the row of an outcome that is no ALIAS; an ALIAS is an error if there is no place to look its address up.
[[gnu::visibility("default")]] Status make_own_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept;

/// Precondition: `row` is that of alias's address. Makes it the row of the aliasing procedure.
Status take_over(const FrameState& alias, FrameRow& row) noexcept;
/// Looks alias's address up in lookup.space, and takes the row over; a guess is no row. Precondition: the caller holds
/// no hazard pointer. `depth`: number of ALIAS followed so far, this one included.
Status follow_alias(const FrameState& alias, const Lookup& lookup, unsigned depth, FrameRow& out) noexcept;

}  // namespace jitunwind
