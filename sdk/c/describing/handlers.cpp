#include "jitunwind/sdk/c/handlers.h"

#include <vector>

#include "jitunwind/sdk/c/describing/builder_p.h"

using jitunwind::c::tell;

struct ju_decision {
  enum class Kind : std::uint8_t { pass, catches, cleans_up };
  struct Value {
    jitunwind::RegNum reg;
    uint64_t value;
  };
  Kind kind = Kind::pass;
  uint64_t pad = 0;
  std::optional<uint64_t> sp{};
  std::vector<Value> registers{};
};

namespace jitunwind::c {
namespace {

const PassedFrame& frame_of(const ju_passed_frame& frame) noexcept {
  return *static_cast<const PassedFrame*>(frame.frame);
}

/// A handler of the caller's and what it is called with.
struct Callback {
  ju_frame_handler handler;
  std::shared_ptr<void> context;

  FrameDecision operator()(const PassedFrame& frame) const {
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
                                 &frame};
    ju_decision said;
    handler(&passed, &said, context.get());
    FrameDecision decision = decision_of(said);
    if (said.sp) decision.with_sp(*said.sp);
    for (const ju_decision::Value& value : said.registers) decision.with(value.reg, value.value);
    return decision;
  }

  static FrameDecision decision_of(const ju_decision& said) noexcept {
    if (said.kind == ju_decision::Kind::catches) return FrameDecision::catch_at(said.pad);
    if (said.kind == ju_decision::Kind::cleans_up) return FrameDecision::clean_up_at(said.pad);
    return FrameDecision::pass();
  }
};

}  // namespace
}  // namespace jitunwind::c

ju_status ju_handled_by(ju_builder* builder, ju_frame_handler handler, void* context, void (*release)(void* context)) {
  if (const ju_status bad = jitunwind::c::check(builder, "builder")) return bad;
  return jitunwind::c::answer(nullptr, [&] {
    if (!handler) return builder->refuse(JU_NULL_POINTER, "ju_handled_by", "no function");
    const auto nothing = [](void*) {};
    const jitunwind::FrameHandler called = jitunwind::c::Callback{
        handler, std::shared_ptr<void>(context, release ? release : static_cast<void (*)(void*)>(nothing))};
    return jitunwind::c::say(builder, "ju_handled_by", [&](auto& b) { b.handled_by(called); });
  });
}

ju_status ju_passed_frame_get(const ju_passed_frame* frame, ju_reg reg, uint64_t* value) {
  if (!frame || !frame->frame || !value) return JU_NULL_POINTER;
  const jitunwind::Arch* const arch = jitunwind::host_arch();
  if (const ju_status bad = jitunwind::c::check_register(reg, *arch, nullptr)) return bad;
  const jitunwind::PassedFrame& passed = jitunwind::c::frame_of(*frame);
  const jitunwind::RegNum dwarf = jitunwind::c::dwarf_of(reg);
  if (!passed.has_reg(dwarf)) return JU_BAD_REGISTER;
  *value = passed.reg(dwarf);
  return JU_OK;
}

void ju_catch_at(ju_decision* decision, uint64_t pad) {
  if (!decision) return;
  decision->kind = ju_decision::Kind::catches;
  decision->pad = pad;
}

void ju_clean_up_at(ju_decision* decision, uint64_t pad) {
  if (!decision) return;
  decision->kind = ju_decision::Kind::cleans_up;
  decision->pad = pad;
}

void ju_land_with_sp(ju_decision* decision, uint64_t sp) {
  if (decision) decision->sp = sp;
}

ju_status ju_land_with(ju_decision* decision, ju_reg reg, uint64_t value) {
  if (!decision) return JU_NULL_POINTER;
  if (const ju_status bad = jitunwind::c::check_register(reg, *jitunwind::host_arch(), nullptr)) return bad;
  return jitunwind::c::answer(nullptr, [&] {
    decision->registers.push_back({jitunwind::c::dwarf_of(reg), value});
    return JU_OK;
  });
}
