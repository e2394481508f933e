// Names that JITs announce for their code, joined with call frame information that is announced for the same code: one
// procedure, with the data of each announcement.
#pragma once

#include <span>
#include <string_view>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The newest name counts: names of code that this overlaps are forgotten. If the code is that of an announced
/// procedure, this becomes its name, with any end. Code of loaded modules keeps its own names. Registers a procedure.
/// Thread-safe; not signal-safe.
void name_code(const AddrRange& code, std::string_view name) noexcept;
/// Names code that also has call frame information: an FDE, which must stay unchanged until forget_description(); 0:
/// none. The FDE counts unless the code is that of an announced procedure. `name` may be empty.
void describe_code(const AddrRange& code, std::string_view name, Addr fde) noexcept;
/// Forgets the code that began at `start` and was described by that FDE, or by a name alone (0). Does nothing if other
/// code is there by now. After the return nothing reads the FDE.
void forget_description(Addr start, Addr fde) noexcept;
/// Adds lines of the code that begins there; does nothing if it has no name.
void add_lines(Addr begin, SourceLines&& lines) noexcept;
/// Moves the name at `from` to `to`, with its lines; does nothing without such a name.
void move_name(Addr from, const AddrRange& to) noexcept;
/// Forgets the names of all code that begins in this range.
void forget_names(const AddrRange& code) noexcept;
/// Checks the next few names, and forgets those whose begin is not mapped any more.
void forget_unmapped_names(std::size_t most) noexcept;

/// Runs in a forked child, which lacks the thread that was changing names.
void forget_names_in_child() noexcept;

/// Call frame information was registered: names of the same code are joined with it.
void join_names(std::span<unw_dyn_info_t* const> told) noexcept;
/// Call frame information was cancelled: after the return nothing reads the entries.
void part_from_names(std::span<unw_dyn_info_t* const> cancelled) noexcept;

}  // namespace jitunwind
