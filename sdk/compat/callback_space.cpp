#include "jitunwind/sdk/compat/callback_space_p.h"

#include <array>
#include <cstring>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

CallbackParts::CallbackParts(const Arch& target) noexcept
    : cpu(target), memory_of_target(*this, cpu), sources({.registered = &list, .answers = &procedures}) {}

void CallbackParts::know_address_bits(void* argument) noexcept {
  if (!accessors.ptrauth_insn_mask || cpu.address_mask == ~Addr{0}) return;
  // Not std::call_once(), which needs the C++ run-time library.
  ::pthread_mutex_lock(&asks_for_address_bits);
  if (!knows_address_bits) cpu.address_mask = ~Addr{accessors.ptrauth_insn_mask(this, argument)};
  knows_address_bits = true;
  ::pthread_mutex_unlock(&asks_for_address_bits);
}

bool CallbackMemory::access(Addr at, unw_word_t& value, bool write, MemoryWindow& window) const noexcept {
  const auto access_mem = owner_.accessors.access_mem;
  const int returned = access_mem ? checked(access_mem(&owner_, at, &value, write, window.argument)) : -UNW_EINVAL;
  if (returned != UNW_ESUCCESS) window.failure = returned;
  return returned == UNW_ESUCCESS;
}

namespace {

/// The byte at an offset in the target's order, of a word in host order.
constexpr unsigned shift_of(Addr offset, const Arch& arch) noexcept {
  const Addr from_low = arch.big_endian ? arch.word_size - 1 - offset : offset;
  return static_cast<unsigned>(8 * from_low);
}

}  // namespace

std::size_t CallbackMemory::read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept {
  const Addr word = arch_.word_size;
  window.failure = 0;
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    if (next < at) break;
    unw_word_t value = 0;
    if (!access(next & ~(word - 1), value, false, window)) break;
    for (Addr offset = next % word; offset < word && done < into.size(); ++offset, ++done)
      into[done] = static_cast<std::byte>(value >> shift_of(offset, arch_));
  }
  return done;
}

bool CallbackMemory::write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept {
  const Addr word = arch_.word_size;
  window.failure = 0;
  if (at % word != 0 || from.size() != word) return false;  // access_mem has no smaller unit
  unw_word_t value = 0;
  for (Addr offset = 0; offset < word; ++offset)
    value |= std::to_integer<unw_word_t>(from[static_cast<std::size_t>(offset)]) << shift_of(offset, arch_);
  return access(at, value, true, window);
}

namespace {

/// The row of a marked answer.
Found row_of_fde(const FoundInfo& found, Lookup& lookup, FrameRow& out) noexcept {
  CfiContext context{lookup.space.arch};
  context.data_base = found->gp;
  AddrRange code;
  return own_row_of_entry(found.fde(), context, lookup.at.lookup(), lookup.space.memory, lookup.window, out, code);
}

Found row_of_answer(const FoundInfo& found, Lookup& lookup, FrameRow& out) noexcept {
  if (found.is_row()) {
    const Status row = found.row(lookup.space.arch, out);
    return row ? Found(true) : Found(row.error());
  }
  if (found.is_fde()) return row_of_fde(found, lookup, out);
  const auto info = found.descriptor();
  if (!info) return info.error();
  return described_row(*info, lookup, out);
}

}  // namespace

Found CallbackProcedures::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  const FoundInfo answer(owner_.accessors, &owner_, lookup.at.lookup(), true, lookup.window.argument);
  const Found found = answer.found();
  if (!found || !*found) return found;
  const Found row = row_of_answer(answer, lookup, out);
  if (row && *row) {
    out.origin = RowOrigin::callback;
    out.keeps_by = KeepsBy::nothing;
  }
  return row;
}

Found CallbackProcedures::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  const FoundInfo answer(owner_.accessors, &owner_, lookup.at.lookup(), false, lookup.window.argument);
  const Found found = answer.found();
  if (!found) return found;
  if (!*found) return find_range(lookup, out);
  out = {};
  out.range = {answer->start_ip, answer->end_ip};
  out.handler = answer->handler;
  out.lsda = answer->lsda;
  out.gp = answer->gp;
  out.flags = static_cast<std::uint32_t>(answer->flags);
  out.origin = RowOrigin::callback;
  return true;
}

Found CallbackProcedures::find_range(Lookup& lookup, ProcedureInfo& out) const noexcept {
  const auto get = owner_.accessors.get_proc_ip_range;
  if (!get) return false;
  unw_word_t start = 0, end = 0;
  const int returned = checked(get(&owner_, lookup.at.lookup(), &start, &end, lookup.window.argument));
  if (returned == -UNW_ENOINFO) return false;
  if (returned != UNW_ESUCCESS) return callback_error(returned, "get_proc_ip_range");
  out = {};
  out.range = {start, end};
  out.origin = RowOrigin::callback;
  return true;
}

Found CallbackNames::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  const auto get = owner_.accessors.get_proc_name;
  if (!get) return false;
  std::array<char, 1> no_room;
  if (into.empty()) into = no_room;
  unw_word_t offset = 0;
  const Addr at = lookup.at.lookup();
  const int returned = checked(get(&owner_, at, into.data(), into.size(), &offset, lookup.window.argument));
  into.back() = '\0';
  if (returned == -UNW_ENOINFO) return false;
  if (returned != UNW_ESUCCESS && returned != -UNW_ENOMEM) return callback_error(returned, "get_proc_name");
  out.start = at - offset;
  out.length = std::strlen(into.data());
  out.truncated = returned == -UNW_ENOMEM;
  return true;
}

Result<Addr> CallbackListHead::list_head(std::size_t number, MemoryWindow& window) const noexcept {
  const auto get = owner_.accessors.get_dyn_info_list_addr;
  if (!get || number != 0) return Addr{0};
  const bool keeps = owner_.policy.load(std::memory_order_acquire) != UNW_CACHE_NONE;
  const std::uint64_t flushes = flushes_.load(std::memory_order_acquire);
  Addr known = 0;
  if (keeps && kept_.find(flushes, known)) return known;
  unw_word_t head = 0;
  const int returned = checked(get(&owner_, &head, window.argument));
  if (returned == -UNW_ENOINFO) return Addr{0};
  if (returned != UNW_ESUCCESS) return callback_error(returned, "get_dyn_info_list_addr");
  if (keeps) kept_.keep(flushes, head);
  return Addr{head};
}

int answer(const Found& known, const ProcedureInfo& from, unw_proc_info_t& to) noexcept {
  if (!known) return negated(known.error());
  if (!*known) return -UNW_ENOINFO;
  std::memset(&to, 0, sizeof to);
  fill(from, to);
  return UNW_ESUCCESS;
}

int negated(const Error& error) noexcept {
  const int returned = callback_result(error);
  return returned != 0 ? returned : -unw_error(error.code);
}

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
