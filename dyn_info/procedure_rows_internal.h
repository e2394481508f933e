// All rows of a stretch of registered code, in ascending order, at the cost of a lookup of the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct CompactCode;

/// The memory of a descriptor's parts. The descriptor itself is in host memory and host byte order; its pointers are
/// addresses for these members.
struct DescriptionParts {
  const RegionReader& regions;
  const Memory& tables;         ///< pairs of a table format
  const Memory& entries;        ///< FDEs and CIEs
  std::span<std::byte> buffer;  ///< for entries that cannot be viewed in place
};

/// The parts of a procedure that is registered in this process. Memory that its registration promises is not probed.
[[gnu::visibility("default")]] DescriptionParts parts_of_registered(const unw_dyn_info_t& info) noexcept;

enum class ProcedureAnswer : std::uint8_t {
  none,
  full,        ///< `row.full`
  compact,     ///< `row.compact`
  directives,  ///< `room.outcome` was made: it leads to a row, or is an alias
};

/// Room for an outcome, which is not touched until there is one: a std::optional zeroes its 600 bytes.
union OutcomeRoom {
  OutcomeRoom() noexcept {}
  DirectiveOutcome& make(const Arch& arch) noexcept { return *std::construct_at(&outcome, arch); }
  DirectiveOutcome outcome;
};
static_assert(std::is_trivially_destructible_v<DirectiveOutcome>);

/// The row of a registered procedure, if it is of one of the short forms. `code`: what find_known_fde() has found, if
/// it was asked. Precondition: a layout.
bool find_short_row(const unw_dyn_info_t& info, Addr at, CompactCode& code, AnyRow& out) noexcept;

/// Looks an address up in one procedure. `row` keeps no pointer into the data.
[[gnu::visibility("default")]] Result<ProcedureAnswer> ask_procedure(const unw_dyn_info_t& info,
                                                                     const DescriptionParts& parts, Addr at,
                                                                     Lookup& lookup, AnyRow& row,
                                                                     OutcomeRoom& room) noexcept;

/// Returns false when no FDE of its table covers `at`.
[[gnu::visibility("default")]] Found ask_procedure_info(const unw_dyn_info_t& info, const DescriptionParts& parts,
                                                        Addr at, Lookup& lookup, ProcedureInfo& out) noexcept;

/// Reads NUL-terminated bytes in a target, whatever their meaning, like NameSource::find_name. A name that runs into
/// unreadable memory counts as cut off. Returns false for an empty name.
[[gnu::visibility("default")]] Found read_name(const Memory& memory, Addr at, std::span<char> into,
                                               MemoryWindow& window, ProcedureName& out) noexcept;

/// Procedures by address: the newest one that covers it.
class Procedures {
 public:
  virtual Result<ProcedureAnswer> ask(Addr at, Lookup& lookup, AnyRow& row, OutcomeRoom& room) const noexcept = 0;

 protected:
  ~Procedures() = default;
};

/// Finds the row at lookup.at. ALIAS is followed from procedure to procedure in a loop, one lookup after the other.
[[gnu::visibility("default")]] RowAnswer find_row(const Procedures& procedures, Lookup& lookup, AnyRow& out) noexcept;
[[gnu::visibility("default")]] Found find_row(const Procedures& procedures, Lookup& lookup, FrameRow& out) noexcept;

/// Called while a hazard pointer is held: it must not look anything up. Expressions of rows are valid while that is
/// held.
class RowListener {
 public:
  /// `row.range` is the range for which the row is valid, cut to the requested one. Returns false when no more rows are
  /// wanted.
  virtual bool row(const FrameRow& row) noexcept = 0;
  /// Returns false when no more rows are wanted.
  virtual bool no_row(AddrRange code, const Error& why) noexcept = 0;

 protected:
  ~RowListener() = default;
};

/// Passes the procedure's rows of `code` up to an ALIAS, which must be looked up. Returns the end of the last range
/// that the listener got. Signal-safe; no allocation.
Addr tell_rows(const unw_dyn_info_t& info, const DescriptionParts& parts, AddrRange code, Lookup& lookup,
               RowListener& listener) noexcept;

/// Passes those of the newest registered procedure that covers the beginning of `code`. Errors: no_info, there is none;
/// too_deep, too many hazard pointers.
Result<Addr> tell_registered_rows(AddrRange code, Lookup& lookup, RowListener& listener) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
