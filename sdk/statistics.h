// Counts of what this library has kept, found and refused since the process began. They serve tuning and bug reports,
// and explain why one walk was slow. docs/diagnostics.md reads an example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Counts of one table of earlier results.
struct TableStatistics {
  std::uint64_t hits = 0;      ///< answered by the table. 0 unless Statistics::counts_hits
  std::uint64_t misses = 0;    ///< had to be found the long way
  std::uint64_t refusals = 0;  ///< of these, what was found and not kept
};

/// Counts since the process began, except for the members that say "now".
struct Statistics {
  /// True if the library was built with JITUNWIND_COUNT. Only such a library counts hits: counting slows the fast
  /// paths.
  bool counts_hits = false;

  // Kept rows: steps, walks of addresses and throws share one table (docs/walks.md, "The table").
  TableStatistics rows;  ///< hits: steps with all registers, and throws
  std::uint64_t rows_kept = 0;
  std::uint64_t rows_of_more = 0;      ///< refused: they depend on more than their code and its module
  std::uint64_t rows_not_compact = 0;  ///< refused: a kept row has no room for what they say
  std::uint64_t rows_met_once = 0;     ///< refused: the first row at an address, once the table has many
  std::size_t rows_in_table = 0;       ///< entries that are taken now
  std::uint64_t guesses = 0;           ///< made where no source had a row

  TableStatistics walks_of_addresses;  ///< hits: frames left by a kept rule; misses: walks that needed all registers

  TableStatistics cies;          ///< common information entries of .eh_frame, by their bytes
  TableStatistics modules;       ///< headers of loaded modules
  TableStatistics fdes;          ///< made of registered procedures for unwinders that read FDEs
  TableStatistics unknown_code;  ///< code without unwind information. Hits: the sources were not asked again
  TableStatistics module_files;  ///< files with names and debug information. Refusals: opened for one look-up
  TableStatistics frame_shapes;  ///< of drafts that were built; a hit, counted always, is a draft with a known shape

  // The registry of procedures.
  std::uint64_t registrations = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t retired = 0;
  std::uint64_t registry_refusals = 0;  ///< calls that were refused with an error
  std::uint64_t cancel_waits = 0;       ///< readers that a cancellation had to wait for
  std::size_t registered = 0;           ///< now
  std::size_t index_bytes = 0;          ///< what look-ups need of them
  std::size_t registry_bytes = 0;       ///< the same and FDEs

  /// Writes a line for each number: "rows: 0 hits, 12 misses, 1 refusals". Allocates.
  std::string text() const;
};

/// Reads the counters one after the other while other threads go on, so the numbers may be of slightly different
/// moments. Two events that threads count at the same time may be counted once. Thread-safe, signal-safe; O(1).
Statistics statistics() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
