
#include <algorithm>
#include <array>
#include <cstring>

#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/procedure_rows_internal.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

namespace jitunwind {
namespace {

/// Reads the table as in docs/directives.md "Table formats". Returns null, or why there is none.
[[gnu::always_inline]] inline const char* read_table(const unw_dyn_info_t& info, const Arch& arch,
                                                     FdeTable& table) noexcept {
  table.start_base = table.fde_base = info.u.rti.segbase;
  table.address = info.u.rti.table_data;
  switch (info.format) {
    case UNW_INFO_FORMAT_TABLE:
      table.address = address_of(info.u.ti.table_data);
      break;
    case UNW_INFO_FORMAT_REMOTE_TABLE:
      break;
    case UNW_INFO_FORMAT_REMOTE_TABLE_64:
      table.width = 8;
      break;
    case UNW_INFO_FORMAT_IP_OFFSET:
      table.start_base = info.start_ip;
      break;
    case UNW_INFO_FORMAT_ARM_EXIDX:
      return "ARM index table on a CPU without";
    default:
      return "unknown format";
  }
  // table_len counts words, of which a pair has one, two or four. The address space has no room for more.
  const bool is_wide = table.width == 8;
  const std::uint64_t pairs = info.u.rti.table_len >> (is_wide + (arch.word_size == 4));
  table.count = std::min<std::uint64_t>(pairs, ~Addr{0} >> (3 + is_wide));
  return nullptr;
}

struct TableEntry {
  TableEntry(const unw_dyn_info_t& info, const Arch& arch) noexcept : context{arch} { context.data_base = info.gp; }
  CfiContext context;
  Fde fde;
};

/// Returns false when no FDE of the table covers `at`.
Found find_entry(const unw_dyn_info_t& info, const DescriptionParts& parts, Addr at, MemoryWindow& window,
                 TableEntry& out) noexcept {
  const Arch& arch = out.context.arch;
  FdeTable table;
  if (const char* const mistake = read_table(info, arch, table))
    return Error{ErrorCode::e_format, info.start_ip, mistake};
  MemoryView bytes(parts.entries, window, parts.buffer);
  const auto covers = [&](Addr fde) { return read_fde_for(at, bytes, out.context, fde, out.fde); };
  return find_covering(table, at, covers, arch.big_endian, parts.tables, window);
}

/// The function is separate from that of directives, so that their stacks do not add up.
[[gnu::noinline]] Result<ProcedureAnswer> table_row(const unw_dyn_info_t& info, const DescriptionParts& parts, Addr at,
                                                    Lookup& lookup, AnyRow& out) noexcept {
  TableEntry entry(info, lookup.space.arch);
  const Found found = find_entry(info, parts, at, lookup.window, entry);
  if (!found) return found.error();
  if (!*found) return ProcedureAnswer::none;
  const bool is_compact = out.layout && find_compact_row(entry.fde, *out.layout, at, out.compact, out.full.range);
  if (!is_compact) {
    out.alike = {};  // other instructions may have addresses of their own
    if (const Status row = row_at(entry.fde, entry.context, at, out.full); !row) return row.error();
    if (!out.full.own_expressions()) return Error{ErrorCode::row_too_wide, entry.fde.address, "expressions of a row"};
  }
  out.full.origin = RowOrigin::dyn_table;
  out.full.keeps_by = KeepsBy::code;
  return is_compact ? ProcedureAnswer::compact : ProcedureAnswer::full;
}

void read_dynamic_procedure(const unw_dyn_info_t& info, const RegionReader& regions, ProcedureInfo& out) noexcept {
  out.range = code_of(info);
  out.handler = info.u.pi.handler;
  out.lsda = lsda_extension(regions, address_of(info.u.pi.regions)).lsda;
  out.gp = info.gp;
  out.flags = info.u.pi.flags;
  out.unwind_info = address_of(&info);
  out.unwind_info_size = sizeof info;
  out.origin = RowOrigin::dyn_directives;
}

/// A name without an end would be read forever.
constexpr std::size_t k_max_name = 1u << 20;

/// Passes the rows, which `rows` puts into `row`, as far as there are any, and then the reason why there is none.
[[gnu::noinline]] Result<Addr> tell_each(CfiProgram& rows, const FrameRow& row, AddrRange code,
                                         RowListener& listener) noexcept {
  Addr at = code.begin;
  while (at < code.end) {
    const Result<bool> next = rows.next_behind(at);
    if (!next) return Error{next.error().code, at, next.error().what};
    if (!*next || !row.range.contains(at)) return Error{ErrorCode::no_info, at, "address outside of the FDE"};
    FrameRow told = row;  // `row` must stay as it is
    told.range = {at, std::min(row.range.end, code.end)};
    told.origin = RowOrigin::dyn_table;
    at = told.range.end;
    if (!listener.row(told)) break;
  }
  return at;
}

template <class Rows>
[[gnu::noinline]] Result<Addr> tell_fde_rows(const TableEntry& entry, AddrRange code, RowListener& listener) noexcept {
  FrameRow row;
  Rows rows(entry.fde, entry.context, row);
  return tell_each(rows, row, code, listener);
}

[[gnu::noinline]] Addr tell_table_rows(const unw_dyn_info_t& info, const DescriptionParts& parts, AddrRange code,
                                       Lookup& lookup, RowListener& listener) noexcept {
  TableEntry entry(info, lookup.space.arch);
  const auto none = [&](Addr at, const Error& why) { return (void)listener.no_row({at, code.end}, why), code.end; };
  const Found found = find_entry(info, parts, code.begin, lookup.window, entry);
  if (!found) return none(code.begin, found.error());
  if (!*found) return none(code.begin, {ErrorCode::no_info, code.begin, "no FDE of the table covers the address"});
  const Addr known_end = std::min(entry.fde.range.end, code.end);
  Result<Addr> told = tell_fde_rows<FdeRowsOfFewStates>(entry, {code.begin, known_end}, listener);
  if (!told && told.error().code == ErrorCode::too_deep)
    told = tell_fde_rows<FdeRows>(entry, {told.error().at, known_end}, listener);
  return told ? *told : none(told.error().at, told.error());
}

[[gnu::noinline]] Addr tell_directive_rows(const unw_dyn_info_t& info, const DescriptionParts& parts, AddrRange code,
                                           const Arch& arch, RowListener& listener) noexcept {
  DirectiveRun run(parts.regions, address_of(info.u.pi.regions), code_of(info), arch);
  FrameRow row;
  for (Addr at = code.begin; at < code.end;) {
    DirectiveOutcome outcome(arch);
    if (const Status ran = run.go_to(at, outcome); !ran)
      return (void)listener.no_row({at, code.end}, ran.error()), code.end;
    if (outcome.state.alias()) return at;
    const AddrRange here{at, std::min(outcome.range.end, code.end)};
    const Status made = make_row(outcome, row);
    row.range = here;
    at = here.end;
    if (made ? !listener.row(row) : !listener.no_row(here, made.error())) return at;
  }
  return code.end;
}

}  // namespace

Result<ProcedureAnswer> ask_procedure(const unw_dyn_info_t& info, const DescriptionParts& parts, Addr at,
                                      Lookup& lookup, AnyRow& row, OutcomeRoom& room) noexcept {
  if (info.format != UNW_INFO_FORMAT_DYNAMIC) return table_row(info, parts, at, lookup, row);
  const AddrRange code = code_of(info);
  const Arch& arch = lookup.space.arch;
  const Status ran = run_directives(parts.regions, address_of(info.u.pi.regions), code, arch, at, room.make(arch));
  if (!ran) return ran.error();
  row.full.keeps_by = KeepsBy::code;
  return ProcedureAnswer::directives;
}

Found ask_procedure_info(const unw_dyn_info_t& info, const DescriptionParts& parts, Addr at, Lookup& lookup,
                         ProcedureInfo& out) noexcept {
  out.format = info.format;
  if (info.format == UNW_INFO_FORMAT_DYNAMIC) {
    read_dynamic_procedure(info, parts.regions, out);
    return true;
  }
  const Arch& arch = lookup.space.arch;
  TableEntry entry(info, arch);
  const Found found = find_entry(info, parts, at, lookup.window, entry);
  if (!found || !*found) return found;
  if (const Status s = read_procedure(entry.fde, arch, parts.entries, lookup.window, out); !s) return s.error();
  out.gp = info.gp;
  out.format = info.format;
  out.origin = RowOrigin::dyn_table;
  return true;
}

Addr tell_rows(const unw_dyn_info_t& info, const DescriptionParts& parts, AddrRange code, Lookup& lookup,
               RowListener& listener) noexcept {
  code.end = std::min(code.end, Addr{info.end_ip});
  if (info.format != UNW_INFO_FORMAT_DYNAMIC) return tell_table_rows(info, parts, code, lookup, listener);
  return tell_directive_rows(info, parts, code, lookup.space.arch, listener);
}

[[gnu::cold]] Found read_name(const Memory& memory, Addr at, std::span<char> into, MemoryWindow& window,
                              ProcedureName& out) noexcept {
  // The name is read by aligned words. No word lies both within the memory that has the name's end and outside of it.
  std::array<std::byte, sizeof(std::uint64_t)> word;
  const std::size_t room = into.empty() ? 0 : into.size() - 1;
  bool ended = false;
  out.length = 0;
  while (!ended && out.length < k_max_name) {
    const auto chunk = std::span(word).first(word.size() - static_cast<std::size_t>((at + out.length) % word.size()));
    const std::size_t readable = memory.read(at + out.length, chunk, window);
    const auto* const end = static_cast<const std::byte*>(std::memchr(chunk.data(), 0, readable));
    const std::size_t size = end ? static_cast<std::size_t>(end - chunk.data()) : readable;
    if (out.length < room) std::memcpy(into.data() + out.length, chunk.data(), std::min(size, room - out.length));
    out.length += size;
    ended = end != nullptr;
    if (!ended && readable < chunk.size()) break;
  }
  if (!ended && out.length == 0) return unreadable(window, at, "name of a procedure");
  out.truncated = !ended || out.length > room;
  if (!into.empty()) into[std::min(out.length, room)] = '\0';
  return out.length != 0;
}

RowAnswer find_row(const Procedures& procedures, Lookup& lookup, AnyRow& out) noexcept {
  OutcomeRoom alias_room;
  FrameState* alias = nullptr;
  const auto done = [&out](const Status& s) { return s ? RowAnswer::full : out.fail(s.error()); };
  Addr at = lookup.at.lookup();
  for (unsigned depth = lookup.alias_depth;; ++depth) {
    if (depth > k_max_alias_depth) return out.fail({ErrorCode::e_alias_depth, at, "ALIAS nested too deeply"});
    OutcomeRoom room;
    const Result<ProcedureAnswer> answer = procedures.ask(at, lookup, out, room);
    if (!answer) return out.fail(answer.error());
    if (*answer == ProcedureAnswer::compact) return RowAnswer::compact;
    if (*answer == ProcedureAnswer::none)
      return alias ? done(follow_alias(*alias, lookup, depth, out.full)) : RowAnswer::none;
    if (*answer == ProcedureAnswer::directives && room.outcome.state.alias()) {
      if (alias) room.outcome.state.add_changes(*alias);
      alias = &std::construct_at(&alias_room.outcome, room.outcome)->state;
      at = *alias->alias();
      out.layout = nullptr;  // what it leads to is not the row
      continue;
    }
    if (*answer == ProcedureAnswer::directives)
      if (const Status made = make_row(room.outcome, out.full); !made) return out.fail(made.error());
    return alias ? done(take_over(*alias, out.full)) : RowAnswer::full;
  }
}

Found find_row(const Procedures& procedures, Lookup& lookup, FrameRow& out) noexcept {
  AnyRow row(out);
  return row.found(find_row(procedures, lookup, row));
}

namespace {

/// Memory of this process that the registration of a procedure promises to be readable (docs/contracts.md): no system
/// call proves it. Constant-initialised, signal-safe.
class PromisedMemory final : public Memory {
 public:
  constexpr PromisedMemory() = default;
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    std::memcpy(into.data(), host(at), into.size());
    return into.size();
  }
  const std::byte* view(Addr at, std::size_t, MemoryWindow&) const noexcept override { return host(at); }

 private:
  static const std::byte* host(Addr at) noexcept {
    return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(at));
  }
};

/// Procedures of this process are read from its own memory, whatever memory an address space has.
constinit const LocalMemory k_host_memory;
constinit const PromisedMemory k_promised_memory;
constexpr LocalRegionReader k_host_regions;

/// The parts of a descriptor in host memory.
struct HostParts {
  HostParts(const unw_dyn_info_t& info, const Memory& target) noexcept
      : pairs(info.format == UNW_INFO_FORMAT_TABLE ? static_cast<const Memory&>(k_host_memory) : target),
        parts{k_host_regions, pairs, target, buffer} {}
  const Memory& pairs;
  std::array<std::byte, 4096> buffer;
  DescriptionParts parts;
};

/// A set of one procedure, which the caller has found.
class OneProcedure final : public Procedures {
 public:
  explicit OneProcedure(const unw_dyn_info_t& info) noexcept : info_(info) {}
  [[gnu::noinline]] Result<ProcedureAnswer> ask(Addr at, Lookup& lookup, AnyRow& row,
                                                OutcomeRoom& room) const noexcept override {
    if (at != lookup.at.lookup()) return ProcedureAnswer::none;  // the address that an alias leads to
    const HostParts host(info_, lookup.space.memory);
    return ask_procedure(info_, host.parts, at, lookup, row, room);
  }

 private:
  const unw_dyn_info_t& info_;
};

}  // namespace

constinit const ToldPairs told_pairs{};

DescriptionParts parts_of_registered(const unw_dyn_info_t& info) noexcept {
  const Memory& entries = was_told(info) ? static_cast<const Memory&>(k_host_memory) : k_promised_memory;
  return {k_host_regions, k_promised_memory, entries, {}};
}

Addr find_known_fde(const unw_dyn_info_t& info, Addr at, const Arch& arch, CompactCode& out) noexcept {
  FdeTable table;
  if (read_table(info, arch, table) != nullptr || table.count != 1) return 0;
  const auto* const bytes = pointer_to<const std::byte>(table.address);
  std::array<std::int32_t, 2> halves;
  std::memcpy(&halves, bytes, sizeof halves);
  std::array<std::int64_t, 2> pair{halves[0], halves[1]};
  if (table.width != 4) std::memcpy(&pair, bytes, sizeof pair);
  if (table.start_base + static_cast<Addr>(pair[0]) > at) return 0;
  const Addr fde = table.fde_base + static_cast<Addr>(pair[1]);
  if (!was_told(info)) return read_promised_fde(fde, arch, out) ? fde : 0;
  MemoryWindow window;
  return read_known_fde(fde, k_host_memory, window, arch, out) ? fde : 0;
}

bool find_short_row(const unw_dyn_info_t& info, Addr at, CompactCode& code, AnyRow& out) noexcept {
  const bool is_table = info.format != UNW_INFO_FORMAT_DYNAMIC;
  if (is_table && !code.known && find_known_fde(info, at, out.layout->arch(), code) == 0) return false;
  if (is_table ? !code.range.contains(at) || !find_compact_row(code, *out.layout, at, out.compact, out.full.range)
               : !find_compact_row(info, *out.layout, at, out.compact, out.full.range))
    return false;
  out.full.origin = is_table ? RowOrigin::dyn_table : RowOrigin::dyn_directives;
  out.full.keeps_by = KeepsBy::code;
  return true;
}

bool has_one_entry(const unw_dyn_info_t& info, const Arch& arch) noexcept {
  FdeTable table;
  return read_table(info, arch, table) == nullptr && table.count == 1;
}

bool has_common_form(const Fde& fde) noexcept {
  const auto is_long = [](Addr entry) {
    std::uint32_t length = 0;
    std::memcpy(&length, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(entry)), sizeof length);
    return length == 0xffffffffu;
  };
  // LSB 5.0 core, 10.5.1: absolute or fixed size, not aligned. libgcc aborts at the others (size_of_encoded_value()).
  const unsigned form = fde.cie.pointer_encoding & 0x07u;
  const bool has_size = form == 0 || (form >= 2 && form <= 4);
  const bool aligned = (fde.cie.pointer_encoding & 0x70u) == 0x50;
  return has_size && !aligned && !is_long(fde.address) && !is_long(fde.cie.address) && !fde.cie.signed_with_b_key;
}

Found find_own_fde(const unw_dyn_info_t& info, Addr at, const Arch& arch, MemoryWindow& window, Fde& out) noexcept {
  TableEntry entry(info, arch);
  const Found found = find_entry(info, parts_of_registered(info), at, window, entry);
  if (found && *found) out = entry.fde;
  return found;
}

Found described_procedure(const unw_dyn_info_t& info, Lookup& lookup, ProcedureInfo& out) noexcept {
  const HostParts host(info, lookup.space.memory);
  return ask_procedure_info(info, host.parts, lookup.at.lookup(), lookup, out);
}

Found described_row(const unw_dyn_info_t& info, Lookup& lookup, FrameRow& out) noexcept {
  return find_row(OneProcedure(info), lookup, out);
}

namespace {

// The registered procedures of this process as sources of rows, procedures and names. Only descriptors, regions, tables
// and names are read while a hazard pointer is held. Other sources, which may take a lock of the loader, follow after
// it is released, and rows keep no pointer into the data.

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
    return read_name(k_host_memory, name, into, lookup.window, out);
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
