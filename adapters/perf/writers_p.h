// The writers of perf's files: a procedure is a line of the map, and records of the dump.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/adapters/perf/perf.h"
#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

// A file that grows by whole entries, as long as nobody loses anything by it.

/// The treatment of a file that somebody has made since the process began.
enum class IfBegun : bool { continue_it, refuse };

/// The file stays open, though a program may close any number and reuse it: the number is used only as long as it leads
/// to the same file, and is opened anew otherwise. Used by one thread at a time.
class OutputFile {
 public:
  /// Makes the file, or opens it if it is begun. It is of mode 0600. One of an earlier process is replaced. Error io,
  /// whose text says why; whoever gets it closes the object. Throws std::bad_alloc.
  Status open(std::string path, std::uint64_t most_bytes, IfBegun if_begun);
  void close() noexcept { *this = OutputFile(); }
  bool is_open() const noexcept { return !path_.empty(); }

  /// Appends all pieces or none. Error io; after an error the file is of no use, unless is_full().
  Status append(std::span<const iovec> pieces) noexcept;
  /// Makes the file empty, unless others have written to it. Error io.
  Status clear() noexcept;

  /// The last entry would have made the file larger than it may be.
  bool is_full() const noexcept { return is_full_; }
  const std::string& path() const noexcept { return path_; }
  /// Precondition: is_open(), and nobody has closed its number: directly behind open().
  int number() const noexcept { return file_.number(); }
  std::uint64_t most_bytes() const noexcept { return most_bytes_; }
  std::uint64_t written() const noexcept { return written_; }  ///< bytes, by this object

 private:
  Status make(IfBegun if_begun) noexcept;
  Status check(struct stat& status) noexcept;

  std::string path_;
  ReadableFile file_;  // open for appending
  std::uint64_t most_bytes_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t written_ = 0;
  bool is_full_ = false;
};

/// A name as files have it: control characters would end a line, or be obeyed by a terminal. "[jit]" without one.
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
