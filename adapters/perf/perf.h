// Registered procedures for perf and for profilers that read its files: a map of names, /tmp/perf-PID.map, and a dump,
// jit-PID.dump, that `perf inject --jit` makes ELF files of. docs/profilers.md.
//
// No file is made until attach_perf() is called, or until the first registration of the process finds
// JITUNWIND_ATTACH=perf in the environment.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The place and the limit of the files.
struct PerfOptions {
  std::string folder{};  ///< of the dump; "": $JITDUMPDIR, or /tmp
  /// The most bytes of each file. A map that is full is written anew, of what is registered. A dump that is full ends;
  /// so does a map of which more than half would be used at once.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;
};

// All functions are thread-safe and none is signal-safe: error in_signal_handler as with register_procedure().

/// Writes the registered procedures, now and before each registration returns. Does nothing if it is attached already.
/// Errors: io, if none of the two files can be written; out_of_memory.
///
/// A forked child writes nothing, unless it calls this itself. Files are this user's, of mode 0600, and stay when the
/// process ends, since perf reads them later. A map of this process that somebody else has begun is continued; older
/// files of the same name are replaced. If a file cannot be written further (a full disk, RLIMIT_FSIZE, the program has
/// replaced or removed it), it ends with a whole entry. One line on standard error says so.
Status attach_perf(const PerfOptions& options = {}) noexcept;
/// Ends the files. Does nothing if it is not attached.
Status detach_perf() noexcept;

/// Writes the source lines of code that is registered next: perf takes those that precede it. The last line is that of
/// the rest. Does nothing if no dump is written. Error invalid_argument: more than SourceLines::k_most lines.
Status tell_perf_lines(const AddrRange& code, std::span<const ToldLine> lines) noexcept;

/// The state of the files at one moment.
struct PerfStatistics {
  bool attached = false;
  std::string map{};             ///< path; "": none is written
  std::string dump{};            ///< path; "": none is written
  std::uint64_t procedures = 0;  ///< written to one of them at least
  std::uint64_t refused = 0;     ///< procedures that are in no file, or not as they should be
  Error latest_refusal{};        ///< also the reason why a file ended; unspecified if there was none
};
/// Empty in a signal handler that interrupted a change of the registry, and if there is no memory.
PerfStatistics perf_statistics();

}  // namespace jitunwind
#pragma GCC visibility pop
