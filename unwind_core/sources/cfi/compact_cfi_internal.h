// Call frame instructions as compilers write them, straight to compact rows: a fifth of the instructions that a row in
// full takes.
#pragma once

#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/sources/cfi/known_cies_p.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The row that holds at `at` in the FDE, and where it holds. False: a compact row cannot say it, or the instructions
/// are of an unusual kind, or broken; the general way tells. Signal-safe.
bool find_compact_row(const CompactCode& code, const CompactLayout& layout, Addr at, CompactRow& out,
                      AddrRange& range) noexcept;

struct UsualFde {
  Addr at = 0;
  CompactCode code;
  AddrRange row_range{};
  MetCie cie;  ///< that of the FDE before, in a walk through lasting modules
};

/// The row of eh_frame_source(), if it is compact, as linkers and compilers make nearly everything. False: the source
/// tells. Precondition: the module is a lasting one, and has its tables in memory. Signal-safe.
/// `fde` is set where the FDE is of the usual form, even if its row is not compact.
bool find_usual_row(const Module& module, Addr pc, const CompactLayout& layout, CompactRow& out,
                    UsualFde& fde) noexcept;

/// Reads an FDE in memory that can be viewed in place, whose CIE is in front of it and known. Precondition as for
/// read_known_fde() of a segment, but for its result.
bool read_known_fde(Addr at, const Memory& memory, MemoryWindow& window, const Arch& arch, CompactCode& out) noexcept;
/// Does the same in memory of this process that was promised to be readable (docs/contracts.md).
bool read_promised_fde(Addr at, const Arch& arch, CompactCode& out) noexcept;

/// Whether the instructions of an FDE and its CIE are no others than those of which compilers make nearly all FDEs, so
/// that all who read call frame information understand them.
bool is_plain(const CompactCode& code, const CompactLayout& layout) noexcept;

/// The row of an FDE that was read in the general way.
bool find_compact_row(const Fde& fde, const CompactLayout& layout, Addr at, CompactRow& out, AddrRange& range) noexcept;

/// Whether the code has no caller, as its CIE says and nothing else changes: the function where a program or a thread
/// begins. Each first walk ends there, and would go the general way for this row alone. Precondition: the CIE is known.
bool is_outermost(const CompactCode& code) noexcept;
/// The row of such code, but for origin and keeps_by.
FrameRow outermost_row(const CompactCode& code, const CompactLayout& layout) noexcept;

/// The row that the instructions of a CIE lead to, but for the return address where `is_outermost`. False: as above.
bool find_initial_row(const Cie& cie, const CompactLayout& layout, CompactRow& out, bool& is_outermost) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
