#include "jitunwind/sdk/c/handlers.h"

#include <vector>

#include "jitunwind/sdk/c/describing/builder_p.h"

using jitunwind::c::check;
using jitunwind::c::Kind;

struct ju_decision {
  static constexpr Kind k_kind = Kind::decision;
  enum class What : std::uint8_t { pass, catches, cleans_up };
  struct Value {
    jitunwind::RegNum reg;
    uint64_t value;
  };
  Kind kind = k_kind;
  What what = What::pass;
  uint64_t pad = 0;
  std::optional<uint64_t> sp{};
  std::vector<Value> registers{};
};

namespace jitunwind::c {
namespace {

/// ju_passed_frame::frame points to this.
struct PassedFrameHandle {
  static constexpr Kind k_kind = Kind::passed_frame;
  Kind kind = k_kind;
  const PassedFrame& frame;
};

/// Leaves memory that is no decision unchanged.
void decide(ju_decision* decision, ju_decision::What what, uint64_t pad) noexcept {
  if (check(decision, "decision") != JU_OK) return;
  decision->what = what;
  decision->pad = pad;
}

/// A handler of the caller's and its argument.
struct Callback {
  ju_frame_handler handler;
  std::shared_ptr<void> context;

  FrameDecision operator()(const PassedFrame& frame) const {
    const PassedFrameHandle handle{.frame = frame};
    const ju_passed_frame passed{sizeof passed,
                                 frame.phase() == PassedFrame::Phase::search,
                                 frame.forced(),
                                 frame.start(),
                                 frame.pc(),
                                 frame.call_offset(),
                                 frame.sp(),
                                 frame.exception(),
                                 frame.thrown_type(),
                                 frame.thrown_object(),
                                 &handle};
    ju_decision said;
    handler(&passed, &said, context.get());
    FrameDecision decision = decision_of(said);
    if (said.sp) decision.with_sp(*said.sp);
    for (const ju_decision::Value& value : said.registers) decision.with(value.reg, value.value);
    return decision;
  }

  static FrameDecision decision_of(const ju_decision& said) noexcept {
    if (said.what == ju_decision::What::catches) return FrameDecision::catch_at(said.pad);
    if (said.what == ju_decision::What::cleans_up) return FrameDecision::clean_up_at(said.pad);
    return FrameDecision::pass();
  }
};

}  // namespace
}  // namespace jitunwind::c

ju_status ju_handled_by(ju_builder* builder, ju_frame_handler handler, void* context, void (*release)(void* context)) {
  if (const ju_status bad = check(builder, "builder")) return bad;
  return jitunwind::c::answer(nullptr, [&] {
    if (!handler) return jitunwind::c::refuse(*builder, JU_NULL_POINTER, "ju_handled_by", "no function");
    const auto nothing = [](void*) {};
    const jitunwind::FrameHandler called = jitunwind::c::Callback{
        handler, std::shared_ptr<void>(context, release ? release : static_cast<void (*)(void*)>(nothing))};
    return jitunwind::c::say(
        builder,
        "ju_handled_by", [&](auto& b) -> void requires requires { b.handled_by(called); } { b.handled_by(called); });
  });
}

ju_status ju_passed_frame_get(const ju_passed_frame* frame, ju_reg reg, uint64_t* value) {
  if (!frame || !value) return JU_NULL_POINTER;
  if (!jitunwind::c::has_size(*frame)) return JU_BAD_STRUCT_SIZE;
  const auto* const handle = static_cast<const jitunwind::c::PassedFrameHandle*>(frame->frame);
  if (const ju_status bad = check(handle, "frame")) return bad;
  const jitunwind::Arch* const arch = jitunwind::host_arch();
  if (const ju_status bad = jitunwind::c::check_register(reg, *arch, nullptr)) return bad;
  const jitunwind::RegNum dwarf = jitunwind::c::dwarf_of(reg);
  if (!jitunwind::PassedFrame::has_reg(dwarf)) return JU_BAD_REGISTER;
  *value = handle->frame.reg(dwarf);
  return JU_OK;
}

void ju_catch_at(ju_decision* decision, uint64_t pad) {
  jitunwind::c::decide(decision, ju_decision::What::catches, pad);
}

void ju_clean_up_at(ju_decision* decision, uint64_t pad) {
  jitunwind::c::decide(decision, ju_decision::What::cleans_up, pad);
}

void ju_land_with_sp(ju_decision* decision, uint64_t sp) {
  if (check(decision, "decision") == JU_OK) decision->sp = sp;
}

ju_status ju_land_with(ju_decision* decision, ju_reg reg, uint64_t value) {
  if (const ju_status bad = check(decision, "decision")) return bad;
  if (const ju_status bad = jitunwind::c::check_register(reg, *jitunwind::host_arch(), nullptr)) return bad;
  return jitunwind::c::answer(nullptr, [&] {
    decision->registers.push_back({jitunwind::c::dwarf_of(reg), value});
    return JU_OK;
  });
}
