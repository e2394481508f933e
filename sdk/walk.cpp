#include "jitunwind/sdk/walk.h"

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/walk/address_walk_internal.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {
namespace {

/// Walks without anything that is kept: kept rows belong to the dynamic linker's list of modules, and here another
/// function lists them. The list need not contain this library, so local_space() leaves this library's own frames.
[[gnu::noinline]] std::size_t walk_listed_modules(const WalkStart& start, WalkPart part,
                                                  std::span<void*> into) noexcept {
  Cursor cursor(local_space_of_listed_modules(), cursor_at_start(local_space(), start, {}).registers(), start.top(),
                nullptr, reinterpret_cast<std::uintptr_t>(start.ucontext));
  return list_addresses(cursor, part, into);
}

[[gnu::hot]] std::size_t walk_local(const WalkStart& start, WalkPart part, std::span<void*> into) noexcept {
  if (has_listed_modules()) [[unlikely]]
    return with_room([&] { return walk_listed_modules(start, part, into); });
  return walk_addresses(local_space(), start, part, into);
}

}  // namespace

std::uint64_t Frame::offset() const noexcept {
  const auto found = raw_name({});
  return found ? pc() - found->start : 0;
}

Result<ProcedureInfo> Frame::procedure() const noexcept {
  ProcedureInfo info;
  const Found found = with_room(&cursor_, [&] {
    const AddressSpace& space = cursor_.space().for_addresses();
    MemoryWindow window;
    window.argument = cursor_.argument();
    Lookup lookup(space, address(), window);
    return space.find_procedure(lookup, info);
  });
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, pc(), "no procedure information for this pc"};
  return info;
}

void* Frame::user() const noexcept {
  const auto info = procedure();
  return info ? pointer_to(info->user) : nullptr;
}

bool Frame::is_signal_frame() const noexcept {
  const auto is = cursor_.is_signal_frame();
  return is && *is;
}

Cursor cursor_at(const void* ucontext, Cursor::Top top, Guesses guesses) noexcept {
  const AddressSpace& space = local_space();
  const auto from = top == Cursor::Top::interrupted ? reinterpret_cast<std::uintptr_t>(ucontext) : 0;
  Cursor cursor(space, ucontext, top, nullptr, from);
  cursor.set_guesses(guesses);
  expect_walk_by(cursor);
  return cursor;
}

std::size_t backtrace(const void* ucontext, Cursor::Top top, std::span<void*> addresses) noexcept {
  const Arch& arch = local_space().arch;
  const UcontextOffsets offsets = ucontext_offsets(arch);
  const auto word = [&](Addr offset) { return raw_word(static_cast<const std::byte*>(ucontext) + offset); };
  const Addr pc = word(offsets.pc) & arch.address_mask;
  const bool interrupted = top == Cursor::Top::interrupted;
  const CodeAddress address = interrupted ? CodeAddress::interrupted(pc) : CodeAddress::returned_to(pc);
  return walk_local({address, word(offsets.sp), word(offsets.fp), ucontext}, WalkPart::whole, addresses);
}

}  // namespace jitunwind

/// Continues jitunwind_backtrace() and libunwind's unw_backtrace() (unwind_core/arch/*/backtrace.S), which may be in
/// another library.
extern "C" [[gnu::visibility("default")]] int jitunwind_backtrace_from(void** addresses, int size, int callers_only,
                                                                       jitunwind::Addr fp, jitunwind::Addr sp,
                                                                       jitunwind::Addr pc) noexcept {
  if (!addresses || size <= 0) return 0;
  const jitunwind::WalkStart start{jitunwind::CodeAddress::returned_to(pc), sp, fp};
  const auto part = callers_only ? jitunwind::WalkPart::callers : jitunwind::WalkPart::whole;
  return static_cast<int>(jitunwind::walk_local(start, part, {addresses, static_cast<std::size_t>(size)}));
}
