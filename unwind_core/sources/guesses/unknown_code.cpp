#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"

#include "jitunwind/unwind_core/memory/page_answers_p.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

std::uint64_t UnknownCode::version(Addr at, const RowCache& rows) noexcept {
  const std::uint64_t registrations = rows.changes.number(at);
  const auto moment = Moment::now();
  ModuleVersion module;
  const bool in_module = rows.modules.find(at, module);
  if (!moment || (in_module && module.version == 0)) return 0;
  const std::uint64_t of_place = RowCache::version_of(registrations, KeptBy::module, module);
  return hash_with(spread(moment->number()), of_place) | 1;
}

bool UnknownCode::finds_kept(Lookup& lookup, const RowCache& rows) const noexcept {
  if (entry_of(lookup.at).first_word_of_key() != key_of(lookup.at)) return false;
  const std::uint64_t now = version(lookup.at.lookup(), rows);
  WayOut ignored;
  if (!find(lookup.at, now, ignored)) return false;
  count_warm_event(Counter::unknown_known);
  lookup.unknown = this;
  lookup.unknown_version = now;
  return true;
}

/// Most code is known to some source, so the version is read only now. It must be read before the lookup whose result
/// is kept, and the sources are therefore asked again.
RowAnswer UnknownCode::ask_again(Lookup& lookup, AnyRow& out) const noexcept {
  const std::uint64_t now = version(lookup.at.lookup(), *lookup.space.row_cache);
  Lookup again(lookup.space, lookup.at, lookup.window, lookup.registers, lookup.guesses);
  for (const RowSource* source : lookup.space.row_sources)
    if (const RowAnswer answer = source->find_any_row(again, out); answer != RowAnswer::none) return answer;
  count_event(Counter::unknown_met);
  keep(lookup.at, now, {});
  lookup.unknown = this;
  lookup.unknown_version = now;
  return RowAnswer::none;
}

}  // namespace jitunwind
