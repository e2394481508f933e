#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/sdk/exceptions/fde_writer_p.h"
#include "jitunwind/unwind_core/emit/row_state.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"

namespace jitunwind {
namespace {

/// A lookup does not tell how far a row holds that comes from an ALIAS: every instruction unit needs a lookup. This is
/// the limit of their number.
constexpr unsigned k_max_lookups = 4096;

constexpr Error k_too_much_alias{ErrorCode::e_alias_depth, 0, "code that is described by ALIAS is too long"};
constexpr Error k_no_row{ErrorCode::no_info, 0, "procedure without a row"};

}  // namespace

void FdeWriter::begin(const FrameRow& first) noexcept {
  // Only a personality routine reads language-specific data.
  const bool has_lsda = procedure_.handler != 0 && procedure_.lsda != 0;
  const std::int64_t data_alignment = slots_ == Slots::of_bytes ? -1 : 0;
  const bool by_b = first.signing_key == SigningKey::b;
  writer_.begin_cie({procedure_.handler, has_lsda, first.signal_frame, by_b, first.ra, data_alignment});
  fde_at_ = writer_.size();
  writer_.begin_fde(procedure_.range, procedure_.lsda);
  started_ = true;
}

bool FdeWriter::put(Addr at, const FrameRow& row) noexcept {
  if (!started_) begin(row);
  if (const Status written = writer_.row(at - procedure_.range.begin, row); !written) {
    const bool slots = slots_ == Slots::of_words && written.error().code == ErrorCode::invalid_argument;
    return end(slots ? Outcome::other_slots : Outcome::failed, written.error());
  }
  return writer_.size() <= most_ || end(Outcome::too_long);
}

bool FdeWriter::row(const FrameRow& row) noexcept {
  in_gap_ = false;
  cfa_ = row.cfa.kind == CfaRule::Kind::expression ? CfaRule{} : row.cfa;  // its bytes are borrowed
  ra_ = row.ra;
  signal_frame_ = row.signal_frame;
  return put(row.range.begin, row);
}

/// Code without a row has no caller. Its CFA and return column are those of the row before, or else those of the entry.
bool FdeWriter::no_row(AddrRange code, const Error& why) noexcept {
  if (code.contains(pc_)) return end(Outcome::failed, why);
  if (in_gap_) return true;
  in_gap_ = true;
  FrameRow outermost = entry_row(local_space().arch);
  if (cfa_.kind != CfaRule::Kind::none) outermost.cfa = cfa_;
  if (ra_ != k_no_reg) outermost.ra = ra_;
  outermost.signal_frame = signal_frame_;
  outermost.clear_rules();
  (void)outermost.set(outermost.ra, RegRule::undefined());
  return put(code.begin, outermost);
}

/// Looks up one row; returns the place where the next one may be.
Addr FdeWriter::look_up(Addr at) noexcept {
  if (++lookups_ > k_max_lookups) {
    if (!in_gap_) (void)end(Outcome::too_long, k_too_much_alias);
    return code_.end;
  }
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
  FrameRow row;
  const Found found = dyn_row_source().find_row(lookup, row);
  behind_alias_ = !found || !*found || !row.range.contains(at);
  const AddrRange here{at, std::min(code_.end, behind_alias_ ? at + local_space().arch.unit : row.range.end)};
  if (found && *found) {
    row.range = here;
    (void)this->row(row);
  } else {
    (void)no_row(here, found ? k_no_row : found.error());
  }
  return here.end;
}

FdeWriter::Outcome FdeWriter::write() noexcept {
  for (Addr at = code_.begin; at < code_.end && going_on();) {
    if (behind_alias_) {
      at = look_up(at);
      continue;
    }
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
    const Result<Addr> told = tell_registered_rows({at, code_.end}, lookup, *this);
    if (!told) return end(Outcome::failed, told.error()), outcome_;
    at = *told;
    behind_alias_ = true;
  }
  return finish();
}

FdeWriter::Outcome FdeWriter::finish() noexcept {
  if (!going_on()) return outcome_;
  writer_.end_fde();
  writer_.terminate();
  if (writer_.size() > most_) (void)end(Outcome::too_long);
  return outcome_;
}

namespace {

// The unwinder runs through an FDE up to the pc for each frame, and memory for it is mapped before it is requested. A
// procedure that needs more than one record therefore has one for each stretch of its code that is looked up.
constexpr std::size_t k_record_bytes = 4096 - sizeof(DerivedRecord);
constexpr std::size_t k_small_record_bytes = 256 - sizeof(DerivedRecord);  // enough for most
constexpr Addr k_stretch = 512;

using Ending = FdeWriter::Outcome;

struct Encoded {
  Ending outcome = Ending::failed;
  DerivedRecord* record = nullptr;
  Error error{};
};

void complete(DerivedRecord& record, AddrRange code, const FdeWriter& writer, const ProcedureInfo& procedure) noexcept {
  record.covers = code;
  record.data = record.bytes() + writer.fde_at();
  record.base = procedure.gp;
}

/// Encodes in a record that grows until the entries fit into it. `write` writes them.
template <class Write>
Encoded encode(const ProcedureInfo& procedure, AddrRange code, Addr pc, Slots slots, Write write) noexcept {
  for (std::size_t bytes = k_small_record_bytes;;) {
    DerivedRecord* const record = allocate_derived(bytes);
    if (record == nullptr)
      return {Ending::failed, nullptr, {ErrorCode::out_of_memory, pc, "no memory for call frame information"}};
    FdeWriter writer(procedure, code, pc, slots, std::span(record->bytes(), record->size()), k_record_bytes);
    const Ending outcome = write(writer);
    if (outcome == Ending::written && writer.fits()) {
      complete(*record, code, writer, procedure);
      return {outcome, record, {}};
    }
    give_back_derived(record);
    if (outcome != Ending::written) return {outcome, nullptr, writer.error()};
    if (writer.size() <= bytes)
      return {Ending::failed, nullptr, {ErrorCode::invalid_argument, pc, "call frame information of changing length"}};
    bytes = writer.size();
  }
}

Encoded encode(const ProcedureInfo& procedure, AddrRange code, Addr pc, Slots slots) noexcept {
  return encode(procedure, code, pc, slots, [](FdeWriter& writer) { return writer.write(); });
}

/// The stretch of that size that contains `pc`.
AddrRange stretch_around(Addr pc, Addr size, AddrRange procedure) noexcept {
  const Addr begin = pc - (pc - procedure.begin) % size;
  return {begin, std::min(begin + size, procedure.end)};
}

/// Writes the records of one stretch after the other, in one run through the rows.
class StretchesWriter final : public RowListener {
 public:
  explicit StretchesWriter(const ProcedureInfo& procedure) noexcept
      : procedure_(procedure), scratch_(allocate_derived(k_record_bytes)) {}
  ~StretchesWriter() {
    if (scratch_ != nullptr) give_back_derived(scratch_);
  }
  StretchesWriter(const StretchesWriter&) = delete;
  StretchesWriter& operator=(const StretchesWriter&) = delete;

  DerivedRecord* write() noexcept {
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(procedure_.range.begin), window);
    if (scratch_ != nullptr) (void)tell_registered_rows(procedure_.range, lookup, *this);
    return first_;
  }

  bool row(const FrameRow& row) noexcept override {
    FrameRow part = row;
    return each_part(row.range, [&](AddrRange here) { return part.range = here, writer_->row(part); });
  }
  bool no_row(AddrRange code, const Error& why) noexcept override {
    return each_part(code, [&](AddrRange here) { return writer_->no_row(here, why); });
  }

 private:
  static constexpr std::size_t k_full = k_record_bytes - RowState::k_most;  // longer rows are not kept

  template <class Tell>
  bool each_part(AddrRange range, Tell tell) noexcept {
    while (range.begin < range.end) {
      if (range.begin >= stretch_.end) begin(range.begin);
      const AddrRange part{range.begin, std::min(range.end, stretch_.end)};
      if (writer_ && !tell(part)) give_up();
      range.begin = part.end;
      if (writer_ && writer_->size() > k_full) stretch_.end = part.end;
      if (part.end == stretch_.end && writer_ && !end()) return false;
    }
    return true;
  }
  /// Begins a stretch. It ends where the record of a lookup would end, unless its record is full before that.
  void begin(Addr at) noexcept {
    constexpr Addr k_nobody_asks = 0;
    stretch_ = {at, stretch_around(at, k_stretch, procedure_.range).end};
    writer_.emplace(procedure_, stretch_, k_nobody_asks, slots_, std::span{scratch_->bytes(), scratch_->size()},
                    k_record_bytes);
  }
  /// The rest of the stretch has no record until a lookup makes one. If its slots were the reason, there may be more
  /// such stretches: they get slots of bytes.
  void give_up() noexcept {
    if (writer_->outcome() == Ending::other_slots) slots_ = Slots::of_bytes;
    writer_.reset();
  }
  /// False: there is no memory.
  bool end() noexcept {
    if (writer_->finish() != Ending::written || !writer_->fits()) return give_up(), true;
    DerivedRecord* const record = allocate_derived(writer_->size());
    if (record == nullptr) return false;
    std::memcpy(record->bytes(), scratch_->bytes(), writer_->size());
    complete(*record, stretch_, *writer_, procedure_);
    record->next.store(nullptr, std::memory_order_relaxed);
    if (last_ != nullptr) last_->next.store(record, std::memory_order_relaxed);
    if (last_ == nullptr) first_ = record;
    last_ = record;
    writer_.reset();
    return true;
  }

  const ProcedureInfo& procedure_;
  DerivedRecord* const scratch_;  // records are copied from it, since entries do not depend on their address
  Slots slots_ = Slots::of_words;
  AddrRange stretch_{};
  std::optional<FdeWriter> writer_;  // none: the rest of the stretch has no record
  DerivedRecord* first_ = nullptr;
  DerivedRecord* last_ = nullptr;
};

/// Writes rows into an FDE up to the first gap.
class RowsWithoutGaps final : public RowListener {
 public:
  explicit RowsWithoutGaps(FdeWriter& writer) noexcept : writer_(writer) {}
  bool row(const FrameRow& row) noexcept override { return writer_.row(row); }
  bool no_row(AddrRange, const Error&) noexcept override { return has_gap_ = true, false; }
  bool has_gap() const noexcept { return has_gap_; }

 private:
  FdeWriter& writer_;
  bool has_gap_ = false;
};

/// An unpublished record of the FDE of the code from 0 to `end`. `info` is a procedure that begins at 0 and may end
/// later. Null: some of that code has no row, the FDE is too long, or there is no memory. Signal-safe.
DerivedRecord* encode_shape(const unw_dyn_info_t& info, Addr end) noexcept {
  ProcedureInfo procedure;
  procedure.range = {0, end};
  const DescriptionParts parts{LocalRegionReader(), local_space().memory, local_space().memory, {}};
  const auto write = [&](FdeWriter& writer) {
    RowsWithoutGaps rows(writer);
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(0), window);
    const bool whole = tell_rows(info, parts, procedure.range, lookup, rows) == end && !rows.has_gap();
    const Ending outcome = writer.finish();
    return whole || outcome != Ending::written ? outcome : Ending::failed;
  };
  Encoded encoded = encode(procedure, procedure.range, 0, Slots::of_words, write);
  if (encoded.outcome == Ending::other_slots) encoded = encode(procedure, procedure.range, 0, Slots::of_bytes, write);
  if (encoded.record == nullptr) return nullptr;
  encoded.record->covers = {0, end - info.end_ip};
  return encoded.record;
}

}  // namespace

Result<DerivedRecord*> encode_fde(const ProcedureInfo& procedure, Addr pc) noexcept {
  AddrRange code = procedure.range;
  for (Addr size = k_stretch;; size /= 2) {
    Encoded encoded = encode(procedure, code, pc, Slots::of_words);
    if (encoded.outcome == Ending::other_slots) encoded = encode(procedure, code, pc, Slots::of_bytes);
    if (encoded.outcome == Ending::written) return encoded.record;
    if (encoded.outcome == Ending::other_slots)
      return Error{ErrorCode::invalid_argument, pc, "call frame information cannot say this"};
    const bool less_may_do = encoded.outcome == Ending::too_long || encoded.error.code == ErrorCode::out_of_memory;
    while (size >= code.size()) size /= 2;
    if (!less_may_do || size < local_space().arch.unit) {
      if (encoded.outcome == Ending::too_long)
        return Error{ErrorCode::row_too_wide, pc, "call frame information of one row is too long"};
      return encoded.error;
    }
    code = stretch_around(pc, size, procedure.range);
  }
}

DerivedRecord* encode_stretches(const ProcedureInfo& procedure) noexcept { return StretchesWriter(procedure).write(); }

/// One FDE for all procedures of a shape. The unwinder gets the function's begin beside the FDE, and reads neither
/// begin nor size of the code in the FDE (libgcc: uw_frame_state_for() takes dwarf_eh_bases::func). So such an FDE is
/// right for any code. It covers the code in front of a region that is counted from the end.
const DerivedRecord* find_shape_fde(const ProcedureHold& hold) noexcept {
  const unw_dyn_info_t& info = *hold.info();
  if (info.u.pi.handler != 0 || info.gp != 0) return nullptr;
  CodeShape* const shape = find_shape(hold);
  if (shape == nullptr) return nullptr;
  const DerivedRecord* known = shape->fde.load(std::memory_order_acquire);
  // A larger distance between two rows would be written as DW_CFA_set_loc, which has an address of its own.
  if (known != nullptr || shape->front >= std::numeric_limits<std::uint32_t>::max() || !has_room_for_shared())
    return known;
  // The last unit need not exist: it only gives the last row before the tail a place.
  const Addr end = (shape->front + 1) << shape->unit_bits;
  unw_dyn_info_t alike{};  // no copy: writers change the list's links meanwhile
  alike.end_ip = end + (shape->tail << shape->unit_bits);
  alike.format = info.format;
  alike.u.pi = info.u.pi;
  DerivedRecord* const made = with_room([&] { return encode_shape(alike, end); });
  if (made == nullptr) return nullptr;
  if (shape->fde.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return count_shared(*made), made;
  give_back_derived(made);
  return known;
}

}  // namespace jitunwind
