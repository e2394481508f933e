#include "jitunwind/builders/object_registration.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/sort_by_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

struct DescribedRange {
  AddrRange code;
  Addr fde;
};

bool starts_before(const AddrRange& a, const AddrRange& b) noexcept { return a.begin < b.begin; }

/// The sections of code in the order of their addresses.
class Sections {
 public:
  explicit Sections(std::span<const AddrRange> code) : sections_(code.begin(), code.end()) {
    sort_by(sections_, &AddrRange::begin);
  }
  /// The section that contains `at`, or an empty range.
  AddrRange around(Addr at) const noexcept {
    const auto behind = std::upper_bound(sections_.begin(), sections_.end(), AddrRange{at, at}, starts_before);
    if (behind == sections_.begin() || !std::prev(behind)->contains(at)) return {};
    return *std::prev(behind);
  }
  bool contain(const AddrRange& range) const noexcept { return range.end <= around(range.begin).end; }

 private:
  std::vector<AddrRange> sections_;
};

/// Executes every instruction of the entry, so that registration reports an error instead of a later walk.
Status check_rows(const Fde& fde, const CfiContext& context) noexcept {
  FrameRow row;
  FdeRows rows(fde, context, row);
  for (Addr at = fde.range.begin;; at = row.range.end) {
    const Result<bool> next = rows.next_behind(at);
    if (!next) return next.error();
    if (!*next) return Done{};
  }
}

/// Reads the ranges that `eh_frame` describes. FDEs for no code are skipped: linkers leave them behind when they drop a
/// function.
Result<std::vector<DescribedRange>> read_eh_frame(const AddrRange& eh_frame, const Sections& sections) {
  std::vector<DescribedRange> described;
  if (eh_frame.empty()) return described;
  const Arch* const arch = host_arch();
  if (!arch) return Error{ErrorCode::e_format, eh_frame.begin, "call frame information of a CPU that is not known"};
  const auto size = static_cast<std::size_t>(eh_frame.size());
  SectionView bytes({{reinterpret_cast<const std::byte*>(eh_frame.begin), size}, eh_frame.begin});
  const CfiContext context{.arch = *arch};
  FdeScan scan(bytes, context, eh_frame);
  for (Fde fde;;) {
    const Result<bool> next = scan.next(fde);
    if (!next) return next.error();
    if (!*next) return described;
    if (fde.range.empty()) continue;
    if (!sections.contain(fde.range))
      return Error{ErrorCode::e_range, fde.address, "FDE for code that is not the object's"};
    if (const Status right = check_rows(fde, context); !right) return right.error();
    described.push_back({fde.range, fde.address});
  }
}

/// Symbols in the order of their addresses, one per address.
std::vector<ObjectFunction> by_address(std::span<const ObjectFunction> functions) {
  std::vector<ObjectFunction> sorted(functions.begin(), functions.end());
  sort_by(sorted, &ObjectFunction::start);
  const auto same = [](const auto& a, const auto& b) { return a.start == b.start; };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), same), sorted.end());
  return sorted;
}

struct NamedRange {
  AddrRange code;
  Addr fde;  // 0: none
  std::string_view name;
};

void add_described(const std::vector<DescribedRange>& described, const std::vector<ObjectFunction>& functions,
                   std::vector<NamedRange>& out) {
  for (const DescribedRange& one : described) {
    const auto function = std::lower_bound(functions.begin(), functions.end(), one.code.begin,
                                           [](const ObjectFunction& f, Addr at) { return f.start < at; });
    const bool named = function != functions.end() && function->start == one.code.begin;
    out.push_back({one.code, one.fde, named ? function->name : std::string_view()});
  }
}

/// Adds the functions whose start no FDE covers. A function of unknown size ends at the next function or at the end of
/// its section.
void add_undescribed(std::vector<DescribedRange> described, const std::vector<ObjectFunction>& functions,
                     const Sections& sections, std::vector<NamedRange>& out) {
  sort_by(described, [](const DescribedRange& one) { return one.code.begin; });
  auto next_fde = described.begin();
  Addr described_until = 0;
  for (auto function = functions.begin(); function != functions.end(); ++function) {
    const Addr start = function->start;
    for (; next_fde != described.end() && next_fde->code.begin <= start; ++next_fde)
      described_until = std::max(described_until, next_fde->code.end);
    const AddrRange section = sections.around(start);
    if (start < described_until || section.empty()) continue;
    Addr end = section.end;
    if (function->size != 0 && function->size < end - start) end = start + function->size;
    if (std::next(function) != functions.end()) end = std::min(end, std::next(function)->start);
    if (next_fde != described.end()) end = std::min(end, next_fde->code.begin);
    out.push_back({{start, end}, 0, function->name});
  }
}

}  // namespace

struct ObjectRegistration::Procedures {
  std::vector<unw_dyn_info_t> infos;
  std::vector<unw_dyn_info_t*> pointers;
  std::string names;  // separated by NULs
  std::size_t described = 0;

  explicit Procedures(const std::vector<NamedRange>& ranges);
};

ObjectRegistration::Procedures::Procedures(const std::vector<NamedRange>& ranges) {
  std::size_t name_bytes = 0;
  for (const NamedRange& range : ranges) name_bytes += range.name.size() + 1;
  names.reserve(name_bytes);
  infos.reserve(ranges.size());
  pointers.reserve(ranges.size());
  for (const NamedRange& range : ranges) {
    Addr name = 0;
    if (!range.name.empty()) {
      name = reinterpret_cast<std::uintptr_t>(names.data() + names.size());
      names.append(range.name).push_back('\0');
    }
    if (range.fde != 0) ++described;
    infos.push_back(procedure_of_fde(range.code, range.fde, name));
    pointers.push_back(&infos.back());
  }
}

ObjectRegistration::ObjectRegistration() noexcept = default;
ObjectRegistration::ObjectRegistration(std::unique_ptr<Procedures> procedures) noexcept
    : procedures_(std::move(procedures)) {}
ObjectRegistration::ObjectRegistration(ObjectRegistration&& other) noexcept = default;
ObjectRegistration& ObjectRegistration::operator=(ObjectRegistration&& other) noexcept {
  std::swap(procedures_, other.procedures_);
  return *this;
}

ObjectRegistration::~ObjectRegistration() {
  if (!cancel()) (void)procedures_.release();
}

std::span<const unw_dyn_info_t> ObjectRegistration::procedures() const noexcept {
  if (!procedures_) return {};
  return procedures_->infos;
}

std::span<const unw_dyn_info_t> ObjectRegistration::undescribed() const noexcept {
  if (!procedures_) return {};
  return procedures().subspan(procedures_->described);
}

Status ObjectRegistration::cancel() noexcept {
  if (!procedures_) return Done{};
  const Status cancelled = cancel_procedures(procedures_->pointers);
  if (!cancelled && cancelled.error().code == ErrorCode::in_signal_handler) return cancelled;
  procedures_.reset();
  return cancelled;
}

Result<ObjectRegistration> register_object(const ObjectCode& object) {
  const Sections sections(object.code);
  auto described = read_eh_frame(object.eh_frame, sections);
  if (!described) return described.error();
  const std::vector<ObjectFunction> functions = by_address(object.functions);
  std::vector<NamedRange> ranges;
  ranges.reserve(described->size() + functions.size());
  add_described(*described, functions, ranges);
  add_undescribed(std::move(*described), functions, sections, ranges);
  if (ranges.empty()) return ObjectRegistration();
  auto procedures = std::make_unique<ObjectRegistration::Procedures>(ranges);
  if (const Status registered = register_procedures(procedures->pointers); !registered) return registered.error();
  return ObjectRegistration(std::move(procedures));
}

}  // namespace jitunwind
