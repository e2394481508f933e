#include "jitunwind/unwind_core/kept/row_cache_internal.h"

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/row_notes_p.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

[[gnu::hot]] const ModuleVersion& RowCache::module_of(Addr at, ModuleVersion& walked) const noexcept {
  if (!walked.range.contains(at) && !modules.find(at, walked)) walked = {};
  return walked;
}

void RowCache::link(RulePlace from, KeptRules::Table::Number to) const noexcept {
  rules.table.change(from.number, [to](CallerRule rule) { return rule.with_link(to); });
}

[[gnu::hot]] bool RowCache::find_otherwise(Addr at, ModuleVersion& walked, RulePlace& place, KeptRow& hit,
                                           KeepTicket& ticket) const noexcept {
  using Table = KeptRules::Table;
  // One by one: a copy of the whole would wait for words that were just stored.
  ticket.at = at, ticket.partial = {}, ticket.callee = place;
  const std::uint64_t cipher_of_lasting = Table::cipher(ticket.registrations);
  const auto cipher_of = [&](CallerRule rule) {
    if (!rule.is_of_module()) [[likely]]
      return cipher_of_lasting;
    return Table::cipher(version_of(ticket.registrations, KeptBy::module, module_of(at, walked)));
  };
  const Table::Entries entries = rules.table.entries();
  const Table::Number linked = entries.in_bounds(place.next);
  Table::Found found{linked, entries.value(linked), true};
  const bool is_tested = found.value.is_whole() && !found.value.is_of_module();  // by find_linked()
  if (is_tested || !entries.holds(linked, found.value, at, cipher_of(found.value))) {
    // Other code was called from the callee's place before. Its caller is mostly this one's, too.
    place = {RulePlace::k_none, found.value.linked(linked)};
    found = rules.table.find(at, cipher_of);
    ticket.before = found.number;
    if (!found.holds) return false;
    link(ticket.callee, found.number);
  }
  ticket.before = found.number;
  place = RulePlace::at(found.number, found.value);
  if (!found.value.is_whole()) {
    ticket.partial = found.value;
    return false;
  }
  count_warm_event(Counter::kept_row_used);
  hit.rule = found.value;
  rules.shapes.row(hit.rule.shape(), hit.rule.cfa_words(), hit.row);
  return true;
}

CallerRule RowCache::find_shared(KeepTicket& ticket, RulePlace& place, NewRow& row) const noexcept {
  CallerRule rule = alike->shapes.find_rule(ticket.at, *alike, row);
  // Rows that are logged, and those that a rule does not say, are for find_new().
  if (row.is_made && !logs_rows()) {
    row.is_compact = true;
    row.kept_by = KeptBy::lasting;
    rule = keep_alike(row);
    if (!rule.is_whole()) return {};
    count_event(Counter::row_made);
  }
  if (rule.kept_by() == KeptBy::nothing) return {};
  place.number = RulePlace::k_none - 1;  // link() finds no entry there: it is of the other table
  if (rules.table.wants(ticket.at, ticket.before)) {
    place = keep_wanted(ticket, rule.with_link(place.next), {});
    ticket.before = place.number;
  } else if (row.is_made) {
    count_event(Counter::row_met_once);
  }
  return rule;
}

bool RowCache::find_alike(KeepTicket& ticket, RulePlace& place, NewRow& row, KeptRow& hit) const noexcept {
  hit.rule = find_alike(ticket, place, row);
  if (!hit.rule.is_whole()) return false;
  rules.shapes.row(hit.rule.shape(), hit.rule.cfa_words(), hit.row);
  return true;
}

/// Makes the rule of the row, if there is one, keeps it for code alike, and returns it.
CallerRule RowCache::keep_alike(NewRow& row) const noexcept {
  constexpr auto k_nowhere = KeptRules::Table::k_nowhere;
  const AlikePlace place = row.alike;
  row.rule = rule_of(row.compact, row.full.origin, row.kept_by);
  // No rule is kept where the shapes made the row. Sources are also asked because a rule was not enough.
  if (!alike || !place || row.rule.kept_by() == KeptBy::nothing) return {};
  if (!row.is_made && alike->find(place).kept_by() != KeptBy::nothing) return {};
  const unsigned shape = row.is_compact ? rules.shapes.number_of(row.compact) : 0;
  const auto handler = place.has_facts() ? CallerRule::Handler::unknown : CallerRule::Handler::none;
  const CallerRule rule = row.rule.with_shape(shape).with(handler);
  if (!AlikeRules::keep_first(place, rule) && alike->table.wants(place.at(), k_nowhere))
    (void)alike->table.keep(place.at(), AlikeRules::k_cipher, rule, k_nowhere);
  return rule;
}

bool RowCache::says_end(const FrameRow& row) const noexcept {
  const RegNum return_address = row.ra == k_no_reg ? layout.arch().ra : row.ra;
  return !row.signal_frame && row.rule(return_address).kind == RegRule::Kind::undefined;
}

void RowCache::keep_end(const KeepTicket& ticket, Lookup& lookup, const NewRow& row) const noexcept {
  if (row.kept_by == KeptBy::nothing || !says_end(row.full)) return;
  const CallerRule rule(row.kept_by, CallerRule::Kind::outermost);
  (void)keep(ticket, rule.with(row.full.origin), nullptr, module_of(lookup));
}

FrameRow NewRow::expanded() const noexcept {
  FrameRow row = expand(compact, *layout);
  row.origin = full.origin;
  row.keeps_by = full.keeps_by;
  row.range = full.range;
  return row;
}

[[gnu::hot]] RowAnswer RowCache::find_new(Lookup& lookup, NewRow& out) const noexcept {
  if (!out.is_made) out.full.keeps_by = KeepsBy::nothing;  // the room may have held another row
  const RowAnswer answer = out.is_made ? RowAnswer::compact : lookup.space.find_any_row(lookup, out);
  if (answer != RowAnswer::full && answer != RowAnswer::compact) {
    note_no_row(lookup, out, answer);
    return answer;
  }
  out.is_full = answer == RowAnswer::full;
  out.is_compact = !out.is_full || compact(out.full, layout, out.compact);
  out.is_compact_but_signed = !out.is_compact && compact_but_signed(out.full, layout, out.compact);
  out.kept_by = kept_by(out.full, lookup);
  if (out.is_compact || out.is_compact_but_signed) (void)keep_alike(out);
  count_event(Counter::row_made);
  if (!out.is_compact || out.kept_by == KeptBy::nothing || logs_rows()) note_unusual_row(*this, lookup, out);
  return answer;
}

[[gnu::hot]] KeptBy RowCache::kept_by(const FrameRow& row, Lookup& lookup) noexcept {
  if (row.keeps_by == KeepsBy::nothing) return KeptBy::nothing;
  if (row.keeps_by == KeepsBy::code) return KeptBy::lasting;
  const Module* const module = lookup.module();
  if (!module || module->version == 0 || !module->text.contains(lookup.at.lookup())) return KeptBy::nothing;
  return module->is_lasting ? KeptBy::lasting : KeptBy::module;
}

[[gnu::hot]] CallerRule RowCache::keep(const KeepTicket& ticket, Lookup& lookup, const NewRow& row, RulePlace& place,
                                       CallerRule::Handler handler) const noexcept {
  if (row.kept_by == KeptBy::nothing || !row.is_compact) return {};
  const CallerRule rule = row.rule.with(handler);
  if (rule.kept_by() == KeptBy::nothing) return {};
  const ModuleVersion module = rule.is_of_module() ? module_of(lookup) : ModuleVersion{};
  // Only throws know of handlers, and both phases of a throw come to the same frames.
  const bool is_of_throw = handler != CallerRule::Handler::unknown;
  place = is_of_throw ? keep_wanted(ticket, rule.with_shape(rules.shapes.number_of(row.compact)), module)
                      : keep(ticket, rule, &row.compact, module);
  return rule;
}

[[gnu::hot]] RulePlace RowCache::keep(const KeepTicket& ticket, CallerRule rule, const CompactRow* row,
                                      const ModuleVersion& module) const noexcept {
  if (!rules.table.wants(ticket.at, ticket.before)) {
    count_event(Counter::row_met_once);
    if (logs(LogTopic::walk)) [[unlikely]]
      log_met_once(ticket.at);
    return {};
  }
  return keep_wanted(ticket, row ? rule.with_shape(rules.shapes.number_of(*row)) : rule, module);
}

[[gnu::hot]] RulePlace RowCache::keep_wanted(const KeepTicket& ticket, CallerRule rule,
                                             const ModuleVersion& module) const noexcept {
  const std::uint64_t version = version_of(ticket.registrations, rule.kept_by(), module);
  const KeptRules::Table::Number number =
      rules.table.keep(ticket.at, KeptRules::Table::cipher(version), rule, ticket.before);
  link(ticket.callee, number);
  count_event(Counter::row_kept);
  return RulePlace::at(number, rule);
}

}  // namespace jitunwind
