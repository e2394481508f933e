// The writers of perf's files: a procedure is a line of the map, and records of the dump.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/adapters/perf/output_file_p.h"
#include "jitunwind/adapters/perf/perf.h"
#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"

namespace jitunwind {

/// A name as files have it: control characters would end a line, or be obeyed by a terminal. k_nameless without one.
std::string perf_name(std::string_view name);

/// /tmp/perf-PID.map: perf and others look for it there, in the process's own root and namespace. Several may write one
/// map. Used by one thread at a time.
class MapWriter {
 public:
  Status open(std::uint64_t most_bytes);
  Status write(const CopiedProcedure& code);
  OutputFile& file() noexcept { return file_; }
  const OutputFile& file() const noexcept { return file_; }

 private:
  OutputFile file_;
};

/// jit-PID.dump. A page of it is mapped as code: that mapping leads perf to the file. Used by one thread at a time.
class DumpWriter {
 public:
  Status open(std::string folder, std::uint64_t most_bytes);
  /// Writes the code's bytes as they are now. Error unreadable_memory, e_range (more code than a record has): nothing
  /// was written.
  Status write(const CopiedProcedure& code);
  /// Precondition: there are some, no more than SourceLines::k_most.
  Status write_lines(const AddrRange& code, std::span<const ToldLine> lines);
  /// Ends the dump; a child of the process only closes it.
  void close(bool is_child) noexcept;
  OutputFile& file() noexcept { return file_; }
  const OutputFile& file() const noexcept { return file_; }

 private:
  Status append(std::span<const std::byte> bytes) noexcept;

  OutputFile file_;
  std::uint32_t process_ = 0;
  void* marker_ = nullptr;
  std::uint64_t index_ = 0;
  std::vector<std::byte> record_;
};

}  // namespace jitunwind
