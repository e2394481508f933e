// libunwind's address spaces: their creation, their caches, and walks in them.
#include <endian.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <new>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/heap_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
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

namespace {

bool is_word(const RegisterInfo& reg) noexcept {
  return reg.column >= 0 && reg.libunwind >= 0 && reg.reg_class == RegClass::general;
}
/// Registers whose value in a frame is known; the others are scratch.
bool is_preserved_fp(const RegisterInfo& reg) noexcept {
  return reg.column >= 0 && reg.libunwind >= 0 && reg.reg_class == RegClass::vector;
}

/// The lookup is that of a frame that was interrupted there.
template <class Ask>
int ask_by_ip(unw_addr_space_t handle, unw_word_t ip, void* argument, Ask ask) noexcept {
  if (!handle) return -UNW_EINVAL;
  return with_room([&] {
    MemoryWindow window;
    window.argument = is_local(*handle) ? nullptr : argument;
    Lookup lookup(space_of(*handle).for_addresses(), CodeAddress::interrupted(ip), window);
    return ask(lookup);
  });
}

unw_addr_space_t create(const unw_accessors_t* accessors, std::size_t size, int byteorder) noexcept {
  if (!accessors) return nullptr;
  const Arch& arch = target_arch();
  if (byteorder != 0 && byteorder != __LITTLE_ENDIAN && byteorder != __BIG_ENDIAN) return nullptr;
  const bool big_endian = byteorder == 0 ? arch.big_endian : byteorder == __BIG_ENDIAN;
  if (big_endian != arch.big_endian && !arch.bi_endian) return nullptr;
  auto* const space = make_on_heap<CallbackSpace>(with_byte_order(arch, big_endian));
  if (!space) return nullptr;
  std::memcpy(&space->accessors, accessors, size);
  return space;
}

}  // namespace

int TargetRegisters::read(const RegisterInfo& reg, unw_word_t& value) const noexcept {
  const auto access = owner_->accessors.access_reg;
  return access ? checked(access(owner_, reg.libunwind, &value, false, argument_)) : -UNW_EBADREG;
}

int TargetRegisters::write(const RegisterInfo& reg, unw_word_t value) const noexcept {
  const auto access = owner_->accessors.access_reg;
  return access ? checked(access(owner_, reg.libunwind, &value, true, argument_)) : -UNW_EREADONLYREG;
}

int TargetRegisters::read(const RegisterInfo& reg, unw_fpreg_t& value) const noexcept {
  const auto access = owner_->accessors.access_fpreg;
  return access ? checked(access(owner_, reg.libunwind, &value, false, argument_)) : -UNW_EBADREG;
}

int TargetRegisters::write(const RegisterInfo& reg, unw_fpreg_t& value) const noexcept {
  const auto access = owner_->accessors.access_fpreg;
  return access ? checked(access(owner_, reg.libunwind, &value, true, argument_)) : -UNW_EREADONLYREG;
}

Result<RegisterFile> TargetRegisters::of_innermost_frame(const Arch& arch) const noexcept {
  if (!owner_->accessors.access_reg) return Error{ErrorCode::invalid_argument, 0, "access_reg"};
  RegisterFile registers;
  for (const RegisterInfo& reg : arch.registers) {
    if (is_word(reg)) {
      unw_word_t value = 0;
      const int returned = read(reg, value);
      if (returned == UNW_ESUCCESS)
        registers.set_from_register(reg.column, value, reg.dwarf);
      else if (reg.dwarf == arch.pc || reg.dwarf == arch.sp)
        return callback_error(returned, "access_reg");
    } else if (is_preserved_fp(reg)) {
      unw_fpreg_t value;
      set_to_low_half(value, 0);
      if (read(reg, value) == UNW_ESUCCESS) registers.set_from_register(reg.column, low_half(value), reg.dwarf);
    }
  }
  return registers;
}

int TargetRegisters::establish(const RegisterInfo& reg, std::uint64_t wanted) const noexcept {
  unw_word_t present = 0;
  if (read(reg, present) == UNW_ESUCCESS && present == wanted) return UNW_ESUCCESS;
  return write(reg, unw_word_t{wanted});
}

int TargetRegisters::establish_fp(const RegisterInfo& reg, std::uint64_t wanted) const noexcept {
  unw_fpreg_t present;
  set_to_low_half(present, 0);
  const int returned = read(reg, present);
  if (returned != UNW_ESUCCESS || low_half(present) == wanted) return returned;
  set_low_half(present, wanted);
  return write(reg, present);
}

int TargetRegisters::establish(const Cursor& at) const noexcept {
  const Arch& arch = at.space().arch;
  for (const RegisterInfo& reg : arch.registers) {
    auto wanted = at.registers().get(reg.column);
    if (reg.dwarf == arch.pc) wanted = at.pc();
    if (reg.dwarf == arch.sp) wanted = at.sp() + at.pushed_arguments();
    int returned = UNW_ESUCCESS;
    if (wanted && is_word(reg)) returned = establish(reg, *wanted);
    if (wanted && is_preserved_fp(reg)) returned = establish_fp(reg, *wanted);
    if (returned != UNW_ESUCCESS) return returned;
  }
  return UNW_ESUCCESS;
}
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

using jitunwind::CallbackSpace;

unw_addr_space_t unw_create_addr_space(unw_accessors_t* accessors, int byteorder) {
  return jitunwind::create(accessors, sizeof *accessors, byteorder);
}

unw_addr_space_t UNW_OBJ(create_addr_space)(unw_accessors_t* accessors, int byteorder) {
  return jitunwind::create(accessors, offsetof(unw_accessors_t, get_elf_filename), byteorder);
}

void unw_destroy_addr_space(unw_addr_space_t handle) {
  if (handle && !jitunwind::is_local(*handle)) jitunwind::destroy_on_heap(static_cast<CallbackSpace*>(handle));
}

unw_accessors_t* unw_get_accessors(unw_addr_space_t handle) {
  if (!handle) handle = jitunwind::local_handle();
  return handle ? &handle->accessors : nullptr;
}

int unw_init_remote(unw_cursor_t* cursor, unw_addr_space_t handle, void* argument) {
  if (!handle) return -UNW_EINVAL;
  if (jitunwind::is_local(*handle)) return unw_init_local(cursor, static_cast<unw_context_t*>(argument));
  const jitunwind::AddressSpace& space = jitunwind::space_of(*handle);
  const auto registers = jitunwind::TargetRegisters(*handle, argument).of_innermost_frame(space.arch);
  if (!registers) return jitunwind::negated(registers.error());
  static_cast<CallbackSpace*>(handle)->know_address_bits(argument);
  new (cursor) jitunwind::Cursor(space, *registers, jitunwind::Cursor::Top::interrupted, argument);
  return UNW_ESUCCESS;
}

int unw_set_caching_policy(unw_addr_space_t handle, unw_caching_policy_t policy) {
  if (!handle || (policy != UNW_CACHE_NONE && policy != UNW_CACHE_GLOBAL && policy != UNW_CACHE_PER_THREAD))
    return -UNW_EINVAL;
  const auto before = handle->policy.exchange(policy, std::memory_order_acq_rel);
  if (jitunwind::is_local(*handle)) jitunwind::choose_space_of_process();
  if (policy == UNW_CACHE_NONE && before != UNW_CACHE_NONE) unw_flush_cache(handle, 0, 0);
  return UNW_ESUCCESS;
}

void unw_flush_cache(unw_addr_space_t handle, unw_word_t lo, unw_word_t hi) {
  if (!handle) return;
  if (!jitunwind::is_local(*handle)) return static_cast<CallbackSpace*>(handle)->head.flush();
  const bool everything = lo == 0 && hi == 0;
  if (everything) jitunwind::forget_walked_stacks();
  if (everything || lo < hi) jitunwind::forget_rows(everything ? 0 : lo, everything ? UNW_WORD_MAX : hi);
}

int unw_get_proc_info_by_ip(unw_addr_space_t handle, unw_word_t ip, unw_proc_info_t* info, void* argument) {
  std::memset(info, 0, sizeof *info);
  return jitunwind::ask_by_ip(handle, ip, argument, [&](jitunwind::Lookup& lookup) {
    jitunwind::ProcedureInfo found;
    const jitunwind::Found known = lookup.space.find_procedure(lookup, found);
    return jitunwind::answer(known, found, *info);
  });
}

int unw_set_cache_size(unw_addr_space_t handle, size_t size, int flag) {
  if (!handle || flag != 0) return -UNW_EINVAL;
  unw_flush_cache(handle, 0, 0);
  // No rows of other targets are kept.
  return !jitunwind::is_local(*handle) || jitunwind::keep_at_least(size) ? int{UNW_ESUCCESS} : -UNW_ENOMEM;
}

int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t handle, unw_word_t ip, unw_dyn_info_t* descriptor,
                                       unw_proc_info_t* info, int need_unwind_info, void* argument) {
  return jitunwind::ask_by_ip(handle, ip, argument, [&](jitunwind::Lookup& lookup) {
    jitunwind::ProcedureInfo found;
    const auto known = jitunwind::described_procedure(*descriptor, lookup, found);
    const int returned = jitunwind::answer(known, found, *info);
    if (returned == UNW_ESUCCESS && need_unwind_info) jitunwind::mark_as_fde(*info);
    return returned;
  });
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(set_cache_size)
JITUNWIND_LOCAL(dwarf_search_unwind_table)
JITUNWIND_ALIAS(UNW_OBJ(search_unwind_table), UNW_OBJ(dwarf_search_unwind_table))
JITUNWIND_LOCAL(create_addr_space)
JITUNWIND_LOCAL(create_addr_space2)
JITUNWIND_LOCAL(destroy_addr_space)
JITUNWIND_LOCAL(init_remote)
JITUNWIND_LOCAL(set_caching_policy)
JITUNWIND_LOCAL(get_proc_info_by_ip)
}
