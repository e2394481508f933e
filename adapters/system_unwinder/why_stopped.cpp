#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/builders/frame_personality_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/c/process.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"

extern "C" {
[[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);
[[gnu::weak]] int __gxx_personality_v0(...);
[[gnu::weak]] int __gcc_personality_v0(...);
}

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

/// The routine of the frame's code, unless it is one that lets all exceptions pass that it does not catch; 0: none.
Addr other_routine(Cursor& cursor) noexcept {
  const Result<ProcedureInfo> procedure = cursor.procedure();
  const Addr routine = procedure ? procedure->handler : 0;
  const auto is = [routine](auto* known) { return routine == address_of(reinterpret_cast<const void*>(known)); };
  return is(&__gxx_personality_v0) || is(&__gcc_personality_v0) || is(&jitunwind_frame_personality) ? 0 : routine;
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
  StoppedAt other;
  while (moved && *moved && is_known_to_unwinder(cursor.address())) {
    if (other.routine == 0) {
      other = {StoppedAt::Kind::other_language, cursor.depth(), cursor.pc(), {}};
      other.routine = other_routine(cursor);
    }
    moved = cursor.step();
  }
  StoppedAt stopped;
  if (!moved)
    stopped = {StoppedAt::Kind::broken, cursor.depth(), cursor.pc(), moved.error()};
  else if (*moved)
    stopped = at_unknown(cursor);
  else if (other.routine != 0)
    stopped = other;
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
  if (kind == Kind::other_language)
    return "the unwinder knows all frames, and " + where + " has the personality routine " +
           name_at(CodeAddress::interrupted(routine)) + ", which may have ended the search";
  return "the unwinder stops at " + where + ": " + error_text(reason.code) + ", " + reason.what;
}

}  // namespace jitunwind

// C++ exceptions in the C interface; sdk/c/process.h.

using jitunwind::c::answer;

static_assert(static_cast<int>(jitunwind::SystemUnwinderPath::jump_slot) == JU_PATH_JUMP_SLOT);

const char* ju_unwinder_path_name(ju_unwinder_path path) {
  return jitunwind::path_name(static_cast<jitunwind::SystemUnwinderPath>(path));
}

ju_status ju_unwinder_status_get(ju_unwinder_status* status, ju_error* error) {
  return answer(error, [&] {
    const jitunwind::SystemUnwinderStatus now = jitunwind::system_unwinder_status();
    const ju_unwinder_status out{0,
                                 static_cast<ju_unwinder_path>(now.path),
                                 now.why,
                                 now.has_next,
                                 now.slots,
                                 now.unreached,
                                 now.why_unreached,
                                 now.refused,
                                 jitunwind::c::latest_refusal(now)};
    return jitunwind::c::write_struct(out, status, "status", error);
  });
}

ju_status ju_why_stopped(char* into, size_t room, size_t* length) {
  return answer(nullptr, [&] { return jitunwind::c::write_text(jitunwind::why_stopped().text(), into, room, length); });
}
