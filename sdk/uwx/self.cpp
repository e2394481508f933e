// Unwind Express for the calling thread: the engine's knowledge of this process, as answers to the callbacks' requests.
#include "jitunwind/sdk/uwx/environment_p.h"

#include <cstring>
#include <new>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind::uwx {
namespace {

uwx_self_info& info_of(std::intptr_t token) noexcept { return *reinterpret_cast<uwx_self_info*>(token); }

/// Answers for a registered procedure with the frame that its row makes.
int answer_registered(const FrameRow& row, Lookup& lookup, uwx_self_info& info, std::uint64_t** resultp) noexcept {
  AnswerWriter answer(info.answer);
  ProcedureInfo procedure;
  if (const Found known = dyn_row_source().find_procedure(lookup, procedure); known && *known)
    answer.add(UWX_KEY_FUNCSTART, procedure.range.begin);
  if (!answer.add_frame(row, lookup.space.arch)) return UWX_LKUP_ERR;
  return answer.finish(UWX_LKUP_FDESC, resultp);
}

int answer_module(Lookup& lookup, uwx_self_info& info, std::uint64_t** resultp) noexcept {
  const Module* module = lookup.module();
  std::uint64_t flags = UWX_UFLAGS_EH_FRAME_HDR;
  SectionBytes table = module->eh_frame_hdr;
  if (table.empty()) {
    flags = UWX_UFLAGS_EH_FRAME;
    module = lookup.module_with_file_sections();
    table = module->eh_frame;
  }
  if (table.empty()) return UWX_LKUP_NOTFOUND;
  AnswerWriter answer(info.answer);
  answer.add(UWX_KEY_TBASE, module->range.begin);
  answer.add(UWX_KEY_UFLAGS, flags);
  answer.add(UWX_KEY_USTART, table.address);
  answer.add(UWX_KEY_UEND, table.address + table.bytes.size());
  return answer.finish(UWX_LKUP_UTABLE, resultp);
}

int look_up(Addr ip, uwx_self_info& info, std::uint64_t** resultp) noexcept {
  MemoryWindow window;
  Lookup lookup(local_space(), Asked::by(*resultp).address(ip), window);
  FrameRow row;
  const Found registered = dyn_row_source().find_row(lookup, row);
  if (!registered) return UWX_LKUP_ERR;
  if (*registered) return answer_registered(row, lookup, info, resultp);
  if (lookup.module()) return answer_module(lookup, info, resultp);
  const Found trampoline = signal_frame_source().find_row(lookup, row);
  if (!trampoline || !*trampoline) return UWX_LKUP_NOTFOUND;
  AnswerWriter answer(info.answer);
  answer.add(UWX_KEY_CONTEXT, UWX_ABI_CONTEXT_SIGNAL);
  return answer.finish(UWX_LKUP_FDESC, resultp);
}

/// Null: there is no name, or no memory.
const char* name_at(CodeAddress at, uwx_self_info& info, ProcedureName& found) noexcept {
  std::array<char, 1> none;
  if (!find_local_name(at, none, found)) return nullptr;
  const auto into = info.strings.room(found.length + 1);
  return !into.empty() && find_local_name(at, into, found) ? into.data() : nullptr;
}

const char* path_of(const Module& module, uwx_self_info& info) noexcept {
  const ModuleFinder& modules = local_space().for_addresses().modules;
  const std::size_t length = modules.copy_path(module, {});
  const auto into = length == 0 ? std::span<char>() : info.strings.room(length + 1);
  return !into.empty() && modules.copy_path(module, into) != 0 ? into.data() : nullptr;
}

/// Answers with positions of static code, if its file has any.
bool answer_source(CodeAddress at, int inline_context, const Module& module, const char* path, uwx_self_info& info,
                   AnswerWriter& answer) noexcept {
  const auto file = info.files.find(path);
  if (!file) return false;
  const SourcePosition found = (*file)->position(at.lookup() - module.load_bias, inline_context);
  if (found.inlined) answer.add(UWX_KEY_INLINED_FUNC, found.inlined);
  if (found.file) answer.add(UWX_KEY_SRCFILE, found.file);
  answer.add(UWX_KEY_LINENUM, static_cast<std::uint64_t>(found.line));
  answer.add(UWX_KEY_INLINE, static_cast<std::uint64_t>(found.context));
  return true;
}

int look_up_names(int request, Addr ip, uwx_self_info& info, std::uint64_t** resultp) noexcept {
  const Asked asked = Asked::by(*resultp);
  const CodeAddress at = asked.address(ip);
  info.strings.clear();
  AnswerWriter answer(info.answer);
  Module module;
  const bool has_module = local_space().for_addresses().modules.find(at.lookup(), module);
  const char* const path = has_module ? path_of(module, info) : nullptr;
  if (path) {
    answer.add(UWX_KEY_MODULE, path);
    answer.add(UWX_KEY_TBASE, module.range.begin);
  }
  const char* name = nullptr;
  if (request == UWX_LKUP_SYMBOLS) {
    ProcedureName found;
    name = name_at(at, info, found);
    if (name) {
      answer.add(UWX_KEY_FUNC, name);
      answer.add(UWX_KEY_FUNCSTART, found.start);
    }
    if (path && info.wants_source) (void)answer_source(at, asked.inline_context, module, path, info, answer);
  }
  return path || name ? answer.finish(UWX_LKUP_SYMINFO, resultp) : UWX_LKUP_NOTFOUND;
}

/// The registers of the calling frame, as a context of their own, because saved values may be overwritten at any
/// moment.
RegisterFile values_of(const Cursor& frame) noexcept {
  RegisterFile values;
  for (const RegisterInfo& reg : frame.space().arch.registers)
    if (const auto value = frame.registers().get(reg.column)) values.set_from_register(reg.column, *value, reg.dwarf);
  return values;
}

}  // namespace
}  // namespace jitunwind::uwx

extern "C" {

using namespace jitunwind;
using namespace jitunwind::uwx;

uwx_self_info* uwx_self_init_info(uwx_env* env) {
  if (!env) return nullptr;
  void* const memory = env->environment.allocator().allocate(sizeof(uwx_self_info));
  if (!memory) return nullptr;
  auto* const info = new (memory) uwx_self_info(*env);
  env->environment.set_self(info);
  return info;
}

int uwx_self_free_info(uwx_self_info* info) {
  if (!info) return UWX_OK;
  Environment& environment = info->owner.environment;
  if (environment.self() == info) environment.set_self(nullptr);
  info->~uwx_self_info();
  environment.allocator().release(info);
  return UWX_OK;
}

int uwx_self_init_context(uwx_env* env) {
  if (!env) return UWX_ERR_NOENV;
  Environment& environment = env->environment;
  if (!environment.callbacks().complete()) return UWX_ERR_NOCALLBACKS;
  if (environment.is_remote() || !environment.self()) return UWX_ERR_CANTUNWIND;
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  Cursor caller = cursor_at(context, Cursor::Top::returned_to);
  const auto moved = caller.step();
  if (!moved || !*moved) return UWX_ERR_CANTUNWIND;
  environment.self()->context = values_of(caller);
  return environment.begin(environment.self()->context, Cursor::Top::returned_to);
}

int uwx_self_copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok) {
  const auto size = static_cast<std::size_t>(len);
  if (len <= 0) return 0;
  if (request == UWX_COPYIN_REG) {
    const RegisterInfo* const reg = register_of(static_cast<int>(rem), local_space().arch);
    const auto value = reg && rem <= 0xffff ? info_of(tok).context.get(reg->column) : std::nullopt;
    if (!value || size != sizeof *value) return 0;
    std::memcpy(loc, &*value, sizeof *value);
    return len;
  }
  if (request != UWX_COPYIN_UINFO && request != UWX_COPYIN_MSTACK) return 0;
  MemoryWindow window;
  const std::span into(reinterpret_cast<std::byte*>(loc), size);
  return LocalMemory().read(rem, into, window) == size ? len : 0;
}

int uwx_self_lookupip(int request, std::uint64_t ip, std::intptr_t tok, std::uint64_t** resultp) {
  switch (request) {
    case UWX_LKUP_LOOKUP:
      return look_up(ip, info_of(tok), resultp);
    case UWX_LKUP_SYMBOLS:
    case UWX_LKUP_MODULE:
      return look_up_names(request, ip, info_of(tok), resultp);
    case UWX_LKUP_FREE:
      return UWX_OK;  // the answer is a part of the token
    default:
      return UWX_LKUP_ERR;
  }
}

int uwx_self_do_context_frame(uwx_env* env, uwx_self_info* info) {
  if (!env) return UWX_ERR_NOENV;
  Environment& environment = env->environment;
  if (!info || environment.self() != info || environment.context_code() != UWX_ABI_CONTEXT_SIGNAL)
    return UWX_ERR_NOCONTEXT;
  // The kernel's own frame has all registers, whichever source has recognised it.
  Cursor interrupted(local_space(), environment.cursor()->registers(), Cursor::Top::returned_to);
  const auto moved = interrupted.step();
  if (!moved || !*moved || interrupted.signal_context().depth != 1) return UWX_ERR_UCACCESS;
  info->context = interrupted.registers();
  if (environment.walks_itself()) return environment.begin(info->context, Cursor::Top::interrupted);
  return environment.begin(interrupted.pc(), interrupted.sp());
}
}
