// Pages of code that stays where its owner has it, laid over by pages of a file which others can read: an ELF file with
// names and call frame information. libjitunwind-listen decides which pages; adapters/code_segments makes the files.
// docs/listen.md "Published pages".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/targets/mappings.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// How pages are mapped, and a file in their place, too.
struct PagesKind {
  bool writable = false;
  bool shared = false;
  friend bool operator==(const PagesKind&, const PagesKind&) = default;
};
/// Whether these are pages that a file may be laid over: readable, executable, and in no other process. `is_alone`:
/// this one has never forked, so nobody else has its shared memory without a file. Error io says why not.
Result<PagesKind> may_be_laid_over(const Mapping& mapping, bool is_alone) noexcept;

/// A file, its tables that are mapped behind the code, and the functions in them. The destructor removes the file and
/// unmaps the tables; the pages stay. One thread at a time. Nothing is signal-safe.
class PublishedPages {
 public:
  /// Makes the file of whole pages of this process, at most k_most_bytes of them. `procedures`: the code of registered
  /// procedures, or parts of it, cut to the pages, in ascending order without overlaps; each gets its name and its call
  /// frame information as they are now. `mappings` are those of this process. Errors: io (no folder serves, or the
  /// program changed its identity when it was executed), out_of_memory (no room for the tables within 2 GiB behind the
  /// code), invalid_argument (files are not made for this CPU). Throws std::bad_alloc.
  static Result<PublishedPages> make(const AddrRange& pages, std::span<const AddrRange> procedures,
                                     const Mappings& mappings);
  static constexpr std::size_t k_most_bytes = std::size_t{1} << 20;

  PublishedPages(PublishedPages&&) noexcept;
  PublishedPages& operator=(PublishedPages&&) noexcept;
  ~PublishedPages();

  /// Copies the pages into the file and maps it over them. The kernel replaces the mapping at once, for threads that
  /// run there, too. Bytes that were written to the old pages between these two differ from the copy, and are written
  /// again. If that is not possible, the old pages' content comes back as memory of its own. Threads that write to
  /// writable pages meanwhile wait in the kernel. Precondition: nobody maps, unmaps or protects these pages meanwhile,
  /// and `kind` is theirs. Errors: io. Its text says why; no written byte is lost.
  Status lay_over(PagesKind kind) noexcept;

  const AddrRange& pages() const noexcept;
  const std::string& path() const noexcept;
  std::size_t functions() const noexcept;             ///< that are not withdrawn
  const std::optional<Error>& lack() const noexcept;  ///< the first reason why not all is there that was made

  /// Whether it has this code, cut to the pages, as one of `procedures`.
  bool has(const AddrRange& code) const noexcept;
  /// Others do not know that any more. Unknown ones are ignored.
  void withdraw(const AddrRange& code) noexcept;
  void withdraw_all() noexcept;
  /// The file stays mapped.
  void remove_file() noexcept;
  /// A forked child calls it: file and tables are the parent's. Signal-safe.
  void leave_to_parent() noexcept;

 private:
  class Pages;
  explicit PublishedPages(std::unique_ptr<Pages> pages) noexcept;

  std::unique_ptr<Pages> it_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
