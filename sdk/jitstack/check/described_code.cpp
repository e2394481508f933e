#include "jitunwind/sdk/jitstack/check/check_output_p.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "jitunwind/sdk/demangled_p.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

namespace jitunwind::jitstack {
namespace {

/// A larger section is read as far as this.
constexpr std::uint64_t k_most_of_section = std::uint64_t{1} << 30;
/// Addresses of JITs' code that no description covers and that are asked about.
constexpr std::uint64_t k_most_misses = std::uint64_t{1} << 22;

class TargetVisit {
 public:
  TargetVisit(const Target& target, CodeVisitor& visitor) : target_(target), visitor_(visitor) {}

  void run() {
    // A core file does not tell which mappings are executable.
    for (const Mapping& mapping : target_.mappings().all()) {
      Lookup lookup(target_.space(), CodeAddress::interrupted(mapping.range.begin), window_);
      if (lookup.module() && modules_.insert(lookup.module()->range.begin).second) visit_module(lookup);
    }
    visit_jit_code();
  }

 private:
  void visit_module(Lookup& lookup) {
    const Arch& arch = target_.arch();
    const Module& module = *lookup.module();
    CfiContext context{arch};
    std::vector<std::byte> copy;
    SectionBytes section;
    if (const auto hdr = parse_eh_frame_hdr(module.eh_frame_hdr, arch); hdr && hdr->eh_frame != 0)
      section = copied_section(hdr->eh_frame, copy);
    if (section.empty()) {
      const Module& with_sections = *lookup.module_with_file_sections();
      section = with_sections.eh_frame;
      if (section.empty() && !with_sections.debug_frame.empty()) {
        section = with_sections.debug_frame;
        context.format = CfiContext::Format::debug_frame;
        context.section = section.address;
        context.load_bias = module.load_bias;
      }
    }
    if (section.empty()) return;
    visitor_.begin_module(module.path, section.bytes.size());
    SectionView view(section);
    FdeScan scan(view, context, {section.address, section.address + section.bytes.size()});
    Fde fde;
    while (!scan.at_end()) {
      const auto more = scan.next(fde);
      if (!more) {
        visitor_.visit_broken(more.error().at, more.error().what);
        continue;
      }
      if (!*more) break;
      if (fde.range.empty()) continue;
      visitor_.visit({fde.range, fde, &context}, fde.address - section.address);
    }
    visitor_.end_parts();
  }

  /// Copies all that is mapped from there on. The terminator ends the section before.
  SectionBytes copied_section(Addr at, std::vector<std::byte>& copy) {
    const Mapping* const mapping = target_.mappings().find(at);
    if (!mapping) return {};
    copy.resize(static_cast<std::size_t>(std::min(mapping->range.end - at, k_most_of_section)));
    copy.resize(target_.space().memory.read(at, copy, window_));
    return {copy, at};
  }

  /// A range may be one procedure, or have a table with many.
  void visit_jit_code() {
    std::vector<AddrRange> code = target_.jit_code();
    if (code.empty()) return;
    std::uint64_t size = 0, done = 0, misses = k_most_misses;
    for (const AddrRange& range : code) size += range.size();
    visitor_.begin_module("", size);
    std::set<Addr> visited;
    for (const AddrRange& range : code) {
      const auto visit = [&](const AddrRange& procedure) {
        if (visited.insert(procedure.begin).second) visitor_.visit({procedure}, done);
      };
      if (!for_each_procedure(
              range, misses, [this](Addr at) { return procedure_at(at); }, visit))
        break;
      done += range.size();
    }
    visitor_.end_parts();
  }

  AddrRange procedure_at(Addr at) {
    Lookup lookup(target_.space(), CodeAddress::interrupted(at), window_);
    ProcedureInfo info;
    const Found found = target_.space().find_procedure(lookup, info);
    return found && *found ? info.range : AddrRange{};
  }

  const Target& target_;
  CodeVisitor& visitor_;
  MemoryWindow window_;
  std::set<Addr> modules_;
};

class TargetSource final : public DescribedSource {
 public:
  explicit TargetSource(Target target) : target_(std::move(target)) {}
  const Arch& arch() const override { return target_.arch(); }
  const Memory& memory() const override { return target_.space().memory; }
  Found find_row(Addr at, FrameRow& out) override {
    Lookup lookup(target_.space(), CodeAddress::interrupted(at), window_);
    return target_.space().find_row(lookup, out);
  }
  std::string name_of(Addr at) override {
    const auto ask = [&](std::span<char> into) -> std::optional<ProcedureName> {
      Lookup lookup(target_.space(), CodeAddress::interrupted(at), window_);
      ProcedureName name;
      const Found found = target_.space().find_name(lookup, into, name);
      return found && *found ? std::optional(name) : std::nullopt;
    };
    return whole_name(ask);
  }
  void visit(CodeVisitor& visitor) override { TargetVisit(target_, visitor).run(); }

 private:
  Target target_;
  MemoryWindow window_;
};

}  // namespace

std::unique_ptr<DescribedSource> source_of(Target target) { return std::make_unique<TargetSource>(std::move(target)); }

Result<std::unique_ptr<DescribedSource>, TargetError> open_file(const std::string& path) {
  if (is_jitdump(path)) return open_jitdump(path);
  auto target = open_elf_file(path);
  if (!target) return target.error();
  return source_of(std::move(*target));
}

}  // namespace jitunwind::jitstack
