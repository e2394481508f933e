#include "jitunwind/sdk/fde_encoder_p.h"

#include <cstdint>
#include <cstring>
#include <optional>

#include "jitunwind/dyn_info/directives.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"

namespace jitunwind {
namespace {

/// So many look-ups at most: where a look-up does not tell how far its row holds, behind an ALIAS, every instruction
/// unit needs one.
constexpr unsigned k_max_lookups = 4096;

/// The rows of a procedure in ascending order.
class RowReader {
 public:
  RowReader(const ProcedureInfo& procedure, Addr pc) noexcept : procedure_(procedure), pc_(pc) {}

  /// False at the end. Error: the one of the row at pc; too long.
  Result<bool> next() noexcept {
    if (at_ == 0) at_ = procedure_.range.begin;
    for (const AddrRange& code = procedure_.range; at_ < code.end;) {
      if (++lookups_ > k_max_lookups) return in_gap_ ? Result<bool>(false) : Error{k_too_long};
      const Addr here = at_;
      const Found found = look_up(here);
      at_ = row_.range.contains(here) ? row_.range.end : here + local_space().arch.unit;
      if (found && *found) {
        in_gap_ = false;
        begin_ = here;
        last_ = row_;
        return true;
      }
      if (pc_ >= here && pc_ < at_) return found ? Error{k_no_row} : found.error();
      if (in_gap_) continue;
      in_gap_ = true;
      begin_ = here;
      make_outermost();
      return true;
    }
    return false;
  }
  Addr begin() const noexcept { return begin_; }
  const FrameRow& row() const noexcept { return last_; }

 private:
  static constexpr Error k_too_long{ErrorCode::e_alias_depth, 0, "code that is described by ALIAS is too long"};
  static constexpr Error k_no_row{ErrorCode::no_info, 0, "procedure without a row"};

  Found look_up(Addr at) noexcept {
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
    row_.range = {};
    return dyn_row_source().find_row(lookup, row_);
  }

  /// Whatever the row was before; without one, that of the entry.
  void make_outermost() noexcept {
    const Arch& arch = local_space().arch;
    if (last_.cfa.kind == CfaRule::Kind::none) last_ = entry_row(arch);
    (void)last_.set(last_.ra == k_no_reg ? arch.ra : last_.ra, RegRule::undefined());
  }

  const ProcedureInfo& procedure_;
  const Addr pc_;
  Addr at_ = 0;
  Addr begin_ = 0;
  unsigned lookups_ = 0;
  bool in_gap_ = false;
  FrameRow row_;
  FrameRow last_;
};

enum class Slots : std::uint8_t { of_words, of_bytes };

/// True: written as far as there is room. False: not with such slots.
Result<bool> write(const ProcedureInfo& procedure, Addr pc, Slots slots, EhFrameWriter& writer,
                   std::size_t& fde_at) noexcept {
  RowReader rows(procedure, pc);
  bool started = false;
  for (;;) {
    const Result<bool> next = rows.next();
    if (!next) return next.error();
    if (!*next) break;
    const FrameRow& row = rows.row();
    if (!started) {
      // Nobody reads language-specific data but a personality routine.
      const bool has_lsda = procedure.handler != 0 && procedure.lsda != 0;
      const std::int64_t data_alignment = slots == Slots::of_bytes ? -1 : 0;
      writer.begin_cie({procedure.handler, has_lsda, row.signal_frame, row.ra, data_alignment});
      fde_at = writer.size();
      writer.begin_fde(procedure.range, procedure.lsda);
      started = true;
    }
    if (const Status written = writer.row(rows.begin() - procedure.range.begin, row); !written) {
      if (slots == Slots::of_words && written.error().code == ErrorCode::invalid_argument) return false;
      return written.error();
    }
  }
  if (!started) return Error{ErrorCode::no_info, pc, "procedure without a row"};
  writer.end_fde();
  writer.terminate();
  return true;
}

/// None: not with such slots.
Result<DerivedRecord*> encode(const ProcedureInfo& procedure, Addr pc, Slots slots) noexcept {
  std::size_t bytes = 4 * 64 - sizeof(DerivedRecord);  // enough for most
  for (;;) {
    DerivedRecord* const record = allocate_derived(bytes);
    if (record == nullptr) return Error{ErrorCode::out_of_memory, pc, "no memory for call frame information"};
    EhFrameWriter writer(local_space().arch, {record->bytes(), record->size()});
    std::size_t fde_at = 0;
    const Result<bool> written = write(procedure, pc, slots, writer, fde_at);
    if (written && *written && writer.fits()) {
      record->covers = procedure.range;
      record->data = record->bytes() + fde_at;
      record->base = procedure.gp;
      return record;
    }
    const bool too_large = !writer.fits() && writer.size() > bytes;
    bytes = writer.size();
    give_back_derived(record);
    if (!written) return written.error();
    if (!*written) return nullptr;
    if (!too_large) return Error{ErrorCode::invalid_argument, pc, "call frame information of changing length"};
  }
}

}  // namespace

Result<DerivedRecord*> encode_fde(const ProcedureInfo& procedure, Addr pc) noexcept {
  const Result<DerivedRecord*> usual = encode(procedure, pc, Slots::of_words);
  if (!usual || *usual != nullptr) return usual;
  const Result<DerivedRecord*> unaligned = encode(procedure, pc, Slots::of_bytes);
  if (unaligned && *unaligned == nullptr)
    return Error{ErrorCode::invalid_argument, pc, "call frame information cannot say this"};
  return unaligned;
}

namespace {

std::size_t entry_size(const std::byte* entry) noexcept {
  std::uint32_t length = 0;
  std::memcpy(&length, entry, sizeof length);
  return sizeof length + length;
}

class RecordGuard {
 public:
  explicit RecordGuard(DerivedRecord* record) noexcept : record_(record) {}
  ~RecordGuard() { give_back_derived(record_); }
  RecordGuard(const RecordGuard&) = delete;
  RecordGuard& operator=(const RecordGuard&) = delete;

 private:
  DerivedRecord* const record_;
};

}  // namespace

void encode_fdes(AddrRange code, FdeReceiver& receiver) {
  const Addr unit = local_space().arch.unit;
  for (Addr at = code.begin; at < code.end;) {
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
    ProcedureInfo info;
    const Found found = dyn_row_source().find_procedure(lookup, info);
    if (!found) return receiver.refused({found.error().code, at, found.error().what});
    if (!*found || !info.range.contains(at)) {
      at += unit;
      continue;
    }
    const Result<DerivedRecord*> record = encode_fde(info, at);
    at = info.range.end;
    if (!record) {
      receiver.refused({record.error().code, info.range.begin, record.error().what});
      continue;
    }
    const RecordGuard guard(*record);
    const std::byte* const cie = (*record)->bytes();
    const std::size_t size = entry_size(cie) + entry_size(cie + entry_size(cie));
    receiver.fde(info.range, {cie, size});
  }
}

}  // namespace jitunwind
