#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"

#include <cstring>
#include <optional>
#include <utility>

#include "jitunwind/adapters/system_unwinder/probe_p.h"
#include "jitunwind/adapters/system_unwinder/refusals_p.h"
#include "jitunwind/builders/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {
namespace {

using Kind = RegisteredFde::Kind;

Kind found(const void* fde, Addr function, Addr data, RegisteredFde& out) noexcept {
  out = {fde, {nullptr, pointer_to(data), pointer_to(function)}};
  return Kind::found;
}

/// Begin of the procedure, which the record may cover in part only: the first pointer of the FDE, which has the
/// absolute form (LSB 5.0 core, 10.6.1.2).
Addr function_of(const DerivedRecord& record) noexcept {
  Addr function = 0;
  std::memcpy(&function, static_cast<const std::byte*>(record.data) + 8, sizeof function);
  return function;
}

Kind found(const DerivedRecord& record, RegisteredFde& out) noexcept {
  return found(record.data, function_of(record), record.base, out);
}

Kind refuse(const Error& error, Addr pc) noexcept {
  count_event(Counter::fde_refused);
  note_refusal({error.code, pc, error.what});
  return Kind::none;
}

/// A table with more than one entry has an FDE for each of many procedures.
bool has_many_entries(const unw_dyn_info_t& info) noexcept {
  if (info.format == UNW_INFO_FORMAT_DYNAMIC) return false;
  const std::size_t entry = info.format == UNW_INFO_FORMAT_REMOTE_TABLE_64 ? 16 : 8;
  return info.u.rti.table_len > entry / local_space().arch.word_size;
}

/// Whether every reader of .eh_frame understands the FDE in its place. The 64-bit form of LSB 5.0, 10.6, and pointers
/// relative to text are not understood by all.
bool can_be_handed_out(const ProcedureInfo& procedure) noexcept {
  MemoryWindow window;
  MemoryView bytes(local_space().memory, window, {});
  CfiContext context{local_space().arch};
  context.data_base = procedure.gp;
  const auto fde = read_fde(bytes, context, procedure.unwind_info);
  if (!fde) return false;
  constexpr std::uint64_t k_largest = 0xfffffff0u;
  const auto length = bytes.view(fde->address, 4);
  const bool extended =
      length && std::to_integer<int>((*length)[0]) == 0xff && std::to_integer<int>((*length)[3]) == 0xff;
  return !extended && fde->size < k_largest && fde->cie.size < k_largest && !fde->cie.signed_with_b_key;
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

/// The procedure's FDE, made now and published. None: the procedure was cancelled meanwhile; look up again.
std::optional<Kind> make(Addr pc, bool others_asked, RegisteredFde& out) noexcept {
  RegistrationKey key;
  bool many = false, asked_once = false;
  {
    const ProcedureHold hold(pc);
    if (hold.failed()) return refuse({ErrorCode::too_deep, pc, "look-ups of procedures nested too deeply"}, pc);
    if (!hold.info()) return Kind::not_registered;
    if (const DerivedRecord* const record = find_derived(hold, pc)) return found(*record, out);
    if (!others_asked && may_have_other_personality(*hold.info())) return Kind::others_first;
    key = hold.key();
    many = has_many_entries(*hold.info());
    asked_once = has_one_derived(hold);
  }
  ProcedureInfo procedure;
  {
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(pc), window);
    const Found known = dyn_row_source().find_procedure(lookup, procedure);
    if (!known) return refuse(known.error(), pc);
    if (!*known) return Kind::not_registered;
  }
  if (many && can_be_handed_out(procedure))
    return found(pointer_to(procedure.unwind_info), procedure.range.begin, procedure.gp, out);
  // The hold is released, since ALIAS may lead to sources that wait; the result may therefore belong to two procedures.
  if (asked_once && make_stretches(pc, key, procedure)) return std::nullopt;
  const Result<DerivedRecord*> record = encode_fde(procedure, pc);
  if (!record) return refuse(record.error(), pc);
  const ProcedureHold hold(pc);
  if (!hold.info() || hold.key().registration != key.registration) {
    give_back_derived(*record);
    return std::nullopt;
  }
  count_event(Counter::fde_made);
  return found(*publish_derived(hold, *record), out);
}

/// Out of line, so that lookups of other code stay fast.
[[gnu::noinline]] Kind find_or_make(Addr pc, bool others_asked, RegisteredFde& out) noexcept {
  const DerivedAnswer known = find_derived(pc);
  if (known.kind == DerivedAnswer::Kind::found) {
    count_warm_event(Counter::fde_known);
    return found(*known.record, out);
  }
  if (known.kind == DerivedAnswer::Kind::no_procedure) return Kind::not_registered;
  const ErrnoKeeper keep_errno;
  return with_room([&] {
    constexpr int k_attempts = 8;  // each fails only because the code was cancelled under the unwinder
    std::optional<Kind> made;
    for (int i = 0; i < k_attempts && !made; ++i) made = make(pc, others_asked, out);
    return made.value_or(Kind::not_registered);
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
