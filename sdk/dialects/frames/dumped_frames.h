// Call frame information that a jitdump has of a piece of code: its records of kind JIT_CODE_UNWINDING_INFO.
#pragma once

#include <cstddef>
#include <vector>

#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// An .eh_frame that counts as if it stood behind the code, at the next multiple of 8 (perf's genelf.c, which makes an
/// ELF file of both). So it is right wherever the code is moved to. Entries for other code than that, and those that
/// cannot be read, count for nothing. Immutable once made; allocates as it is made.
class DumpedFrames {
 public:
  DumpedFrames() = default;
  /// Of a record of kind `load`.
  explicit DumpedFrames(const JitDumpRecord& record)
      : bytes_(record.frames.begin(), record.frames.end() - static_cast<std::ptrdiff_t>(record.header_size)) {}
  bool empty() const noexcept { return bytes_.empty(); }

  /// `code`: where the code is now. As RowSource does it; signal-safe.
  Found find_row(const AddrRange& code, Addr at, const Arch& arch, FrameRow& out) const noexcept;
  Found find_procedure(const AddrRange& code, Addr at, const Arch& arch, ProcedureInfo& out) const noexcept;

  /// An FDE for code that is there.
  struct Entry {
    AddrRange code{};
    std::size_t fde = 0;  ///< where in the bytes that it was appended to
  };
  /// Each entry, appended with pointers that are absolute. Throws std::bad_alloc.
  std::vector<Entry> write(const AddrRange& code, const Arch& arch, std::vector<std::byte>& into) const;

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
