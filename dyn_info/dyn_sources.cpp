// The registered procedures of this process as sources of rows, procedures and names. Descriptors, regions, tables and
// names are read under a hold and nothing else is: other sources, which may take a lock of the loader, are asked when
// the hold is gone, and rows keep no pointer into what was read. Tables: docs/directives.md "Table formats".
#include <algorithm>
#include <array>
#include <cstring>

#include "dyn_info/directive_outcome_p.h"
#include "dyn_info/directives.h"
#include "dyn_info/registry.h"
#include "unwind_core/address_space.h"
#include "unwind_core/memory/local.h"
#include "unwind_core/sources/cfi.h"
#include "unwind_core/sources/fde_table.h"

namespace jitunwind {
namespace {

// Procedures of this process are read from its own memory, whatever memory an address space was given.
constinit const LocalMemory k_memory;

constexpr Error k_no_hold{ErrorCode::too_deep, 0, "look-ups of registered procedures nested too deeply"};

Addr address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

/// "No match" in the table of codes.
bool matches_nothing(const unw_dyn_info_t& info, const Arch& arch) noexcept {
  return info.start_ip >= info.end_ip || (info.end_ip - info.start_ip) % arch.unit != 0;
}

struct TablePlace {
  const unw_dyn_info_t& info;
  const Arch& arch;
  MemoryWindow& window;
};

Result<FdeTable> table_of(const unw_dyn_info_t& info, const Arch& arch) noexcept {
  FdeTable table;
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
      return Error{ErrorCode::e_format, info.start_ip, "ARM index table on a CPU without"};
    default:
      return Error{ErrorCode::e_format, info.start_ip, "unknown format"};
  }
  // table_len counts words; more of them than the address space holds is no table.
  const std::uint64_t words_of_pair = 2 * table.width / arch.word_size;
  table.count = std::min<std::uint64_t>(info.u.rti.table_len / words_of_pair, ~Addr{0} / (2 * table.width));
  return table;
}

struct TableEntry {
  explicit TableEntry(const TablePlace& place) noexcept : context{place.arch} { context.data_base = place.info.gp; }
  CfiContext context;
  Fde fde;
};

/// False: no FDE of the table covers `at`. The FDE's bytes are those of the registered memory, viewed in place.
Found find_entry(const TablePlace& place, Addr at, TableEntry& out) noexcept {
  const Result<FdeTable> table = table_of(place.info, place.arch);
  if (!table) return table.error();
  FoundFde entry;
  const Result<bool> found = search(*table, at, place.arch.big_endian, k_memory, place.window, entry);
  if (!found || !*found) return found;
  MemoryView bytes(k_memory, place.window, {});
  const Result<Fde> fde = read_fde(bytes, out.context, entry.fde);
  if (!fde) return fde.error();
  out.fde = *fde;
  return out.fde.range.contains(at);
}

Found table_row(const TablePlace& place, Addr at, FrameRow& out) noexcept {
  TableEntry entry(place);
  const Found found = find_entry(place, at, entry);
  if (!found || !*found) return found;
  if (const Status row = row_at(entry.fde, entry.context, at, out); !row) return row.error();
  if (!out.own_expressions()) return Error{ErrorCode::row_too_wide, entry.fde.address, "expressions of a row"};
  out.origin = RowOrigin::dyn_table;
  return true;
}

Found table_procedure(const TablePlace& place, Addr at, ProcedureInfo& out) noexcept {
  TableEntry entry(place);
  const Found found = find_entry(place, at, entry);
  if (!found || !*found) return found;
  if (const Status s = describe(entry.fde, place.arch, k_memory, place.window, out); !s) return s.error();
  out.gp = place.info.gp;
  out.format = place.info.format;
  out.origin = RowOrigin::dyn_table;
  return true;
}

void describe_dynamic(const unw_dyn_info_t& info, ProcedureInfo& out) noexcept {
  out.range = {info.start_ip, info.end_ip};
  out.handler = info.u.pi.handler;
  out.lsda = lsda_extension(info).lsda;
  out.gp = info.gp;
  out.flags = info.u.pi.flags;
  out.format = info.format;
  out.unwind_info = address_of(&info);
  out.unwind_info_size = sizeof info;
  out.origin = RowOrigin::dyn_directives;
}

enum class Answer : std::uint8_t { none, row, directives };

/// What the newest procedure that covers `at` says: `row` complete, or the outcome of its directives.
[[gnu::noinline]] Result<Answer> ask(Addr at, Lookup& lookup, FrameRow& row, DirectiveOutcome& outcome) noexcept {
  const ProcedureHold hold(at);
  if (hold.failed()) return k_no_hold;
  const Arch& arch = lookup.space.arch;
  if (!hold.info() || matches_nothing(*hold.info(), arch)) return Answer::none;
  if (hold.info()->format == UNW_INFO_FORMAT_DYNAMIC) {
    if (const Status ran = run_directives(*hold.info(), arch, at, outcome); !ran) return ran.error();
    return Answer::directives;
  }
  const Found found = table_row({*hold.info(), arch, lookup.window}, at, row);
  if (!found) return found.error();
  return *found ? Answer::row : Answer::none;
}

class DynRowSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override;
};

/// Follows ALIAS from procedure to procedure in a loop, one hold after the other.
Found DynRowSource::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  const Arch& arch = lookup.space.arch;
  std::optional<FrameState> alias;
  Addr at = lookup.at.lookup();
  for (unsigned depth = lookup.alias_depth;; ++depth) {
    if (depth > k_max_alias_depth) return Error{ErrorCode::e_alias_depth, at, "ALIAS nested too deeply"};
    DirectiveOutcome outcome(arch);
    const Result<Answer> answer = ask(at, lookup, out, outcome);
    if (!answer) return answer.error();
    if (*answer == Answer::none) {
      if (!alias) return false;
      if (const Status s = follow_alias(*alias, lookup, depth, out); !s) return s.error();
      return true;
    }
    if (*answer == Answer::directives && outcome.state.alias()) {
      if (alias) outcome.state.add_changes(*alias);
      alias = outcome.state;
      lookup.about_other_code = true;
      at = *alias->alias();
      continue;
    }
    if (*answer == Answer::directives)
      if (const Status made = make_row(outcome, out); !made) return made.error();
    if (!alias) return true;
    if (const Status s = take_over(*alias, out); !s) return s.error();
    return true;
  }
}

Found DynRowSource::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  const Addr at = lookup.at.lookup();
  const ProcedureHold hold(at);
  if (hold.failed()) return k_no_hold;
  const Arch& arch = lookup.space.arch;
  if (!hold.info() || matches_nothing(*hold.info(), arch)) return false;
  if (hold.info()->format != UNW_INFO_FORMAT_DYNAMIC)
    return table_procedure({*hold.info(), arch, lookup.window}, at, out);
  describe_dynamic(*hold.info(), out);
  return true;
}

/// A name without an end would be read forever.
constexpr std::size_t k_max_name = 1u << 20;

class DynNameSource final : public NameSource {
 public:
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;
};

/// Any bytes up to a NUL, whatever they mean. What lies behind readable memory counts as cut off.
Found read_name(Addr at, std::span<char> into, MemoryWindow& window, ProcedureName& out) noexcept {
  std::array<std::byte, 64> chunk;
  const std::size_t room = into.size() - 1;
  bool ended = false;
  out.length = 0;
  while (!ended && out.length < k_max_name) {
    const std::size_t readable = k_memory.read(at + out.length, chunk, window);
    const auto* const end = static_cast<const std::byte*>(std::memchr(chunk.data(), 0, readable));
    const std::size_t size = end ? static_cast<std::size_t>(end - chunk.data()) : readable;
    if (out.length < room) std::memcpy(into.data() + out.length, chunk.data(), std::min(size, room - out.length));
    out.length += size;
    ended = end != nullptr;
    if (!ended && readable < chunk.size()) break;
  }
  if (!ended && out.length == 0) return Error{ErrorCode::unreadable_memory, at, "name of a procedure"};
  out.truncated = !ended || out.length > room;
  into[std::min(out.length, room)] = '\0';
  return out.length != 0;
}

Found DynNameSource::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  const ProcedureHold hold(lookup.at.lookup());
  if (hold.failed()) return k_no_hold;
  if (!hold.info() || matches_nothing(*hold.info(), lookup.space.arch)) return false;
  const Addr name = hold.info()->u.pi.name_ptr;  // the first member whatever the format
  if (name == 0) return false;
  out.start = hold.info()->start_ip;
  return read_name(name, into, lookup.window, out);
}

constinit const DynRowSource k_rows;
constinit const DynNameSource k_names;

}  // namespace

const RowSource& dyn_row_source() noexcept { return k_rows; }
const NameSource& dyn_name_source() noexcept { return k_names; }

}  // namespace jitunwind
