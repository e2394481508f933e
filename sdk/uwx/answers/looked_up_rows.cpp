#include <algorithm>
#include <array>

#include "jitunwind/sdk/uwx/environment_p.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

namespace jitunwind::uwx {
namespace {

constexpr std::uint32_t k_most_entries = 1u << 20;  // entries of an .eh_frame without a table

/// A procedure that has called is no leaf: a leaf's row would read another word of its stack.
Found leaf(const Lookup& lookup, int status, const char* what, FrameRow& out) noexcept {
  if (lookup.at.is_return_address()) return failure(status, what);
  out = entry_row(lookup.space.arch);
  out.origin = RowOrigin::callback;
  return true;
}

Question lookup_question(CodeAddress at) noexcept {
  Question question;
  if (at.is_return_address()) question.add(UWX_KEY_CALLER, 1);
  return question;
}

CodeAddress remapped(CodeAddress at, Addr to) noexcept {
  return at.is_return_address() ? CodeAddress::returned_to(to) : CodeAddress::interrupted(to);
}

/// Empty: the vector has no NEWIP.
Result<std::optional<Addr>> read_new_ip(const Answer& answer) noexcept {
  std::optional<Addr> to;
  const Status read = answer.for_each([&](std::uint64_t key, std::uint64_t value) {
    if (key == UWX_KEY_NEWIP) to = value;
    return key == UWX_KEY_NEWIP;
  });
  if (!read) return read.error();
  return to;
}

/// An entry of .eh_frame in memory: its length (LSB 5.0 core, 10.6.1) and the fields after it.
struct EntryHead {
  Addr next = 0;  ///< 0: this ends the section
  bool is_cie = false;
};
Result<EntryHead> read_head(Addr at, const Memory& memory, MemoryWindow& window, bool big_endian) noexcept {
  constexpr std::uint32_t k_extended = 0xffffffff;
  Addr content = at + 4;
  auto length = read_unsigned(memory, window, at, 4, big_endian, "length of an entry");
  if (length && *length == k_extended) {
    content = at + 12;
    length = read_unsigned(memory, window, at + 4, 8, big_endian, "length of an entry");
  }
  if (!length) return length.error();
  if (*length == 0) return EntryHead{};
  const auto id = read_unsigned(memory, window, content, 4, big_endian, "kind of an entry");
  if (!id) return id.error();
  if (*length > ~Addr{0} - content) return Error{ErrorCode::bad_structure, at, "length of an entry"};
  return EntryHead{content + *length, *id == 0};
}

}  // namespace

Found LookedUpRows::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  CodeAddress at = lookup.at;
  Question question = lookup_question(at);
  const Answer first(callbacks_, UWX_LKUP_LOOKUP, at.value(), question);
  FrameFacts facts;
  Found found = false;
  if (first.kind() == UWX_LKUP_REMAP) {
    const auto to = read_new_ip(first);
    if (!to) return to.error();
    if (!*to) return failure(UWX_ERR_BADKEY, "no address to remap to");
    at = remapped(at, **to);
    Question again = lookup_question(at);
    const Answer second(callbacks_, UWX_LKUP_LOOKUP, at.value(), again);
    found = row_of(second, at, lookup, out, facts);
    facts.func_start = 0;  // it is of other code
    facts.code = {};
    if (found) listener_.know(facts);
  } else {
    found = row_of(first, at, lookup, out, facts);
    if (found) listener_.know(facts);
  }
  return found;
}

Found LookedUpRows::row_of(const Answer& answer, CodeAddress at, Lookup& lookup, FrameRow& out,
                           FrameFacts& facts) const noexcept {
  const auto frame_of = [&](const Table& table) -> Found {
    facts.text_base = table.text_base.value_or(0);
    AddrRange code;
    const Found found = row_by_table(table, at, lookup, out, code);
    if (!found || code.empty()) return found;
    if (facts.func_start == 0) facts.func_start = code.begin;
    facts.code = code;
    if (out.signal_frame) facts.context = UWX_ABI_CONTEXT_SIGNAL;
    out.origin = RowOrigin::callback;
    return found;
  };
  switch (answer.kind()) {
    case UWX_LKUP_NOTFOUND:
      return leaf(lookup, UWX_ERR_IPNOTFOUND, "nothing knows this code", out);
    case UWX_LKUP_FDESC: {
      const Status read = read_frame(answer, lookup.space.arch, out, facts);
      if (!read) return read.error();
      out.origin = RowOrigin::callback;
      return true;
    }
    case UWX_LKUP_UTABLE: {
      const auto table = read_table(answer, facts);
      if (!table) return table.error();
      if (!table->text_base || !table->begin || !table->end || *table->end < *table->begin || table->entry)
        return failure(UWX_ERR_BADKEY, "unwind table without its bounds");
      return frame_of(*table);
    }
    case UWX_LKUP_UINFO: {
      const auto table = read_table(answer, facts);
      if (!table) return table.error();
      if (!table->entry || table->begin || table->end) return failure(UWX_ERR_BADKEY, "no unwind information block");
      return frame_of(*table);
    }
    default:
      return failure(UWX_ERR_LOOKUPERR, "lookup-ip callback");
  }
}

Result<LookedUpRows::Table> LookedUpRows::read_table(const Answer& answer, FrameFacts& facts) noexcept {
  Table table;
  const Status read = answer.for_each([&](std::uint64_t key, std::uint64_t value) {
    switch (key) {
      case UWX_KEY_TBASE:
        return table.text_base = value, true;
      case UWX_KEY_UFLAGS:
        table.flags = value;
        return value == UWX_UFLAGS_EH_FRAME_HDR || value == UWX_UFLAGS_EH_FRAME;
      case UWX_KEY_USTART:
        return table.begin = value, true;
      case UWX_KEY_UEND:
        return table.end = value, true;
      case UWX_KEY_UINFO:
        return table.entry = value, true;
      case UWX_KEY_GP:
        return table.gp = value, true;
      case UWX_KEY_FUNCSTART:
        return facts.func_start = value, true;
      case UWX_KEY_MODULE:
        return facts.module_name = value, true;
      case UWX_KEY_FUNC:
        return facts.func_name = value, true;
      default:
        return false;
    }
  });
  if (!read) return read.error();
  return table;
}

Found LookedUpRows::row_by_table(const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out,
                                 AddrRange& code) const noexcept {
  if (table.entry) return row_by_entry(*table.entry, table, at, lookup, out, code);
  if (table.flags == UWX_UFLAGS_EH_FRAME) return row_by_scan(table, {*table.begin, *table.end}, at, lookup, out, code);
  return row_by_search(table, at, lookup, out, code);
}

Found LookedUpRows::row_by_search(const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out,
                                  AddrRange& code) const noexcept {
  const Arch& arch = lookup.space.arch;
  const std::uint64_t size = *table.end - *table.begin;
  std::array<std::byte, k_max_eh_frame_hdr> head;
  const auto wanted = std::span(head).first(static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), size)));
  if (tables_.read(*table.begin, wanted, lookup.window) != wanted.size())
    return unreadable(lookup.window, *table.begin, "unwind table");
  const auto hdr = parse_eh_frame_hdr({wanted, *table.begin}, size, arch);
  if (!hdr) return hdr.error();
  if (hdr->table.count == 0) return row_by_scan(table, {hdr->eh_frame, ~Addr{0}}, at, lookup, out, code);
  const CfiContext context = table.context(arch);
  bool has_entry = false;
  const auto covers = [&](Addr entry) {
    has_entry = true;
    return own_row_of_entry(entry, context, at.lookup(), entries_, lookup.window, out, code);
  };
  const Found found = find_covering(hdr->table, at.lookup(), covers, arch.big_endian, tables_, lookup.window);
  if (!found || *found) return found;
  if (!has_entry) return leaf(lookup, UWX_ERR_NOUENTRY, "the unwind table has no entry", out);
  return leaf(lookup, UWX_ERR_NOUDESC, "the unwind table's entry is for other code", out);
}

Found LookedUpRows::row_by_scan(const Table& table, AddrRange entries, CodeAddress at, Lookup& lookup, FrameRow& out,
                                AddrRange& code) const noexcept {
  const CfiContext context = table.context(lookup.space.arch);
  Addr entry = entries.begin;
  for (std::uint32_t seen = 0; entry < entries.end; ++seen) {
    if (seen == k_most_entries) return Error{ErrorCode::too_deep, entry, "entries of .eh_frame without a table"};
    const auto head = read_head(entry, entries_, lookup.window, context.arch.big_endian);
    if (!head) return head.error();
    if (head->next == 0) break;
    if (!head->is_cie) {
      const Found found = own_row_of_entry(entry, context, at.lookup(), entries_, lookup.window, out, code);
      if (!found || *found) return found;
    }
    entry = head->next;
  }
  return leaf(lookup, UWX_ERR_NOUENTRY, "the unwind table has no entry", out);
}

Found LookedUpRows::row_by_entry(Addr entry, const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out,
                                 AddrRange& code) const noexcept {
  const CfiContext context = table.context(lookup.space.arch);
  const Found found = own_row_of_entry(entry, context, at.lookup(), entries_, lookup.window, out, code);
  if (!found || *found) return found;
  return leaf(lookup, UWX_ERR_NOUDESC, "the unwind table's entry is for other code", out);
}

}  // namespace jitunwind::uwx
