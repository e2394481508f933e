#include "jitunwind/builders/object_registration.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/heap_internal.h"
#include "jitunwind/unwind_core/sort_by_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

/// A table with one entry. Its pair in format IP_OFFSET is relative to "start_ip, segbase", and segbase is the FDE.
/// Code, table and FDE can therefore be any distance apart.
struct Pair {
  std::int32_t start;
  std::int32_t fde;
};
constexpr Pair k_start_and_segbase{0, 0};
/// A table with the same content at another address, which marks procedures without a personality routine.
constexpr Pair k_without_personality{0, 0};
constexpr unw_word_t k_words = sizeof(Pair) / sizeof(std::uintptr_t);  // words of this CPU

constexpr Error k_no_memory{ErrorCode::out_of_memory, 0, "no memory for an object's procedures"};

struct DescribedRange {
  AddrRange code;
  Addr fde;
};

/// The sections of code in the order of their addresses.
class Sections {
 public:
  /// Returns false when there is no memory.
  bool set(std::span<const AddrRange> code) noexcept {
    if (!sections_.reserve(code.size())) return false;
    for (const AddrRange& section : code) (void)sections_.add(section);
    return sort_by(sections_, &AddrRange::begin);
  }
  /// The section that contains `at`, or an empty range.
  AddrRange around(Addr at) const noexcept {
    const auto behind = std::ranges::upper_bound(sections_, at, {}, &AddrRange::begin);
    if (behind == sections_.begin() || !std::prev(behind)->contains(at)) return {};
    return *std::prev(behind);
  }
  bool contain(const AddrRange& range) const noexcept { return range.end <= around(range.begin).end; }

 private:
  HeapList<AddrRange> sections_;
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
Status read_eh_frame(const AddrRange& eh_frame, const Sections& sections,
                     HeapList<DescribedRange>& described) noexcept {
  if (eh_frame.empty()) return Done{};
  const Arch* const arch = host_arch();
  if (!arch) return Error{ErrorCode::e_format, eh_frame.begin, "call frame information of a CPU that is not known"};
  const auto size = static_cast<std::size_t>(eh_frame.size());
  SectionView bytes({{reinterpret_cast<const std::byte*>(eh_frame.begin), size}, eh_frame.begin});
  const CfiContext context{.arch = *arch};
  FdeScan scan(bytes, context, eh_frame);
  for (Fde fde;;) {
    const Result<bool> next = scan.next(fde);
    if (!next) return next.error();
    if (!*next) return Done{};
    if (fde.range.empty()) continue;
    if (!sections.contain(fde.range))
      return Error{ErrorCode::e_range, fde.address, "FDE for code that is not the object's"};
    if (const Status right = check_rows(fde, context); !right) return right.error();
    if (!described.add({fde.range, fde.address})) return k_no_memory;
  }
}

using Functions = HeapList<const ObjectFunction*>;

/// Symbols in the order of their addresses, one per address: the first of them. Returns false when there is no memory.
bool by_address(std::span<const ObjectFunction> functions, Functions& sorted) noexcept {
  if (!sorted.reserve(functions.size())) return false;
  for (const ObjectFunction& function : functions) (void)sorted.add(&function);
  if (!sort_by(sorted, &ObjectFunction::start)) return false;
  const auto same = [](const ObjectFunction* a, const ObjectFunction* b) { return a->start == b->start; };
  sorted.cut(std::unique(sorted.begin(), sorted.end(), same));
  return true;
}

struct NamedRange {
  AddrRange code;
  Addr fde;  // 0: none
  std::string_view name;
};

// `out` has room for all.

void add_described(const HeapList<DescribedRange>& described, const Functions& functions,
                   HeapList<NamedRange>& out) noexcept {
  for (const DescribedRange& one : described) {
    const auto function = std::lower_bound(functions.begin(), functions.end(), one.code.begin,
                                           [](const ObjectFunction* f, Addr at) { return f->start < at; });
    const bool named = function != functions.end() && (*function)->start == one.code.begin;
    (void)out.add({one.code, one.fde, named ? (*function)->name : std::string_view()});
  }
}

/// Adds the functions whose start no FDE covers. A function of unknown size ends at the next function or at the end of
/// its section. `described` is in the order of addresses.
void add_undescribed(const HeapList<DescribedRange>& described, const Functions& functions, const Sections& sections,
                     HeapList<NamedRange>& out) noexcept {
  const DescribedRange* next_fde = described.begin();
  Addr described_until = 0;
  for (auto function = functions.begin(); function != functions.end(); ++function) {
    const Addr start = (*function)->start;
    for (; next_fde != described.end() && next_fde->code.begin <= start; ++next_fde)
      described_until = std::max(described_until, next_fde->code.end);
    const AddrRange section = sections.around(start);
    if (start < described_until || section.empty()) continue;
    Addr end = section.end;
    if ((*function)->size != 0 && (*function)->size < end - start) end = start + (*function)->size;
    if (std::next(function) != functions.end()) end = std::min(end, (*std::next(function))->start);
    if (next_fde != described.end()) end = std::min(end, next_fde->code.begin);
    (void)out.add({{start, end}, 0, (*function)->name});
  }
}

}  // namespace

unw_dyn_info_t procedure_of_fde(AddrRange code, Addr fde, Addr name) noexcept {
  unw_dyn_info_t info{};
  info.start_ip = code.begin;
  info.end_ip = code.end;
  info.format = UNW_INFO_FORMAT_IP_OFFSET;
  info.u.rti.name_ptr = name;
  if (fde == 0) return info;
  info.u.rti.segbase = fde;
  info.u.rti.table_len = k_words;
  info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(&k_start_and_segbase);
  return info;
}

unw_dyn_info_t procedure_without_personality(AddrRange code, Addr fde) noexcept {
  unw_dyn_info_t info = procedure_of_fde(code, fde);
  if (fde != 0) info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(&k_without_personality);
  return info;
}

bool may_have_other_personality(const unw_dyn_info_t& info) noexcept {
  return info.format == UNW_INFO_FORMAT_IP_OFFSET &&
         info.u.rti.table_data == reinterpret_cast<std::uintptr_t>(&k_without_personality);
}

struct ObjectRegistration::Procedures {
  HeapList<unw_dyn_info_t> infos;
  HeapList<unw_dyn_info_t*> pointers;
  HeapList<char> names;  // separated by NULs
  std::size_t described = 0;

  /// Returns false when there is no memory.
  bool set(const HeapList<NamedRange>& ranges) noexcept;
};

bool ObjectRegistration::Procedures::set(const HeapList<NamedRange>& ranges) noexcept {
  std::size_t name_bytes = 0;
  for (const NamedRange& range : ranges) name_bytes += range.name.size() + 1;
  // The lists do not move from now on, since addresses in them are kept.
  if (!names.reserve(name_bytes) || !infos.reserve(ranges.size()) || !pointers.reserve(ranges.size())) return false;
  for (const NamedRange& range : ranges) {
    Addr name = 0;
    if (!range.name.empty()) {
      name = reinterpret_cast<std::uintptr_t>(names.end());
      for (const char c : range.name) (void)names.add(c);
      (void)names.add('\0');
    }
    if (range.fde != 0) ++described;
    (void)infos.add(procedure_of_fde(range.code, range.fde, name));
    (void)pointers.add(std::prev(infos.end()));
  }
  return true;
}

ObjectRegistration::ObjectRegistration() noexcept = default;
ObjectRegistration::ObjectRegistration(ObjectRegistration&& other) noexcept
    : procedures_(std::exchange(other.procedures_, nullptr)) {}
ObjectRegistration& ObjectRegistration::operator=(ObjectRegistration&& other) noexcept {
  std::swap(procedures_, other.procedures_);
  return *this;
}

/// If they cannot be cancelled they stay registered, with their memory.
ObjectRegistration::~ObjectRegistration() { (void)cancel(); }

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
  destroy_on_heap(std::exchange(procedures_, nullptr));
  return cancelled;
}

Result<ObjectRegistration> register_object(const ObjectCode& object) noexcept {
  Sections sections;
  HeapList<DescribedRange> described;
  Functions functions;
  HeapList<NamedRange> ranges;
  if (!sections.set(object.code)) return k_no_memory;
  if (const Status read = read_eh_frame(object.eh_frame, sections, described); !read) return read.error();
  if (!by_address(object.functions, functions) || !ranges.reserve(described.size() + functions.size()))
    return k_no_memory;
  add_described(described, functions, ranges);
  if (!sort_by(described, [](const DescribedRange& one) { return one.code.begin; })) return k_no_memory;
  add_undescribed(described, functions, sections, ranges);
  if (ranges.empty()) return ObjectRegistration();
  auto* const made = make_on_heap<ObjectRegistration::Procedures>();
  if (!made || !made->set(ranges)) return destroy_on_heap(made), k_no_memory;
  const Status registered = register_procedures(made->pointers);
  if (!registered) return destroy_on_heap(made), registered.error();
  return ObjectRegistration(made);
}

}  // namespace jitunwind
