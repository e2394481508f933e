// A file that grows by whole entries, as long as nobody loses anything by it.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

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

}  // namespace jitunwind
