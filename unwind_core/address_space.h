// One target: its CPU, its memory, its modules, and the sources that know its code, in the order in which they are
// asked.
#pragma once

#include <span>

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct RowCache;

/// The members refer to objects that this does not own. Immutable while a cursor uses it.
struct AddressSpace {
  const Arch& arch;
  const Memory& memory;
  const ModuleFinder& modules;
  std::span<const RowSource* const> row_sources;
  std::span<const NameSource* const> name_sources;
  const RowCache* row_cache = nullptr;                   ///< null: every step makes its row
  std::span<const RowSource* const> guess_sources = {};  ///< for code that no row source covers
  /// This target for lookups of addresses that need not be on a stack, in code that may be unloaded meanwhile. When
  /// null, this object serves for them, too.
  const AddressSpace* of_addresses = nullptr;
  /// This process's keys. Steps and throws authenticate return addresses that rows mark as signed; walks of addresses
  /// do not. When null, signatures are only stripped, as for other processes, whose keys are not available.
  const SigningInstructions* keys = nullptr;

  const AddressSpace& for_addresses() const noexcept { return of_addresses ? *of_addresses : *this; }

  /// Whether a source was told of code there: RowSource::was_told_of().
  bool was_told_of(Addr at) const noexcept;
  /// Whether a caller can be at `caller`, which some row has made of a word of the stack: in a module's text, in code
  /// that a source knows, or in executable memory. `known` becomes the code around it, if that is known. Errors:
  /// invalid_ip when it is no code, no_info when that is unknown. A memory that cannot tell accepts any address.
  Status expect_code(CodeAddress caller, MemoryWindow& window, AddrRange& known) const noexcept;

  /// Asks the sources for a row. Returns the first row or the first error, and false when no source covers the address.
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept;
  /// Asks them for a row of either form.
  RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept;
  /// Asks the sources of guesses, which need the registers of a frame on a stack. Precondition: no source covers the
  /// address.
  Found find_guess(Lookup& lookup, FrameRow& out) const noexcept;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept;
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept;

  /// Returns the address for looking up a frame's name: a trampoline's unchanged, since no call precedes it.
  CodeAddress named_at(CodeAddress at, MemoryWindow& window) const noexcept;
};

}  // namespace jitunwind
#pragma GCC visibility pop
