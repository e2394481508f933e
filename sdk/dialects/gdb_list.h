// GDB's list of code made at run time ("JIT Compilation Interface" in GDB's manual), as it is in the memory of any
// process: __jit_debug_descriptor, and a chain of entries, each of which has a file in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What a program or library calls its descriptor.
inline constexpr std::string_view k_gdb_descriptor = "__jit_debug_descriptor";

/// What this library puts in front of the file of the entries that begin its own part of a list, which reaches to the
/// end: what it tells debuggers, others need not hear again.
inline constexpr std::array<char, 16> k_own_gdb_list_mark{"jitunwind list1"};
inline constexpr std::size_t k_own_gdb_list_mark_distance = 24;  ///< from the mark to the file

/// One entry, and where its file is. Any of it may be stale.
struct GdbListEntry {
  Addr entry = 0;
  Addr file = 0;
  std::uint64_t size = 0;
  friend bool operator==(const GdbListEntry&, const GdbListEntry&) = default;
};

/// What one descriptor's list says.
struct GdbList {
  std::vector<GdbListEntry> entries{};  ///< as they are chained: engines put new ones in front
  std::optional<Error> broken{};        ///< why the chain was not followed to its end
};

/// More entries are not read.
inline constexpr std::size_t k_most_gdb_entries = std::size_t{1} << 20;

/// Reads the list of the descriptor at `descriptor`. Its entries are what could be read of them: a chain that is
/// unreadable, or leads in a circle, ends there. Entries without file are left out. Errors: unreadable_memory,
/// unsupported_version. O(entries); allocates.
Result<GdbList> read_gdb_list(Addr descriptor, const Memory& memory, const Arch& arch);

}  // namespace jitunwind
#pragma GCC visibility pop
