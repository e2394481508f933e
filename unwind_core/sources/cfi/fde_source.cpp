#include "jitunwind/unwind_core/sources/cfi/fde_source_p.h"

#include <array>
#include <atomic>
#include <optional>

#include "jitunwind/unwind_core/kept/compact_row_p.h"
#include "jitunwind/unwind_core/page_internal.h"

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

/// Pages of lasting modules where addresses of personality routines were read: they stay readable, and throws begin a
/// walk at the end of each cleanup.
class PersonalityPages {
 public:
  void recall(Addr at, MemoryWindow& window) const noexcept {
    if (place_of(at).load(std::memory_order_relaxed) == page_of(at)) window.proven_pages.front() = page_of(at);
  }
  void note(Addr at) noexcept { place_of(at).store(page_of(at), std::memory_order_relaxed); }

 private:
  std::atomic<Addr>& place_of(Addr at) const noexcept { return pages_[at / k_page_size % pages_.size()]; }

  mutable std::array<std::atomic<Addr>, 16> pages_{};
};
constinit PersonalityPages personality_pages;

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
  // An error is that of the question for the procedure itself.
  if (lookup.compact && lookup.compact->procedure) (void)describe(fde, lookup, *lookup.compact->procedure);
  return true;
}

Status FdeSource::describe(const Fde& fde, Lookup& lookup, ProcedureInfo& out) const noexcept {
  const Module* const module = lookup.module();
  const bool stays = module && module->is_lasting && fde.cie.personality.indirect;
  if (stays) personality_pages.recall(fde.cie.personality.value, lookup.window);
  const Status described = read_procedure(fde, lookup.space.arch, lookup.space.memory, lookup.window, out);
  if (!described) return described;
  if (stays) personality_pages.note(fde.cie.personality.value);
  out.gp = 0;
  out.origin = origin_;
  return Done{};
}

Found FdeSource::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return found;
  const Status described = describe(fde, lookup, out);
  if (!described) return described.error();
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
