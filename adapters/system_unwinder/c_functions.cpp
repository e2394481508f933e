// C++ exceptions in the C interface; sdk/c/process.h.
#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/c/process.h"

namespace {

static_assert(static_cast<int>(jitunwind::SystemUnwinderPath::jump_slot) == JU_PATH_JUMP_SLOT);

}  // namespace

const char* ju_unwinder_path_name(ju_unwinder_path path) {
  return jitunwind::path_name(static_cast<jitunwind::SystemUnwinderPath>(path));
}

ju_status ju_unwinder_status_get(ju_unwinder_status* status, ju_error* error) {
  return jitunwind::c::answer(error, [&] {
    const jitunwind::SystemUnwinderStatus now = jitunwind::system_unwinder_status();
    ju_unwinder_status out{};
    out.path = static_cast<ju_unwinder_path>(now.path);
    out.why = now.why;
    out.has_next = now.has_next;
    out.slots = now.slots;
    out.unreached = now.unreached;
    out.why_unreached = now.why_unreached;
    out.refused = now.refused;
    out.latest_refusal = jitunwind::c::latest_refusal(now);
    return jitunwind::c::write_struct(out, status, "status", error);
  });
}

ju_status ju_why_stopped(char* into, size_t room, size_t* length) {
  return jitunwind::c::answer(
      nullptr, [&] { return jitunwind::c::write_text(jitunwind::why_stopped().text(), into, room, length); });
}
