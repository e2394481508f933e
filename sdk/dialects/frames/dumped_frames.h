// Call frame information that a jitdump has for a piece of code: its records of kind JIT_CODE_UNWINDING_INFO.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// An .eh_frame that counts as if it stood behind the code, at the next multiple of 8, as in the ELF file that perf's
/// genelf.c makes of both. Its pointers are therefore right wherever the code is moved to. Entries for other code, and
/// entries that cannot be read, are ignored; if entries overlap, the first one counts. Used by one thread at a time;
/// allocates.
class DumpedFrames {
 public:
  DumpedFrames() = default;
  /// `record` is of kind `load`.
  explicit DumpedFrames(const JitDumpRecord& record)
      : bytes_(record.frames.begin(), record.frames.end() - static_cast<std::ptrdiff_t>(record.header_size)) {}
  bool empty() const noexcept { return bytes_.empty(); }

  /// Finds a row as RowSource does; `code` is where the code is now. O(log entries), but O(entries) for the first time
  /// at each place of the code.
  Found find_row(const AddrRange& code, Addr at, const Arch& arch, FrameRow& out) const noexcept;
  Found find_procedure(const AddrRange& code, Addr at, const Arch& arch, ProcedureInfo& out) const noexcept;

  /// An FDE for existing code.
  struct Entry {
    AddrRange code{};
    std::size_t fde = 0;  ///< its offset in the bytes that it was appended to
  };
  /// Appends each entry with absolute pointers. Throws std::bad_alloc.
  std::vector<Entry> write(const AddrRange& code, const Arch& arch, std::vector<std::byte>& into) const;

 private:
  struct Index;
  class Placed;

  Found find(Placed& frames, Addr at, Fde& out) const noexcept;

  std::vector<std::byte> bytes_;
  mutable std::shared_ptr<const Index> index_;  // null: nobody has asked
};

/// Appends a CIE and an FDE with the same rows to `into` and returns the offset of the FDE. They have no personality
/// routine. Nothing: a row is broken or cannot be written, and nothing is appended. Throws std::bad_alloc.
std::optional<std::size_t> copy_frames(const Fde& fde, const CfiContext& context, std::vector<std::byte>& into);

}  // namespace jitunwind
#pragma GCC visibility pop
