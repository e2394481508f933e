// GDB's list of code made at run time ("JIT Compilation Interface" in GDB's manual), as it is in the memory of any
// process: __jit_debug_descriptor heads a chain of entries, and each entry has a file in memory.
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

/// The symbol by which a program or library exports its descriptor.
inline constexpr std::string_view k_gdb_descriptor = "__jit_debug_descriptor";

/// This library puts this mark in front of the file of the entry that begins its own part of a list; that part reaches
/// to the list's end. Listeners skip it: they hear from the registry what this library tells debuggers.
inline constexpr std::array<char, 16> k_own_gdb_list_mark{"jitunwind list1"};
inline constexpr std::size_t k_own_gdb_list_mark_distance = 24;  ///< from the mark to the file

/// The dynamic section of the object that this library's own descriptor is linked into. 0: a static program has none.
Addr object_of_own_gdb_list() noexcept;

/// One entry and where its file is. Every value may be stale.
struct GdbListEntry {
  Addr entry = 0;
  Addr file = 0;
  std::uint64_t size = 0;
  friend bool operator==(const GdbListEntry&, const GdbListEntry&) = default;
};

/// The entries of one descriptor's list.
struct GdbList {
  std::vector<GdbListEntry> entries{};  ///< in the order of the chain; engines put new entries in front
  std::optional<Error> broken{};        ///< why the chain was not followed to its end
};

/// Further entries are not read.
inline constexpr std::size_t k_most_gdb_entries = std::size_t{1} << 20;

/// Reads the list of the descriptor at `descriptor`. The result has the entries that could be read: it ends where the
/// chain is unreadable or leads in a circle. Entries without a file are left out. Errors: unreadable_memory,
/// unsupported_version. O(entries); allocates.
Result<GdbList> read_gdb_list(Addr descriptor, const Memory& memory, const Arch& arch);

}  // namespace jitunwind
#pragma GCC visibility pop
