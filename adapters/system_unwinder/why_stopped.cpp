#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"
#include "jitunwind/adapters/system_unwinder/refusals_p.h"
#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"

extern "C" [[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);

namespace jitunwind {
namespace {

/// The unwinder looks up the byte before the given address.
bool is_known_to_unwinder(CodeAddress address) noexcept {
  return &_Unwind_FindEnclosingFunction != nullptr &&
         _Unwind_FindEnclosingFunction(pointer_to(address.lookup() + 1)) != nullptr;
}

StoppedAt at_unknown(const Cursor& cursor) noexcept {
  StoppedAt stopped{StoppedAt::Kind::unknown_code, cursor.depth(), cursor.pc(), {}};
  const Addr asked = cursor.address().lookup();
  if (!ProcedureHold(asked).info()) {
    stopped.reason = {ErrorCode::no_info, cursor.pc(), "nothing describes this code"};
    return stopped;
  }
  stopped.kind = StoppedAt::Kind::refused;
  const Error latest = refusals().latest;
  stopped.reason = latest.at == asked ? latest : Error{ErrorCode::no_info, asked, "the unwinder was not told"};
  return stopped;
}

std::string name_at(CodeAddress address) {
  std::array<char, 256> name;
  ProcedureName found;
  if (!find_local_name(address, name, found)) return "unknown code";
  std::array<char, 32> offset;
  (void)std::snprintf(offset.data(), offset.size(), "+0x%" PRIx64, address.value() - found.start);
  return name.data() + std::string(offset.data());
}

}  // namespace

StoppedAt why_stopped() noexcept {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  Cursor cursor = cursor_at(context, Cursor::Top::returned_to);
  // This function's own frame is not one of the caller's.
  Result<bool> moved = cursor.step();
  const std::uint32_t first = cursor.depth();
  while (moved && *moved && is_known_to_unwinder(cursor.address())) moved = cursor.step();
  StoppedAt stopped;
  if (!moved)
    stopped = {StoppedAt::Kind::broken, cursor.depth(), cursor.pc(), moved.error()};
  else if (*moved)
    stopped = at_unknown(cursor);
  else
    stopped = {StoppedAt::Kind::nowhere, cursor.depth(), cursor.pc(), {}};
  stopped.frame -= first;
  return stopped;
}

std::string StoppedAt::text() const {
  std::array<char, 64> place;
  (void)std::snprintf(place.data(), place.size(), "frame %" PRIu32 ", pc 0x%" PRIx64, frame, pc);
  const std::string where = place.data() + (" (" + name_at(CodeAddress::returned_to(pc)) + ")");
  if (kind == Kind::nowhere) return "the unwinder knows all frames up to " + where;
  return "the unwinder stops at " + where + ": " + error_text(reason.code) + ", " + reason.what;
}

}  // namespace jitunwind
