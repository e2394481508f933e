// Names that JITs say of their code, joined with the call frame information that others say of the same code: one
// procedure, of each voice what it has.
#pragma once

#include <span>
#include <string_view>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The pair of the table of every procedure that was told by call frame information: by its address these are known.
extern const unw_word_t told_pair;

/// The newest word counts: names of code that this overlaps are forgotten. Where the code is that of a told procedure
/// this becomes its name, whatever its end. Code of loaded modules has names of its own, and none from here. Registers
/// a procedure. Thread-safe; not signal-safe.
void name_code(const AddrRange& code, std::string_view name) noexcept;
/// The same by who also has call frame information of the code: an FDE, which must stay as it is until
/// forget_description(); 0: none. It counts where the code is not that of a told procedure. `name` may be empty.
void describe_code(const AddrRange& code, std::string_view name, Addr fde) noexcept;
/// What began at `start` and was described by that FDE, or by a name alone (0). Nothing where it is something else by
/// now. When it has returned nothing reads the FDE.
void forget_description(Addr start, Addr fde) noexcept;
/// Lines of the code that begins there; nothing where it has no name.
void add_lines(Addr begin, SourceLines&& lines) noexcept;
/// What was named at `from` is at `to` now, with its lines; nothing where nothing was.
void move_name(Addr from, const AddrRange& to) noexcept;
/// Names of all that begins in this code.
void forget_names(const AddrRange& code) noexcept;
/// Looks at the next few, and forgets those whose begin is not mapped any more.
void forget_unmapped_names(std::size_t most) noexcept;

/// In a forked child that does not have who was changing names.
void forget_names_in_child() noexcept;

/// Call frame information was registered: what has a name already gets it.
void join_names(std::span<unw_dyn_info_t* const> told) noexcept;
/// It was cancelled: when this has returned nothing reads the entries.
void part_from_names(std::span<unw_dyn_info_t* const> cancelled) noexcept;

}  // namespace jitunwind
