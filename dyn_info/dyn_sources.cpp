// The registered procedures of this process as sources of rows, procedures and names. Only descriptors, regions, tables
// and names are read while a hazard pointer is held. Other sources, which may take a lock of the loader, follow after
// it is released, and rows keep no pointer into the data.
#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/procedure_rows_p.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/dyn_info/row_listener_internal.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"

namespace jitunwind {
namespace {

// Procedures of this process are read from its own memory, whatever memory an address space has.
constinit const LocalMemory k_memory;

constexpr Error k_no_hold{ErrorCode::too_deep, 0, "look-ups of registered procedures nested too deeply"};

class RegisteredProcedures final : public Procedures {
 public:
  constexpr RegisteredProcedures() = default;
  [[gnu::noinline]] Result<ProcedureAnswer> ask(Addr at, Lookup& lookup, AnyRow& row,
                                                OutcomeRoom& room) const noexcept override {
    const ProcedureHold hold(at);
    if (hold.failed()) return k_no_hold;
    if (!hold.info()) return ProcedureAnswer::none;
    const unw_dyn_info_t& info = *hold.info();
    if (matches_nothing(info, lookup.space.arch)) return ProcedureAnswer::none;
    CompactCode code;
    // Nothing comes between the row and its place, because both are of what is held.
    if (row.layout) row.alike = place_of(hold, at);
    if (row.layout && find_short_row(info, at, code, row)) return ProcedureAnswer::compact;
    return ask_procedure(info, parts_of_registered(info), at, lookup, row, room);
  }
};
constexpr RegisteredProcedures k_registered;

class DynRowSource final : public AnyRowSource {
 public:
  [[gnu::hot]] RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept override {
    if (!registered_span.may_cover(lookup.at.lookup())) return RowAnswer::none;
    return jitunwind::find_row(k_registered, lookup, out);
  }
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override {
    const Addr at = lookup.at.lookup();
    const ProcedureHold hold(at);
    if (hold.failed()) return k_no_hold;
    if (!hold.info() || matches_nothing(*hold.info(), lookup.space.arch)) return false;
    const Found found = ask_procedure_info(*hold.info(), parts_of_registered(*hold.info()), at, lookup, out);
    out.user = hold.user_word();
    return found;
  }
  bool was_told_of(Addr at) const noexcept override { return may_be_registered(at); }
};

class DynNameSource final : public NameSource {
 public:
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override {
    const ProcedureHold hold(lookup.at.lookup());
    if (hold.failed()) return k_no_hold;
    if (!hold.info() || matches_nothing(*hold.info(), lookup.space.arch)) return false;
    const Addr name = hold.info()->u.pi.name_ptr;  // the first member in every format
    if (name == 0) return false;
    out.start = hold.info()->start_ip;
    return read_name(k_memory, name, into, lookup.window, out);
  }
};

constinit const DynRowSource k_rows;
constinit const DynNameSource k_names;

}  // namespace

Result<Addr> tell_registered_rows(AddrRange code, Lookup& lookup, RowListener& listener) noexcept {
  const ProcedureHold hold(code.begin);
  if (hold.failed()) return k_no_hold;
  if (!hold.info() || matches_nothing(*hold.info(), lookup.space.arch))
    return Error{ErrorCode::no_info, code.begin, "procedure without a row"};
  return tell_rows(*hold.info(), parts_of_registered(*hold.info()), code, lookup, listener);
}

[[gnu::hot]] const RowSource& dyn_row_source() noexcept { return k_rows; }
[[gnu::hot]] const NameSource& dyn_name_source() noexcept { return k_names; }

}  // namespace jitunwind
