#include "jitunwind/unwind_core/sources/cfi/fde_source_p.h"

#include <optional>

namespace jitunwind {

Found FdeSource::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return found;
  const Status row = row_at(fde, context, lookup.at.lookup(), out);
  if (!row) return row.error();
  out.origin = origin_;
  out.keeps_by = KeepsBy::module;
  return true;
}

Found FdeSource::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return found;
  const Status described = read_procedure(fde, lookup.space.arch, lookup.space.memory, lookup.window, out);
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
