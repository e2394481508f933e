#include "jitunwind/unwind_core/sources/cfi/fde_source_p.h"

#include <optional>

namespace jitunwind {
namespace {

/// Such a row is wrong whatever wrote it: what is below SP and its red zone is nobody's, as psABIs say, and a signal
/// handler has written over it. glibc's memcpy for i386 (sysdeps/i386/i686/multiarch/memcpy-ssse3.S) has some behind
/// its returns; what a call has left there is an address of code, too.
bool returns_by_nobodys_memory(const FrameRow& row, const Arch& arch) noexcept {
  if (!arch.calls_push() || row.cfa.kind != CfaRule::Kind::offset || row.cfa.reg != arch.sp) return false;
  const RegRule ra = row.rule(row.ra == k_no_reg ? arch.ra : row.ra);
  return ra.kind == RegRule::Kind::at_cfa && row.cfa.offset + ra.offset < -std::int64_t{arch.red_zone};
}

}  // namespace

Found FdeSource::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return found;
  const Status row = row_at(fde, context, lookup.at.lookup(), out);
  if (!row) return row.error();
  if (returns_by_nobodys_memory(out, context.arch))
    return Error{ErrorCode::bad_frame, lookup.at.lookup(), "return address below the stack"};
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
