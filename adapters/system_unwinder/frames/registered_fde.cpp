#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"

#include <cstring>
#include <optional>
#include <utility>

#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {
namespace {

using Kind = RegisteredFde::Kind;

Kind found(const void* fde, Addr function, Addr data, RegisteredFde& out) noexcept {
  out = {fde, {nullptr, pointer_to(data), pointer_to(function)}};
  return Kind::found;
}

/// Begin of the FDE's procedure; `start` is that of the registered one. An FDE outside of the record is right for all
/// code that the record covers. An FDE inside has the begin as an absolute pointer (LSB 5.0 core, 10.6.1.2), or 0 if it
/// is that of a shape.
Addr function_of(const DerivedRecord& record, Addr start) noexcept {
  const std::size_t offset = address_of(record.data) - address_of(&record);
  if (offset >= sizeof record + record.size()) return record.covers.begin;
  std::uintptr_t function = 0;
  std::memcpy(&function, static_cast<const std::byte*>(record.data) + 8, sizeof function);
  return function != 0 ? function : start;
}

Kind found(const DerivedRecord& record, Addr start, RegisteredFde& out) noexcept {
  return found(record.data, function_of(record, start), record.base, out);
}

[[gnu::cold]] Kind refuse(const Error& error, Addr pc) noexcept {
  count_event(Counter::fde_refused);
  note_refusal({error.code, pc, error.what});
  return Kind::none;
}

Kind hand_out(const ProcedureHold& hold, Addr fde, AddrRange code, RegisteredFde& out) noexcept {
  DerivedRecord* const record = allocate_derived(0);
  if (record == nullptr) return found(pointer_to(fde), code.begin, hold.info()->gp, out);
  record->covers = code;
  record->data = pointer_to(fde);
  record->base = hold.info()->gp;
  return found(*publish_derived(hold, record), code.begin, out);
}

/// Hands out the FDE of a table in its place, which needs no rows. An announced FDE is not read at all: without this
/// library the unwinder would read it, too.
std::optional<Kind> hand_out_own(const ProcedureHold& hold, Addr pc, RegisteredFde& out) noexcept {
  const unw_dyn_info_t& info = *hold.info();
  if (has_told_pair(info, told_pairs.common)) return hand_out(hold, info.u.rti.segbase, code_of(info), out);
  const Arch& arch = local_space().arch;
  if (has_one_entry(info, arch)) {
    const RowCache* const rows = local_space().row_cache;
    CompactCode code;
    const Addr fde = rows ? find_known_fde(info, pc, arch, code) : 0;
    if (fde == 0 || !code.range.contains(pc) || !is_plain(code, rows->layout)) return std::nullopt;
    return hand_out(hold, fde, code.range, out);
  }
  MemoryWindow window;
  Fde fde;
  const Found own = find_own_fde(info, pc, arch, window, fde);
  if (!own || !*own || !has_common_form(fde)) return std::nullopt;
  return found(pointer_to(fde.address), fde.range.begin, info.gp, out);
}

/// Hands out the FDE of the procedure's shape.
std::optional<Kind> hand_out_shared(const ProcedureHold& hold, Addr pc, RegisteredFde& out) noexcept {
  const DerivedRecord* const shared = find_shape_fde(hold);
  if (shared == nullptr) return std::nullopt;
  share_derived(hold, shared);
  const DerivedRecord* const record = find_derived(hold, pc);
  if (record == nullptr) return std::nullopt;
  return found(*record, hold.info()->start_ip, out);
}

/// Encodes all of the procedure's code, because one run through the rows takes as long as all rows before the pc: the
/// second run is the last one. True: look up again, since there is an FDE for the pc now, or the procedure was
/// cancelled meanwhile.
bool make_stretches(Addr pc, const RegistrationKey& key, const ProcedureInfo& procedure) noexcept {
  DerivedRecord* next = encode_stretches(procedure);
  const ProcedureHold hold(pc);
  const bool lives = hold.info() && hold.key().registration == key.registration;
  while (next != nullptr) {
    DerivedRecord* const record = std::exchange(next, next->next.load(std::memory_order_relaxed));
    if (!lives || find_derived(hold, record->covers.begin) != nullptr)
      give_back_derived(record);
    else if (publish_derived(hold, record) == record)
      count_event(Counter::fde_made);
  }
  return !lives || find_derived(hold, pc) != nullptr;
}

/// A registration without a ready FDE for a pc.
struct Unready {
  RegistrationKey key;
  bool asked_once;
};

/// Finds an FDE that needs no encoding and no room. None: `unready` is set.
[[gnu::noinline]] std::optional<Kind> find_ready(Addr pc, bool others_asked, RegisteredFde& out,
                                                 Unready& unready) noexcept {
  const ProcedureHold hold(pc);
  if (hold.failed()) return refuse({ErrorCode::too_deep, pc, "look-ups of procedures nested too deeply"}, pc);
  if (!hold.info() || matches_nothing(*hold.info(), local_space().arch)) return Kind::not_registered;
  const unw_dyn_info_t& info = *hold.info();
  if (const DerivedRecord* const record = find_derived(hold, pc)) return found(*record, info.start_ip, out);
  if (!others_asked && may_have_other_personality(info)) return Kind::others_first;
  unready = {hold.key(), has_one_derived(hold)};
  return info.format == UNW_INFO_FORMAT_DYNAMIC ? hand_out_shared(hold, pc, out) : hand_out_own(hold, pc, out);
}

/// The procedure's FDE, made now and published. None: the procedure was cancelled meanwhile, or an FDE is ready now;
/// look up again.
std::optional<Kind> make(Addr pc, const Unready& unready, RegisteredFde& out) noexcept {
  ProcedureInfo procedure;
  {
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(pc), window);
    const Found known = dyn_row_source().find_procedure(lookup, procedure);
    if (!known) return refuse(known.error(), pc);
    if (!*known) return Kind::not_registered;
  }
  // The hold is released, since ALIAS may lead to sources that wait; the result may therefore belong to two procedures.
  if (unready.asked_once && make_stretches(pc, unready.key, procedure)) return std::nullopt;
  const Result<DerivedRecord*> record = encode_fde(procedure, pc);
  if (!record) return refuse(record.error(), pc);
  const ProcedureHold hold(pc);
  if (!hold.info() || hold.key().registration != unready.key.registration) {
    give_back_derived(*record);
    return std::nullopt;
  }
  count_event(Counter::fde_made);
  return found(*publish_derived(hold, *record), hold.info()->start_ip, out);
}

/// Out of line, so that lookups of other code stay fast.
[[gnu::noinline]] Kind find_or_make(Addr pc, bool others_asked, RegisteredFde& out) noexcept {
  const DerivedAnswer known = find_derived(pc);
  if (known.kind == DerivedAnswer::Kind::found) {
    count_warm_event(Counter::fde_known);
    return found(*known.record, known.start, out);
  }
  if (known.kind == DerivedAnswer::Kind::no_procedure) return Kind::not_registered;
  const ErrnoKeeper keep_errno;
  Unready unready;
  if (const std::optional<Kind> ready = find_ready(pc, others_asked, out, unready)) return *ready;
  return with_room([&] {
    constexpr int k_attempts = 8;  // each fails only because the code was cancelled under the unwinder
    for (int i = 0; i < k_attempts; ++i) {
      if (const std::optional<Kind> made = make(pc, unready, out)) return *made;
      if (const std::optional<Kind> ready = find_ready(pc, others_asked, out, unready)) return *ready;
    }
    return Kind::not_registered;
  });
}

}  // namespace

RegisteredFde::Kind find_registered_fde(const void* at, RegisteredFde& out, bool others_asked) noexcept {
  const Addr pc = address_of(at);
  if (registered_span.may_cover(at)) {
    if (const Kind kind = find_or_make(pc, others_asked, out); kind != Kind::not_registered) return kind;
  }
  if (!is_probe(at)) return Kind::not_registered;
  note_probe();
  return Kind::none;
}

}  // namespace jitunwind
