// build(): the regions, rows if some were given, the check, and the shared shape.
#include <algorithm>
#include <iterator>
#include <set>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/builders/shapes/shape_pool_p.h"
#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/unwind_core/sort_by_internal.h"

namespace jitunwind {

class DraftBuild {
 public:
  explicit DraftBuild(const DraftRecord& draft) : draft_(draft), arch_(*draft.arch), findings_(draft.findings) {}

  Result<Description, BuildError> run() {
    DraftLayout layout(draft_);
    findings_.insert(findings_.end(), layout.findings.begin(), layout.findings.end());
    if (findings_.empty()) findings_ = IdiomCheck(draft_).run();
    if (draft_.lsda != 0 && draft_.personality == 0 && draft_.handlers.empty())
      refuse_procedure(ErrorCode::invalid_argument, "lsda() without personality(): nobody would read it");
    const auto handlers = draft_.handlers.build({arch_, draft_.size, draft_.personality, draft_.lsda}, findings_);
    if (!findings_.empty()) return BuildError{std::move(findings_)};

    layout_ = &layout;
    ShapeContent content;
    content.arch = &arch_;
    content.regions = RegionList(layout.regions);
    content.min_size = covered_bytes(content.regions.first(), arch_);
    FrameShape shape = draft_.rows.empty() ? of_directives(std::move(content)) : of_rows(std::move(content));
    if (!shape) return BuildError{wanted(findings_)};
    Description::Facts its = facts(shape, handlers);
    return Description(std::move(shape), std::move(its));
  }

 private:
  Description::Facts facts(const FrameShape& shape, const HandlersRef& handlers) const {
    Description::Facts facts{draft_.name, draft_.personality, draft_.lsda, draft_.gp, draft_.size, {}, handlers};
    facts.warnings = wanted(shape.warnings());
    if (!handlers) return facts;
    facts.lsda = handlers->lsda();
    if (facts.personality == 0) facts.personality = handlers->personality();
    return facts;
  }

  /// A shared shape keeps all warnings; a warning that this draft answers by ends_without_return() is left out.
  std::vector<Finding> wanted(std::span<const Finding> findings) const {
    std::vector<Finding> out;
    std::ranges::copy_if(findings, std::back_inserter(out), [&](const Finding& f) {
      return f.code != ErrorCode::w_unbalanced || !draft_.ends_without_return;
    });
    return out;
  }

  /// The given size, or one unit more than all regions, so that the last directive applies to at least one unit.
  std::uint64_t nominal_size(const ShapeContent& content) const {
    return draft_.size.value_or(content.min_size + arch_.unit);
  }

  /// True when there are no findings but warnings.
  bool check(const ShapeContent& content) {
    const std::uint64_t size = nominal_size(content);
    std::vector<std::uint64_t> call_ends;
    for (const Instruction& call : draft_.calls)
      call_ends.push_back(static_cast<std::uint64_t>(call.end) + (call.from_end() ? size : 0));
    findings_ = validate(descriptor_at_zero(content.regions.first(), size), arch_, {.call_ends = call_ends});
    for (Finding& finding : findings_) speak_of_idioms(finding);
    return std::ranges::all_of(findings_, is_warning, &Finding::code);
  }

  /// Rewords the finding by the builder's calls, where those are known.
  void speak_of_idioms(Finding& finding) const {
    const std::uint32_t said = said_for(finding);
    if (said == 0) return;
    const std::size_t reason = finding.message.find(": " + finding_name(finding.code) + ": ");
    finding.message = draft_.said[said - 1].text(arch_) + finding.message.substr(reason);
    const bool left_early = finding.code == ErrorCode::e_sp_high && draft_.remembered == 0 && releases() > 1;
    if (left_early) finding.message += k_early_return_hint;
  }
  /// Number of the instruction that made the directive, or of the one that ends at the finding's offset; 0: none.
  std::uint32_t said_for(const Finding& finding) const {
    if (finding.region >= 0 && finding.directive >= 0)
      return layout_->regions[static_cast<std::size_t>(finding.region)]
          .said[static_cast<std::size_t>(finding.directive)];
    if (finding.code != ErrorCode::e_sp_lost) return 0;
    const auto found =
        std::ranges::find(draft_.said, finding.offset, [](const SaidInstruction& said) { return said.at.end; });
    return found == draft_.said.end() ? 0 : static_cast<std::uint32_t>(found - draft_.said.begin()) + 1;
  }

  /// Number of directives that move SP up.
  std::size_t releases() const {
    std::size_t count = 0;
    for (const auto& region : draft_.regions)
      count += static_cast<std::size_t>(
          std::ranges::count_if(region.directives, [&](const auto& p) { return p.directive.releases_stack(arch_); }));
    return count;
  }

  bool refuse_procedure(ErrorCode code, const std::string& reason) {
    findings_.push_back(finding_of("procedure", code, reason));
    return false;
  }

  /// The code may end in a call or jump that does not return; the generator must declare it.
  bool is_balanced(std::span<const Finding> warnings) {
    const bool warned = std::ranges::count(warnings, ErrorCode::w_unbalanced, &Finding::code) != 0;
    if (!warned || draft_.ends_without_return || pops_return_address()) return true;
    findings_.clear();
    std::string reason =
        "ends with the frame still allocated: is a pop or deallocate missing? If it ends in a jump or in a call that "
        "does not return, say ends_without_return()";
    if (draft_.remembered != 0 && !draft_.size) reason += "; if it ends with a restore(), say its size()";
    return refuse_procedure(ErrorCode::w_unbalanced, reason);
  }

  /// SP ends above its value at entry when the return address is popped.
  bool pops_return_address() const {
    return arch_.ra_in_memory && std::ranges::any_of(draft_.regions, [this](const auto& region) {
             return std::ranges::any_of(region.directives, [this](const auto& p) {
               return p.directive.tag == UNW_DYN_SAVE_REG && p.directive.reg == arch_.ra;
             });
           });
  }

  FrameShape of_directives(ShapeContent&& content) {
    const std::uint64_t size = nominal_size(content);
    // A known shape was checked when it was made; only the size and the places of calls are new.
    if (draft_.calls.empty() && size >= content.min_size && size != 0 && size % arch_.unit == 0)
      if (FrameShape known = ShapePool::find(content)) return is_balanced(known.warnings()) ? known : FrameShape();
    if (!check(content) || !is_balanced(findings_)) return {};
    return ShapePool::intern(std::move(content), std::move(findings_));
  }

  FrameShape of_rows(ShapeContent&& content) {
    if (!check(content) || !check_rows()) return {};
    ShapeContent rows;
    rows.arch = &arch_;
    if (!merge(content, rows)) return {};
    if (const Status encoded = RowTable::measure(rows); !encoded) {
      (void)refuse(encoded.error().code, rows.rows.offset(static_cast<std::size_t>(encoded.error().at)),
                   encoded.error().what);
      return {};
    }
    return ShapePool::intern(std::move(rows), std::move(findings_));
  }

  bool refuse(ErrorCode code, std::int64_t offset, const std::string& reason) {
    findings_.push_back(finding_of("row_at(" + std::to_string(offset) + ")", code, reason, offset));
    return false;
  }

  bool check_rows() {
    bool good = true;
    std::set<std::int64_t> rows_at;
    for (const auto& given : draft_.rows) {
      const std::int64_t offset = given.offset;
      const RegRule ra = given.row->rule(given.row->ra);
      const bool ra_lost = ra.kind == RegRule::Kind::unspecified || ra.kind == RegRule::Kind::same;
      const bool twice = !rows_at.insert(offset).second;
      if (offset % arch_.unit != 0)
        good = refuse(ErrorCode::e_range, offset, "not on a boundary of the CPU's instructions");
      else if (twice)
        good = refuse(ErrorCode::invalid_argument, offset, "more than one row for this offset");
      else if (draft_.size && offset >= static_cast<std::int64_t>(*draft_.size))
        good = refuse(ErrorCode::e_range, offset, "behind the end of the procedure");
      else if (draft_.size && offset < -static_cast<std::int64_t>(*draft_.size))
        good = refuse(ErrorCode::e_range, offset, "in front of the procedure");
      else if (given.row->cfa.kind == CfaRule::Kind::none)
        good = refuse(ErrorCode::invalid_argument, offset, "a row without CFA");
      else if (arch_.ra_in_memory && ra_lost)
        good = refuse(ErrorCode::invalid_argument, offset, "the row does not say where the return address is");
    }
    return good;
  }

  using PlacedRow = RowList::Placed;

  /// Converts the directives to rows, one for each change, at offsets from the start and from the end.
  bool render(const ShapeContent& content, std::vector<PlacedRow>& out) {
    const unw_dyn_info_t info = descriptor_at_zero(content.regions.first(), nominal_size(content));
    DirectiveRun run(info, arch_);
    DirectiveOutcome outcome(arch_);
    FrameRow row;
    for (const CodeOffset offset : boundaries(content.regions.first(), arch_)) {
      const std::int64_t at = offset < 0 ? static_cast<std::int64_t>(info.end_ip) + offset : offset;
      if (at >= static_cast<std::int64_t>(info.end_ip)) continue;
      Status found = run.go_to(static_cast<Addr>(at), outcome);
      if (found) found = make_own_row(outcome, row);
      if (!found)
        return refuse(found.error().code, offset,
                      std::string("rows cannot be mixed with these directives: ") + found.error().what);
      const FrameRow* const kept = rendered_.keep(row);
      if (out.empty() || out.back().row != kept) out.push_back({offset, kept});
    }
    return true;
  }

  /// Given rows replace those of the directives from their offset on, up to the next change by either.
  bool merge(const ShapeContent& content, ShapeContent& out) {
    std::vector<PlacedRow> rows;
    std::set<std::int64_t> given_at;
    for (const auto& given : draft_.rows) {
      rows.push_back({given.offset, given.row});
      given_at.insert(given.offset);
    }
    std::vector<PlacedRow> rendered;
    if (!render(content, rendered)) return false;
    std::ranges::copy_if(rendered, std::back_inserter(rows),
                         [&](const PlacedRow& r) { return !given_at.contains(r.offset); });
    anchor(rows);
    // Places from the start come before places from the end, each kind ascending: the order of unsigned numbers.
    sort_by(rows, [](const PlacedRow& r) { return static_cast<std::uint64_t>(r.offset); });
    std::int64_t last_from_start = 0;
    std::int64_t first_from_end = 0;
    for (const PlacedRow& r : rows) {
      if (r.offset >= 0) last_from_start = r.offset;
      first_from_end = std::min(first_from_end, r.offset);
    }
    const std::int64_t at_least = last_from_start + (first_from_end < 0 ? -first_from_end : arch_.unit);
    out.min_size = std::max(content.min_size, static_cast<std::uint64_t>(at_least));
    RowList::Pools pools;
    for (const auto& given : draft_.row_pools)
      pools.insert(pools.end(), given->expressions.begin(), given->expressions.end());
    out.rows = RowList(rows, std::move(pools));
    if (draft_.size && *draft_.size < out.min_size)
      return refuse(ErrorCode::e_overlap, first_from_end, "rows from the end begin in front of rows from the start");
    return true;
  }

  /// Rows from the start may lie behind rows from the end if the procedure's size is known; all rows are then placed
  /// from the start.
  void anchor(std::vector<PlacedRow>& rows) const {
    if (!draft_.size) return;
    const auto size = static_cast<std::int64_t>(*draft_.size);
    std::int64_t last_from_start = 0;
    std::int64_t first_from_end = 0;
    for (const PlacedRow& r : rows) {
      last_from_start = std::max(last_from_start, r.offset);
      first_from_end = std::min(first_from_end, r.offset);
    }
    if (last_from_start < size + first_from_end) return;
    for (PlacedRow& r : rows)
      if (r.offset < 0) r.offset += size;
    // A place that is given both ways keeps the given row, which comes first.
    sort_by(rows, &PlacedRow::offset);
    const auto same_place = [](const PlacedRow& a, const PlacedRow& b) { return a.offset == b.offset; };
    rows.erase(std::unique(rows.begin(), rows.end(), same_place), rows.end());
  }

  RowPool rendered_;
  const DraftRecord& draft_;
  const Arch& arch_;
  const DraftLayout* layout_ = nullptr;
  std::vector<Finding> findings_;
};

Result<Description, BuildError> ProcedureDraft::build() const { return DraftBuild(*record_).run(); }

}  // namespace jitunwind
