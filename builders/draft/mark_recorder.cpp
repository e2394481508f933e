#include "jitunwind/builders/draft/mark_recorder.h"

#include <algorithm>
#include <limits>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"
#include "jitunwind/unwind_core/heap_internal.h"

namespace jitunwind {
namespace {

/// Replaces DWARF's numbers by those of directives. False: the CPU has no such register, or directives cannot name it.
bool number(unw_dyn_op_t& op, const Arch& arch) noexcept {
  if (!names_register(op.tag)) return op.reg = 0, true;
  const int reg = number_in_directives(arch, static_cast<RegNum>(op.reg));
  op.reg = static_cast<std::int16_t>(reg);
  if (op.tag != UNW_DYN_SAVE_REG) return reg >= 0;
  const int in = number_in_directives(arch, static_cast<unsigned>(op.val));
  op.val = static_cast<unw_word_t>(in);
  return reg >= 0 && in >= 0;
}

}  // namespace

MarkRecorder::MarkRecorder(const MarkRecorder& other) noexcept
    : arch_(other.arch_),
      label_(other.label_),
      size_(other.size_),
      facts_(other.facts_),
      mistake_(other.mistake_),
      has_size_(other.has_size_) {
  while (room_ < other.count_ && grow()) continue;
  if (room_ >= other.count_) std::copy_n(other.ops_, count_ = other.count_, ops_);
}

void MarkRecorder::free_ops() noexcept { give_back(ops_); }

bool MarkRecorder::grow() noexcept {
  void* const memory = allocate(2 * room_ * sizeof(unw_dyn_op_t));
  if (!memory) return refuse(ErrorCode::out_of_memory, 0, "no memory for more directives"), false;
  auto* const larger = static_cast<unw_dyn_op_t*>(memory);
  std::copy_n(ops_, count_, larger);
  if (ops_ != inline_.data()) free_ops();
  ops_ = larger;
  room_ *= 2;
  return true;
}

void MarkRecorder::clear() noexcept {
  count_ = 0;
  label_ = 0;
  facts_ = {};
  mistake_ = {};
  has_size_ = false;
}

void MarkRecorder::refuse(ErrorCode code, std::int64_t offset, const char* what) noexcept {
  if (*mistake_.what == '\0') mistake_ = {code, static_cast<Addr>(offset), what};
}

void MarkRecorder::refuse_bytes(Instruction at) noexcept {
  if (at.begin >= at.end) return refuse(ErrorCode::e_range, at.begin, "no bytes between begin and end");
  if (at.begin < 0 && at.end > 0) return refuse(ErrorCode::e_when, at.begin, "reaches across the end of the procedure");
  refuse(ErrorCode::e_range, at.begin, "code offset beyond 2 GiB");
}

Status MarkRecorder::settle(std::uint64_t bytes) noexcept {
  if (*mistake_.what != '\0') return mistake_;
  const std::uint64_t unit = arch_->unit;
  if (bytes == 0 || bytes % unit != 0)
    return Error{ErrorCode::e_range, bytes, "size 0, or not a multiple of the instruction unit"};
  if (has_size_ && size_ != bytes) return Error{ErrorCode::e_range, bytes, "described for another size"};
  if (count_ > k_max_ops)
    return Error{ErrorCode::too_deep, count_, "more directives than one region holds; build() makes several"};
  const auto units = static_cast<std::int64_t>(bytes / unit);
  std::int64_t latest = -1;
  std::int64_t last_from_start = -1;
  std::int64_t first_from_end = std::numeric_limits<std::int64_t>::max();
  for (unw_dyn_op_t& op : std::span(ops_, count_)) {
    const Addr said = static_cast<Addr>(std::int64_t{op.when});
    const By by = static_cast<By>(op.qp);
    std::int64_t when = op.when;
    if (by != By::when) {
      if (unit != 1) {  // a division for each directive takes longer than the rest
        if (when % static_cast<std::int64_t>(unit) != 0)
          return Error{ErrorCode::e_range, said, "not on the boundaries of the CPU's instructions"};
        when /= static_cast<std::int64_t>(unit);
      }
      when += (by == By::distance_from_end ? units : 0) - 1;
      if (when < 0) return Error{ErrorCode::e_when, said, "in front of the procedure"};
    }
    if (when >= units) return Error{ErrorCode::e_when, said, "behind the end of the procedure"};
    if (when >= INT32_MAX) return Error{ErrorCode::e_when, said, "code offset beyond 2 GiB"};
    latest = std::max(latest, when);
    if (by == By::distance_from_end)
      first_from_end = std::min(first_from_end, when);
    else
      last_from_start = std::max(last_from_start, when);
    op.when = static_cast<std::int32_t>(when);
    op.qp = _U_QP_TRUE;
    if (!number(op, *arch_)) return Error{ErrorCode::e_reg, said, "no such register, or none that directives can name"};
  }
  insn_count_ = static_cast<std::int32_t>(latest + 1);
  // A known size allows both ways of counting in any order.
  if (!has_size_ && last_from_start >= first_from_end)
    return Error{ErrorCode::e_overlap, bytes, "offsets from the end lie in front of offsets from the start"};
  return Done{};
}

}  // namespace jitunwind
