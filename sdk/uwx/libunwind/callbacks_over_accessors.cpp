// The callbacks of Unwind Express over libunwind's accessors. The result of find_proc_info is passed on as the engine
// reads it: an entry of a table by its address, a row by the entry that it is, directives as the frame that they make.
#include <uwx_libunwind.h>

#include <bit>
#include <cstring>
#include <new>
#include <optional>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/target_list.h"
#include "jitunwind/sdk/compat/found_info_p.h"
#include "jitunwind/sdk/uwx/answers/callbacks_p.h"
#include "jitunwind/sdk/uwx/environment_p.h"

/// The opaque structure of uwx_libunwind.h. The environment's own copy-in callback reads the target's memory.
struct uwx_accessor_info final : jitunwind::ListHead {
  uwx_accessor_info(uwx_env& env, unw_addr_space_t handle, const unw_accessors_t& given, void* passed) noexcept
      : owner(env), accessors(given), handle(handle), argument(passed), cpu(env.environment.target()) {}

  jitunwind::Result<jitunwind::Addr> list_head(std::size_t number, jitunwind::MemoryWindow&) const noexcept override {
    unw_word_t head = 0;
    if (number != 0 || !accessors.get_dyn_info_list_addr) return jitunwind::Addr{0};
    const int returned = jitunwind::checked(accessors.get_dyn_info_list_addr(handle, &head, argument));
    if (returned == -UNW_ENOINFO) return jitunwind::Addr{0};
    if (returned != UNW_ESUCCESS) return jitunwind::callback_error(returned, "get_dyn_info_list_addr");
    return jitunwind::Addr{head};
  }

  uwx_env& owner;
  unw_accessors_t accessors;
  unw_addr_space_t handle;
  void* argument;
  jitunwind::Arch cpu;
  jitunwind::uwx::Callbacks callbacks{&uwx_accessor_copyin, &uwx_accessor_lookupip,
                                      reinterpret_cast<std::intptr_t>(this)};
  jitunwind::uwx::CopyinMemory memory{callbacks, UWX_COPYIN_MSTACK, UWX_ERR_COPYIN_MSTK};
  jitunwind::NoModules no_modules;
  jitunwind::TargetList list{*this};
  jitunwind::AddressSpace space{cpu, memory, no_modules, {}, {}};

  // The current answer. The result of find_proc_info is put back when the answer is freed, not before.
  std::optional<jitunwind::FoundInfo> found;
  std::array<std::uint64_t, jitunwind::uwx::k_answer_words> answer{};
  std::array<char, 4096> name{};
};

namespace jitunwind::uwx {
namespace {

uwx_accessor_info& accessor_info_of(std::intptr_t token) noexcept {
  return *reinterpret_cast<uwx_accessor_info*>(token);
}

/// Stores the value in the target's byte order.
void give(std::uint64_t value, const Arch& arch, std::span<char, 8> into) noexcept {
  if (arch.big_endian != (std::endian::native == std::endian::big)) value = __builtin_bswap64(value);
  std::memcpy(into.data(), &value, sizeof value);
}

bool read_register(uwx_accessor_info& info, int regid, std::uint64_t& value) noexcept {
  const RegisterInfo* const reg = register_of(regid, info.cpu);
  if (!reg || reg->libunwind < 0) return false;
  if (reg->reg_class == RegClass::vector) {
    unw_fpreg_t wide;
    std::memset(&wide, 0, sizeof wide);
    const auto access = info.accessors.access_fpreg;
    if (!access || access(info.handle, reg->libunwind, &wide, 0, info.argument) != UNW_ESUCCESS) return false;
    std::memcpy(&value, &wide, sizeof value);
    return true;
  }
  unw_word_t word = 0;
  const auto access = info.accessors.access_reg;
  if (!access || access(info.handle, reg->libunwind, &word, 0, info.argument) != UNW_ESUCCESS) return false;
  value = word;
  return true;
}

bool read_word_at(uwx_accessor_info& info, Addr at, std::uint64_t& value) noexcept {
  unw_word_t word = 0;
  const auto access = info.accessors.access_mem;
  if (!access || access(info.handle, at, &word, 0, info.argument) != UNW_ESUCCESS) return false;
  value = word;
  return true;
}

int answer_entry(Addr entry, const ProcedureInfo& procedure, uwx_accessor_info& info,
                 std::uint64_t** resultp) noexcept {
  AnswerWriter answer(info.answer);
  answer.add(UWX_KEY_UINFO, entry);
  answer.add(UWX_KEY_FUNCSTART, procedure.range.begin);
  if (procedure.gp != 0) answer.add(UWX_KEY_GP, procedure.gp);
  return answer.finish(UWX_LKUP_UINFO, resultp);
}

int answer_frame(const FrameRow& row, Addr start, uwx_accessor_info& info, std::uint64_t** resultp) noexcept {
  AnswerWriter answer(info.answer);
  if (start != 0) answer.add(UWX_KEY_FUNCSTART, start);
  return answer.add_frame(row, info.cpu) ? answer.finish(UWX_LKUP_FDESC, resultp) : UWX_LKUP_ERR;
}

/// Answers with a row in this process's memory, as the entry of these bytes. copy_row() reads them until the answer is
/// freed.
int answer_row(const FoundInfo& found, const ProcedureInfo& procedure, uwx_accessor_info& info,
               std::uint64_t** resultp) noexcept {
  const auto state = found.row_state();
  if (!state) return UWX_LKUP_ERR;
  const auto entry = entry_of_row_state(*state, reinterpret_cast<std::uintptr_t>(state->data()), info.cpu);
  return entry ? answer_entry(*entry, procedure, info, resultp) : UWX_LKUP_ERR;
}

/// Copies bytes of the row, with zeros beside them, since reads of aligned words extend beyond the row. False: the read
/// is of other memory.
bool copy_row(const uwx_accessor_info& info, Addr at, std::span<char> into) noexcept {
  if (!info.found || !info.found->is_row()) return false;
  const auto state = info.found->row_state();
  if (!state) return false;
  const Addr begin = reinterpret_cast<std::uintptr_t>(state->data());
  bool is_of_row = false;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const Addr place = at + i - begin;
    const bool is_there = place < state->size();
    into[i] = is_there ? static_cast<char>((*state)[static_cast<std::size_t>(place)]) : '\0';
    is_of_row = is_of_row || is_there;
  }
  return is_of_row;
}

int answer_found(const FoundInfo& found, Lookup& lookup, uwx_accessor_info& info, std::uint64_t** resultp) noexcept {
  ProcedureInfo procedure;
  procedure.range.begin = found->start_ip;
  procedure.gp = found->gp;
  if (found.is_fde()) return answer_entry(found.fde(), procedure, info, resultp);
  if (found.is_row()) return answer_row(found, procedure, info, resultp);
  const auto descriptor = found.descriptor();
  if (!descriptor) return UWX_LKUP_ERR;
  if (descriptor->format == UNW_INFO_FORMAT_DYNAMIC) {
    FrameRow row;
    const Found made = described_row(*descriptor, lookup, row);
    if (!made) return UWX_LKUP_ERR;
    return *made ? answer_frame(row, found->start_ip, info, resultp) : UWX_LKUP_NOTFOUND;
  }
  const Found searched = described_procedure(*descriptor, lookup, procedure);
  if (!searched) return UWX_LKUP_ERR;
  return *searched ? answer_entry(procedure.unwind_info, procedure, info, resultp) : UWX_LKUP_NOTFOUND;
}

int look_up(Addr ip, uwx_accessor_info& info, std::uint64_t** resultp) noexcept {
  MemoryWindow window;
  Lookup lookup(info.space, Asked::by(*resultp).address(ip), window);
  FrameRow row;
  const Found registered = info.list.find_row(lookup, row);
  if (!registered) return UWX_LKUP_ERR;
  if (*registered) return answer_frame(row, 0, info, resultp);
  info.found.emplace(info.accessors, info.handle, lookup.at.lookup(), true, info.argument);
  const Found is_found = info.found->found();
  const int answered = !is_found   ? UWX_LKUP_ERR
                       : *is_found ? answer_found(*info.found, lookup, info, resultp)
                                   : UWX_LKUP_NOTFOUND;
  if (answered == UWX_LKUP_ERR || answered == UWX_LKUP_NOTFOUND) info.found.reset();
  return answered;
}

int look_up_name(Addr ip, uwx_accessor_info& info, std::uint64_t** resultp) noexcept {
  MemoryWindow window;
  Lookup lookup(info.space, Asked::by(*resultp).address(ip), window);
  ProcedureName name;
  if (const Found registered = info.list.find_name(lookup, info.name, name); !registered || !*registered) {
    const auto get = info.accessors.get_proc_name;
    unw_word_t offset = 0;
    const Addr at = lookup.at.lookup();
    const int returned =
        get ? checked(get(info.handle, at, info.name.data(), info.name.size(), &offset, info.argument)) : -UNW_ENOINFO;
    info.name.back() = '\0';
    if (returned == -UNW_ENOINFO) return UWX_LKUP_NOTFOUND;
    if (returned != UNW_ESUCCESS && returned != -UNW_ENOMEM) return UWX_LKUP_ERR;
    name.start = at - offset;
  }
  AnswerWriter answer(info.answer);
  answer.add(UWX_KEY_FUNC, info.name.data());
  answer.add(UWX_KEY_FUNCSTART, name.start);
  return answer.finish(UWX_LKUP_SYMINFO, resultp);
}

}  // namespace
}  // namespace jitunwind::uwx

extern "C" {

using namespace jitunwind;
using namespace jitunwind::uwx;

uwx_accessor_info* uwx_accessor_init_info(uwx_env* env, unw_addr_space_t space, const unw_accessors_t* accessors,
                                          void* argument) {
  if (!env || !accessors) return nullptr;
  void* const memory = env->environment.allocator().allocate(sizeof(uwx_accessor_info));
  return memory ? new (memory) uwx_accessor_info(*env, space, *accessors, argument) : nullptr;
}

int uwx_accessor_free_info(uwx_accessor_info* info) {
  if (!info) return UWX_OK;
  const Allocator allocator = info->owner.environment.allocator();
  info->~uwx_accessor_info();
  allocator.release(info);
  return UWX_OK;
}

int uwx_accessor_init_context(uwx_env* env, uwx_accessor_info* info) {
  if (!env) return UWX_ERR_NOENV;
  if (!env->environment.callbacks().complete()) return UWX_ERR_NOCALLBACKS;
  std::uint64_t ip = 0, sp = 0;
  if (!info || !read_register(*info, UWX_REG_IP, ip) || !read_register(*info, UWX_REG_SP, sp))
    return UWX_ERR_COPYIN_REG;
  return env->environment.begin(ip, sp);
}

int uwx_accessor_copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok) {
  uwx_accessor_info& info = accessor_info_of(tok);
  std::uint64_t value = 0;
  alignas(8) std::array<char, 8> word;
  const Addr skipped = request == UWX_COPYIN_REG ? 0 : rem % 8;
  if (len <= 0 || static_cast<std::uint64_t>(len) > 8 - skipped || request == UWX_COPYIN_RSTACK) return 0;
  if (request == UWX_COPYIN_UINFO && copy_row(info, rem, {loc, static_cast<std::size_t>(len)})) return len;
  const bool is_read = request == UWX_COPYIN_REG ? rem <= 0xffff && read_register(info, static_cast<int>(rem), value)
                                                 : read_word_at(info, rem - skipped, value);
  if (!is_read) return 0;
  give(value, info.cpu, word);
  std::memcpy(loc, word.data() + skipped, static_cast<std::size_t>(len));
  return len;
}

int uwx_accessor_lookupip(int request, std::uint64_t ip, std::intptr_t tok, std::uint64_t** resultp) {
  switch (request) {
    case UWX_LKUP_LOOKUP:
      return look_up(ip, accessor_info_of(tok), resultp);
    case UWX_LKUP_SYMBOLS:
      return look_up_name(ip, accessor_info_of(tok), resultp);
    case UWX_LKUP_MODULE:
      return UWX_LKUP_NOTFOUND;
    case UWX_LKUP_FREE:
      accessor_info_of(tok).found.reset();
      return UWX_OK;  // the vector is a part of the token
    default:
      return UWX_LKUP_ERR;
  }
}
}
