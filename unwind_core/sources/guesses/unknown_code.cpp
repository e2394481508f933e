#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"

#include "jitunwind/unwind_core/memory/moment_p.h"
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

std::uint64_t UnknownCode::find_kept(CodeAddress at, const RowCache& rows) const noexcept {
  if (entry_of(at).first_word_of_key() != key_of(at)) return 0;
  const std::uint64_t now = version(at.lookup(), rows);
  WayOut ignored;
  if (!find(at, now, ignored)) return 0;
  count_warm_event(Counter::unknown_known);
  return now;
}

}  // namespace jitunwind
