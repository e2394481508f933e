#include "unwind_core/sources/fde_source_p.h"

#include <optional>

#include "unwind_core/sources/cfi_memo.h"

namespace jitunwind {

Found FdeSource::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  if (lookup.memo) return find_row_by(lookup.memo->fde, lookup, out);
  Fde fde;
  return find_row_by(fde, lookup, out);
}

Found FdeSource::find_row_by(Fde& fde, Lookup& lookup, FrameRow& out) const noexcept {
  CfiContext context{lookup.space.arch};
  const Found found = find_fde(lookup, context, fde);
  if (lookup.memo && !context.memo) lookup.memo->has_cie = false;  // read over, of what may change
  if (!found || !*found) return found;
  const Status row = row_at(fde, context, lookup.at.lookup(), out);
  if (!row) return row.error();
  out.origin = origin_;
  return true;
}

Found FdeSource::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return found;
  const Status described = describe(fde, lookup.space.arch, lookup.space.memory, lookup.window, out);
  if (!described) return described.error();
  out.gp = 0;
  out.origin = origin_;
  return true;
}

Found find_fde(FdeScan scan, Addr pc, Fde& out) noexcept {
  std::optional<Error> first_error;
  while (!scan.at_end()) {
    const Result<bool> next = scan.next(out);
    if (!next) {
      if (!first_error) first_error = next.error();
      continue;
    }
    if (!*next) break;
    if (out.range.contains(pc)) return true;
  }
  if (first_error) return *first_error;
  return false;
}

}  // namespace jitunwind
