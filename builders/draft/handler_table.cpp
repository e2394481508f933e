// The language-specific data of __gxx_personality_v0 (Itanium C++ ABI, exception handling tables; LSB 5.0 core names
// the encodings):
//
//   landing pad base (omitted: pads count from the procedure's start), encoding of types, where their table ends
//   call sites: begin, length, landing pad or 0, 1 + offset of the first action or 0; ascending. A call in none of them
//               ends in std::terminate(), so that the code between the sites is a site without landing pad
//   actions:    selector, distance to the next action or 0
//   types:      number 1 is the last; addresses of std::type_info, absolute
//   filters:    lists of numbers of types
//
// The table does not depend on the code's address, so that one table serves every procedure of a description.
#include <algorithm>
#include <map>
#include <memory>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/builders/draft/handler_draft_p.h"
#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/sort_by_internal.h"

namespace jitunwind {

class HandlerTable {
 public:
  HandlerTable(const HandlerDraft& draft, const Arch& arch, std::optional<std::uint64_t> size)
      : draft_(draft), arch_(arch), findings_(draft.findings_) {
    if (size) size_ = static_cast<std::int64_t>(*size);
  }

  std::unique_ptr<ProcedureHandlers> build() {
    for (const HandlerDraft::Site& site : draft_.sites_) place(site);
    sort_by(sites_, &PlacedSite::begin);
    for (std::size_t i = 1; i < sites_.size(); ++i)
      if (sites_[i].begin < sites_[i - 1].end)
        refuse(*sites_[i].site, ErrorCode::e_call_site, "overlaps " + name_of(*sites_[i - 1].site));
    if (!findings_.empty()) return nullptr;

    auto handlers = std::make_unique<ProcedureHandlers>();
    handlers->min_size = min_size_;
    if (!sites_.empty()) handlers->table = bytes_of([this](ByteWriter& to) { write(to); });
    return handlers;
  }
  std::vector<Finding>& findings() { return findings_; }

 private:
  struct PlacedSite {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t pad;  // 0: none
    const HandlerDraft::Site* site;
  };

  // The largest end of a procedure: offsets have 31 bits.
  static constexpr std::uint64_t k_any_end = std::uint64_t{1} << 31;

  static std::string name_of(const HandlerDraft::Site& site) {
    const bool lands = site.kind == HandlerDraft::Kind::lands;
    return (lands ? "call_site({" : "terminates({") + std::to_string(site.calls.begin) + ", " +
           std::to_string(site.calls.end) + (lands ? "}, " + std::to_string(site.pad) + ")" : "})");
  }

  void refuse(const HandlerDraft::Site& site, ErrorCode code, const std::string& reason) {
    findings_.push_back(finding_of(name_of(site), code, reason, site.calls.begin));
  }

  template <class Write>
  std::vector<std::byte> bytes_of(Write write) const {
    ByteWriter counting({}, arch_.big_endian);
    write(counting);
    std::vector<std::byte> bytes(counting.size());
    ByteWriter writer(bytes, arch_.big_endian);
    write(writer);
    return bytes;
  }

  /// Converts an offset to one from the start. False, and a finding, for a place outside the procedure.
  bool resolve(const HandlerDraft::Site& site, ErrorCode code, const char* what, std::int64_t offset, bool from_end,
               std::uint64_t& out) {
    const std::string name = std::string(what) + " " + std::to_string(offset);
    if (from_end && !size_) return refuse(site, code, name + " is counted from the end: tell size()"), false;
    const std::int64_t at = from_end ? *size_ + offset : offset;
    if (at < 0) return refuse(site, code, name + " lies in front of the procedure"), false;
    if (at > size_.value_or(static_cast<std::int64_t>(k_any_end) - 1))
      return refuse(site, code, name + " lies behind the end of the procedure"), false;
    if (at % arch_.unit != 0) return refuse(site, code, name + " is no boundary of instructions"), false;
    out = static_cast<std::uint64_t>(at);
    return true;
  }

  void place(const HandlerDraft::Site& site) {
    PlacedSite placed{0, 0, 0, &site};
    const auto [begin, end] = std::pair(site.calls.begin, site.calls.end);
    if (!resolve(site, ErrorCode::e_call_site, "begin", begin, begin < 0, placed.begin)) return;
    if (!resolve(site, ErrorCode::e_call_site, "end", end, begin < 0 ? end <= 0 : end < 0, placed.end)) return;
    if (placed.begin >= placed.end) return refuse(site, ErrorCode::e_call_site, "has no bytes");
    min_size_ = std::max(min_size_, placed.end);
    if (site.kind == HandlerDraft::Kind::lands) {
      if (!resolve(site, ErrorCode::e_landing_pad, "landing pad", site.pad, site.pad < 0, placed.pad)) return;
      if (placed.pad == 0)
        return refuse(site, ErrorCode::e_landing_pad, "the first byte of a procedure cannot be a landing pad");
      if (size_ && placed.pad == static_cast<std::uint64_t>(*size_))
        return refuse(site, ErrorCode::e_landing_pad, "landing pad lies behind the end of the procedure");
      min_size_ = std::max(min_size_, placed.pad + arch_.unit);
    }
    sites_.push_back(placed);
  }

  void write(ByteWriter& to) {
    std::vector<std::byte> actions;
    const std::vector<std::byte> sites = bytes_of([&](ByteWriter& w) { actions = write_sites(w); });
    const std::size_t types = draft_.types_.size() * arch_.word_size;
    to.u8(dwarf::pe_omit);
    if (draft_.types_.empty() && draft_.filters_.empty()) {
      to.u8(dwarf::pe_omit);
    } else {
      to.u8(dwarf::pe_absptr);
      const auto behind = bytes_of([&](ByteWriter& w) { w.u8(dwarf::pe_uleb128), w.uleb(sites.size()); });
      to.uleb(behind.size() + sites.size() + actions.size() + types);
    }
    to.u8(dwarf::pe_uleb128);
    to.uleb(sites.size());
    to.bytes(sites);
    to.bytes(actions);
    for (auto type = draft_.types_.rbegin(); type != draft_.types_.rend(); ++type)
      to.unsigned_of(reinterpret_cast<std::uintptr_t>(*type), arch_.word_size);
    for (const std::uint64_t number : draft_.filters_) to.uleb(number);
  }

  /// Writes the call sites and returns the actions.
  std::vector<std::byte> write_sites(ByteWriter& to) const {
    std::map<std::vector<std::int64_t>, std::uint64_t> known;
    std::vector<std::byte> actions;
    const auto write_site = [&to](std::uint64_t begin, std::uint64_t end, std::uint64_t pad, std::uint64_t action) {
      for (const std::uint64_t value : {begin, end - begin, pad, action}) to.uleb(value);
    };
    std::uint64_t reached = 0;
    for (const PlacedSite& placed : sites_) {
      if (placed.begin > reached) write_site(reached, placed.begin, 0, 0);
      reached = placed.end;
      if (placed.pad == 0) continue;
      const auto& selectors = placed.site->selectors;
      const bool only_cleans_up = std::ranges::all_of(selectors, [](std::int64_t selector) { return selector == 0; });
      const auto [action, fresh] = known.try_emplace(selectors, actions.size() + 1);
      if (only_cleans_up) action->second = 0;
      if (fresh && !only_cleans_up) append_actions(selectors, actions);
      write_site(placed.begin, placed.end, placed.pad, action->second);
    }
    const std::uint64_t end = size_ ? static_cast<std::uint64_t>(*size_) : k_any_end;
    if (end > reached) write_site(reached, end, 0, 0);
    return actions;
  }

  void append_actions(const std::vector<std::int64_t>& selectors, std::vector<std::byte>& actions) const {
    const auto bytes = bytes_of([&](ByteWriter& w) {
      for (std::size_t i = 0; i < selectors.size(); ++i) {
        w.sleb(selectors[i]);
        w.sleb(i + 1 < selectors.size() ? 1 : 0);  // distance from this byte to the next action, which is the next byte
      }
    });
    actions.insert(actions.end(), bytes.begin(), bytes.end());
  }

  const HandlerDraft& draft_;
  const Arch& arch_;
  std::optional<std::int64_t> size_;
  std::uint64_t min_size_ = 0;
  std::vector<PlacedSite> sites_;
  std::vector<Finding> findings_;
};

HandlersRef HandlerDraft::build(const Procedure& procedure, std::vector<Finding>& findings) const {
  if (empty()) return {};
  std::vector<Finding> found = contradictions(procedure);
  HandlerTable table(*this, procedure.arch, procedure.size);
  std::unique_ptr<ProcedureHandlers> handlers = table.build();
  found.insert(found.end(), table.findings().begin(), table.findings().end());
  findings.insert(findings.end(), found.begin(), found.end());
  if (!found.empty()) return {};
  handlers->frame_handler = frame_handler_;
  return HandlersRef(handlers.release());
}

}  // namespace jitunwind
