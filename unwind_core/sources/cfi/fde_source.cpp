#include "jitunwind/unwind_core/sources/cfi/fde_source_p.h"

#include <array>
#include <atomic>
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

/// Addresses of personality routines by the words of lasting modules that have them: throws begin a walk at the end of
/// each cleanup, and would prove the word readable anew. Thread-safe, signal-safe.
class PersonalityWords {
 public:
  /// 0: not known.
  Addr find(Addr at) noexcept {
    const Entry& entry = entry_of(at);
    const Addr routine = entry.routine.load(std::memory_order_relaxed);
    return (entry.key.load(std::memory_order_relaxed) ^ routine) == at ? routine : 0;
  }
  void keep(Addr at, Addr routine) noexcept {
    Entry& entry = entry_of(at);
    entry.routine.store(routine, std::memory_order_relaxed);
    entry.key.store(at ^ routine, std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<Addr> routine{0};
    std::atomic<Addr> key{0};  ///< of what two threads write at the same time nothing else fits
  };
  Entry& entry_of(Addr at) noexcept { return entries_[static_cast<std::size_t>(at / sizeof(Addr)) % entries_.size()]; }

  std::array<Entry, 16> entries_{};
};
constinit PersonalityWords personality_words;

}  // namespace

RowAnswer FdeSource::find_any_row(Lookup& lookup, AnyRow& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return out.answer(found);
  const Status row = row_at(fde, context, lookup.at.lookup(), out.full);
  if (!row) return out.fail(row.error());
  if (returns_by_nobodys_memory(out.full, context.arch))
    return out.fail({ErrorCode::bad_frame, lookup.at.lookup(), "return address below the stack"});
  out.full.origin = origin_;
  out.full.keeps_by = KeepsBy::module;
  // An error is that of the question for the procedure itself.
  if (out.procedure) (void)describe(fde, lookup, *out.procedure);
  return RowAnswer::full;
}

Status FdeSource::describe(Fde& fde, Lookup& lookup, ProcedureInfo& out) const noexcept {
  const EncodedPointer personality = fde.cie.personality;
  const Module* const module = lookup.module();
  const bool stays = module && module->is_lasting && personality.indirect;
  if (stays)
    if (const Addr known = personality_words.find(personality.value)) fde.cie.personality = {known, false};
  const Status described = read_procedure(fde, lookup.space.arch, lookup.space.memory, lookup.window, out);
  if (!described) return described;
  if (stays) personality_words.keep(personality.value, out.handler);
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
