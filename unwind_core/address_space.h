// One target: its CPU, its memory, its modules, and the sources that know its code, in the order in which they are
// asked.
#pragma once

#include <span>

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class UnknownCode;
struct RowCache;

/// Everything is referred to, nothing owned. Immutable while a cursor uses it.
struct AddressSpace {
  const Arch& arch;
  const Memory& memory;
  const ModuleFinder& modules;
  std::span<const RowSource* const> row_sources;
  std::span<const NameSource* const> name_sources;
  const RowCache* row_cache = nullptr;                   ///< null: every step makes its row
  std::span<const RowSource* const> guess_sources = {};  ///< for code that no row source covers
  UnknownCode* unknown_code = nullptr;                   ///< null: what is unknown is not kept. Needs row_cache
  /// The same target for look-ups of addresses that need not be on a stack, of code that may be unloaded meanwhile.
  /// Null: this.
  const AddressSpace* of_addresses = nullptr;
  /// This process's keys: return addresses that rows call signed are authenticated in steps and throws, not in walks of
  /// addresses. Null: they are stripped alone, as those of other processes, whose keys nobody has.
  const SigningInstructions* keys = nullptr;

  const AddressSpace& for_addresses() const noexcept { return of_addresses ? *of_addresses : *this; }

  /// Whether a caller can be at `caller`, which some row has made of a word of the stack: in a module's text, in code
  /// that a source knows, or in memory that may be executed. `known` becomes the code around it, where that is known.
  /// Error invalid_ip: it is no code. no_info: that cannot be told. A memory that does not tell takes any address.
  Status expect_code(CodeAddress caller, MemoryWindow& window, AddrRange& known) const noexcept;

  /// The first source that has a row, or the first error; false when no source covers the address.
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept;
  /// The same of the sources of guesses, which need the registers of a frame on a stack. Precondition: no source covers
  /// the address.
  Found find_guess(Lookup& lookup, FrameRow& out) const noexcept;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept;
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept;

  /// Where a frame is to be looked up for its name: a trampoline at its first byte, since no call is before it.
  CodeAddress named_at(CodeAddress at, MemoryWindow& window) const noexcept;
};

}  // namespace jitunwind
#pragma GCC visibility pop
