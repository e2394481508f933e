#include "jitunwind/dyn_info/directives/directives.h"

#include <algorithm>
#include <array>
#include <optional>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/unwind_core/address_space.h"

namespace jitunwind {
namespace {

constexpr LocalRegionReader k_local_regions;

Addr first_region(const unw_dyn_info_t& info) noexcept { return reinterpret_cast<std::uintptr_t>(info.u.pi.regions); }

}  // namespace

DirectiveRun::DirectiveRun(const RegionReader& reader, Addr regions, AddrRange procedure, const Arch& arch) noexcept
    : procedure_(procedure), arch_(arch), machine_(arch, reader, regions, unit_of(procedure.end)) {}

DirectiveRun::DirectiveRun(const unw_dyn_info_t& info, const Arch& arch) noexcept
    : DirectiveRun(k_local_regions, first_region(info), code_of(info), arch) {}

Status DirectiveRun::go_to(Addr lookup, DirectiveOutcome& out) noexcept {
  if (!procedure_.contains(lookup) || procedure_.size() % arch_.unit != 0)
    return Error{ErrorCode::e_range, procedure_.begin, "address range of a procedure"};
  if (const Status ran = machine_.run_to(unit_of(lookup)); !ran) return ran;
  const auto address_of = [&](std::int64_t unit) { return procedure_.begin + static_cast<Addr>(unit) * arch_.unit; };
  out.state = machine_.state();
  out.range = {};
  if (!out.state.alias())  // the last regions may extend beyond the procedure
    out.range = {address_of(machine_.holds_from()), std::min(address_of(machine_.holds_to()), procedure_.end)};
  return Done{};
}

Status run_directives(const RegionReader& reader, Addr regions, AddrRange procedure, const Arch& arch, Addr lookup,
                      DirectiveOutcome& out) noexcept {
  return DirectiveRun(reader, regions, procedure, arch).go_to(lookup, out);
}

Status run_directives(const unw_dyn_info_t& info, const Arch& arch, Addr lookup, DirectiveOutcome& out) noexcept {
  return run_directives(k_local_regions, first_region(info), code_of(info), arch, lookup, out);
}

Status make_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept {
  out.range = outcome.range;
  out.args_size = 0;
  out.signal_frame = false;
  out.signing_key = SigningKey::any;
  out.origin = RowOrigin::dyn_directives;
  return outcome.state.make_row(out);
}

Status make_own_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept {
  if (const auto alias = outcome.state.alias())
    return Error{ErrorCode::no_info, *alias, "ALIAS without a place to look its address up"};
  return make_row(outcome, out);
}

Status take_over(const FrameState& alias, FrameRow& row) noexcept {
  row.origin = RowOrigin::dyn_directives;
  row.keeps_by = KeepsBy::nothing;  // the registered code at the alias's address may change alone
  row.range = {};
  return alias.change_row(row);
}

Status follow_alias(const FrameState& alias, const Lookup& lookup, unsigned depth, FrameRow& out) noexcept {
  const Addr at = *alias.alias();
  if (depth > k_max_alias_depth) return Error{ErrorCode::e_alias_depth, at, "ALIAS nested too deeply"};
  // The caller has applied the after-call rule already.
  Lookup aliased(lookup.space, CodeAddress::interrupted(at), lookup.window);
  aliased.alias_depth = depth;
  const Found found = lookup.space.find_row(aliased, out);
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, at, "no unwind information at ALIAS's address"};
  return take_over(alias, out);
}

Status directive_row(const unw_dyn_info_t& info, const Arch& arch, CodeAddress at, Lookup* lookup,
                     FrameRow& out) noexcept {
  DirectiveOutcome outcome(arch);
  if (const Status ran = run_directives(info, arch, at.lookup(), outcome); !ran) return ran;
  if (!outcome.state.alias() || !lookup) return make_own_row(outcome, out);
  return follow_alias(outcome.state, *lookup, lookup->alias_depth + 1, out);
}

LsdaExtension lsda_extension(const RegionReader& reader, Addr regions) noexcept {
  RegionHeader first;
  if (regions == 0 || !reader.read_header(regions, first) || first.insn_count != 0) return {};
  std::array<unw_dyn_op_t, 1> buffer;
  /// Empty: there is no such directive.
  const auto value_of = [&](std::uint32_t i, int tag) -> std::optional<Addr> {
    if (i >= first.op_count) return std::nullopt;
    const auto read = reader.read_ops(first, i, buffer);
    if (!read || read->empty()) return std::nullopt;
    const unw_dyn_op_t& op = (*read)[0];
    if (tag == UNW_DYN_STOP) return op.tag == tag ? std::optional<Addr>(0) : std::nullopt;
    const bool is_marked = op.tag == tag && op.qp == 0 && op.reg == k_lsda_reg && op.when == k_lsda_when;
    return is_marked ? std::optional<Addr>(op.val) : std::nullopt;
  };
  const auto lsda = value_of(1, k_lsda_tag);
  if (!lsda || !value_of(0, UNW_DYN_STOP)) return {};
  return {*lsda, value_of(2, k_landing_pad_base_tag).value_or(0)};
}

LsdaExtension lsda_extension(const unw_dyn_info_t& info) noexcept {
  if (info.format != UNW_INFO_FORMAT_DYNAMIC) return {};
  return lsda_extension(k_local_regions, first_region(info));
}

}  // namespace jitunwind
