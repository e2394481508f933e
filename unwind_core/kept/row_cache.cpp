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
  const KeptRules::Table::Entries entries = rules.table.entries();
  if (entries.in_bounds(from.number) == from.number)
    rules.table.replace(from.number, entries.value(from.number).with_link(to));
}

[[gnu::hot]] bool RowCache::find_otherwise(Addr at, ModuleVersion& walked, RulePlace& place, CodeQuestion& question,
                                           KeptRow& out) const noexcept {
  using Table = KeptRules::Table;
  question = {at, changes.number(at), place};
  const std::uint64_t cipher_of_lasting = Table::cipher(question.registrations);
  const auto cipher_of = [&](CallerRule rule) {
    if (!rule.is_of_module()) [[likely]]
      return cipher_of_lasting;
    return Table::cipher(version_of(question.registrations, KeptBy::module, module_of(at, walked)));
  };
  const Table::Entries entries = rules.table.entries();
  const Table::Number linked = entries.in_bounds(place.next);
  Table::Found found{linked, entries.value(linked), true};
  if (!entries.holds(linked, found.value, at, cipher_of(found.value))) {
    found = rules.table.find(at, cipher_of);
    question.before.number = found.number;
    place = {};
    if (!found.holds) return false;
    link(question.callee, found.number);
  }
  question.before.number = found.number;
  place = RulePlace::at(found.number, found.value);
  out.rule = found.value;
  if (!out.rule.is_whole()) return false;
  count_warm_event(Counter::kept_row_used);
  rules.shapes.row(out.rule.shape(), out.rule.cfa_words(), out.row);
  return true;
}

namespace {

constexpr std::uint64_t k_cipher_of_alike = KeptRules::Table::cipher(0);
/// Places are those of the other table: link() finds no entry there.
constexpr std::uint32_t k_without_link = RulePlace::k_none - 1;

}  // namespace

CallerRule RowCache::find_shared(CodeQuestion& question, RulePlace& place) const noexcept {
  using Table = KeptRules::Table;
  const AlikePlace shared = alike->shapes.place_of(question.at);
  if (!shared) return {};
  const Table::Found found = alike->table.find(shared.at(), [](CallerRule) { return k_cipher_of_alike; });
  if (!found.holds) return {};
  place = {k_without_link};
  if (rules.table.wants(question.at, question.before.number)) {
    place = keep_wanted(question, found.value, {});
    question.before.number = place.number;
  }
  return found.value;
}

bool RowCache::find_alike(CodeQuestion& question, RulePlace& place, KeptRow& out) const noexcept {
  out.rule = find_alike(question, place);
  if (!out.rule.is_whole()) return false;
  rules.shapes.row(out.rule.shape(), out.rule.cfa_words(), out.row);
  return true;
}

void RowCache::keep_alike(AlikePlace place, const NewRow& row) const noexcept {
  const CallerRule rule = rule_of(row.compact.row, row.full.origin, KeptBy::lasting);
  const auto before = alike->table.find(place.at(), [](CallerRule) { return k_cipher_of_alike; });
  if (rule.kept_by() == KeptBy::nothing || before.holds || !alike->table.wants(place.at(), before.number)) return;
  const unsigned shape = row.is_compact ? rules.shapes.number_of(row.compact.row) : 0;
  const auto handler = place.has_facts() ? CallerRule::Handler::unknown : CallerRule::Handler::none;
  (void)alike->table.keep(place.at(), k_cipher_of_alike, rule.with_shape(shape).with(handler), before.number);
}

CallerRule RowCache::find_end(const CodeQuestion& question, ModuleVersion& walked) const noexcept {
  using Table = KeptRules::Table;
  const Table::Entries entries = rules.table.entries();
  const Table::Number number = question.before.number;
  if (entries.in_bounds(number) != number) return {};
  const CallerRule rule = entries.value(number);
  if (rule.kind() != CallerRule::Kind::outermost) return {};
  const ModuleVersion module = rule.is_of_module() ? module_of(question.at, walked) : ModuleVersion{};
  const std::uint64_t version = version_of(question.registrations, rule.kept_by(), module);
  return entries.holds(number, rule, question.at, Table::cipher(version)) ? rule : CallerRule{};
}

bool RowCache::says_end(const FrameRow& row) const noexcept {
  const RegNum return_address = row.ra == k_no_reg ? layout.arch().ra : row.ra;
  return !row.signal_frame && row.rule(return_address).kind == RegRule::Kind::undefined;
}

void RowCache::keep_end(const CodeQuestion& question, Lookup& lookup, const NewRow& row) const noexcept {
  if (row.kept_by == KeptBy::nothing || !says_end(row.full)) return;
  const CallerRule rule(row.kept_by, CallerRule::Kind::outermost);
  (void)keep(question, rule.with(row.full.origin), module_of(lookup));
}

bool RowCache::wants(const CodeQuestion& question, CallerRule rule) const noexcept {
  if (rule.handler() != CallerRule::Handler::unknown) return true;
  const bool wanted = rules.table.wants(question.at, question.before.number);
  if (!wanted) note_met_once(question.at);
  return wanted;
}

void NewRow::complete() noexcept {
  if (!compact.is_found) return;
  FrameRow row = expand(compact.row, compact.layout);
  row.origin = full.origin;
  row.keeps_by = full.keeps_by;
  row.range = full.range;
  full = row;
}

[[gnu::hot]] Found RowCache::find_new(Lookup& lookup, NewRow& out) const noexcept {
  lookup.compact = &out.compact;
  const Found found = lookup.space.find_row(lookup, out.full);
  lookup.compact = nullptr;
  if (!found || !*found) {
    note_no_row(lookup, found);
    return found;
  }
  out.is_compact = out.compact.is_found || compact(out.full, layout, out.compact.row);
  out.is_compact_but_signed = !out.is_compact && compact_but_signed(out.full, layout, out.compact.row);
  out.kept_by = kept_by(out.full, lookup);
  const AlikePlace shared(lookup.alike);
  if (alike && shared && (out.is_compact || out.is_compact_but_signed)) keep_alike(shared, out);
  count_event(Counter::row_made);
  if (!out.is_compact || out.kept_by == KeptBy::nothing || logs_rows()) note_unusual_row(*this, lookup, out);
  return found;
}

[[gnu::hot]] KeptBy RowCache::kept_by(const FrameRow& row, Lookup& lookup) noexcept {
  if (row.keeps_by == KeepsBy::nothing) return KeptBy::nothing;
  if (row.keeps_by == KeepsBy::code) return KeptBy::lasting;
  const Module* const module = lookup.module();
  if (!module || module->version == 0 || !module->text.contains(lookup.at.lookup())) return KeptBy::nothing;
  return module->is_lasting ? KeptBy::lasting : KeptBy::module;
}

[[gnu::hot]] CallerRule RowCache::rule_of(const CompactRow& row, RowOrigin origin, KeptBy by) const noexcept {
  const std::size_t fp_slot = layout.fp_slot();
  if (fp_slot >= layout.size() || by == KeptBy::nothing) return {};
  const bool by_fp = row.base == layout.columns()[fp_slot];
  if (!by_fp && row.base != layout.sp_column()) return {};
  const std::uint8_t ra = row.slots[CompactLayout::k_return_address], fp = row.slots[fp_slot];
  if (layout.arch().calls_push() ? ra != 1 : fp != 0 && ra + 1 != fp) return {};
  return CallerRule(row, origin, by, by_fp, fp_slot);
}

[[gnu::hot]] CallerRule RowCache::keep(const CodeQuestion& question, Lookup& lookup, const NewRow& row,
                                       RulePlace& place, CallerRule::Handler handler) const noexcept {
  if (row.kept_by == KeptBy::nothing || !row.is_compact) return {};
  const CallerRule rule = rule_of(row.compact.row, row.full.origin, row.kept_by).with(handler);
  if (rule.kept_by() == KeptBy::nothing) return {};
  place = keep(question, rule, row.compact.row, rule.is_of_module() ? module_of(lookup) : ModuleVersion{});
  return rule;
}

RulePlace RowCache::keep(const CodeQuestion& question, CallerRule rule, const ModuleVersion& module) const noexcept {
  return wants(question, rule) ? keep_wanted(question, rule, module) : RulePlace{};
}

[[gnu::hot]] RulePlace RowCache::keep_wanted(const CodeQuestion& question, CallerRule rule,
                                             const ModuleVersion& module) const noexcept {
  const std::uint64_t version = version_of(question.registrations, rule.kept_by(), module);
  const KeptRules::Table::Number number =
      rules.table.keep(question.at, KeptRules::Table::cipher(version), rule, question.before.number);
  link(question.callee, number);
  count_event(Counter::row_kept);
  return RulePlace::at(number, rule);
}

}  // namespace jitunwind
