// Functions that forward to the C++ builder.
#include "jitunwind/sdk/c/describing/builder_p.h"

#include <span>
#include <typeinfo>
#include <vector>

#include "jitunwind/sdk/c/handlers.h"

using jitunwind::Instruction;
using jitunwind::c::answer;
using jitunwind::c::check;
using jitunwind::c::say;
using jitunwind::c::tell;

// A call of the C++ builder `b` with the registers `r...`. It compiles for the CPUs that have the instruction.
#define JITUNWIND_CALL(call)                                                     \
  [=](auto& b, [[maybe_unused]] auto... r) -> void requires requires { b.call; } \
  { b.call; }

#define JITUNWIND_PARAMETERS(...) ju_builder* builder __VA_OPT__(, ) __VA_ARGS__

// The function `name` of the C interface, which records that call with its registers.
#define JITUNWIND_SAYS(name, parameters, call, ...)                              \
  ju_status name(JITUNWIND_PARAMETERS parameters) {                              \
    return say(builder, #name, JITUNWIND_CALL(call) __VA_OPT__(, ) __VA_ARGS__); \
  }

// Such a call with a text.
#define JITUNWIND_CALL_WITH_TEXT(call)                          \
  [=](auto& b, auto text) -> void requires requires { b.call; } \
  { b.call; }

namespace jitunwind::c {
namespace {

/// Records a row in text form.
template <class Work>
ju_status say_text(ju_builder* builder, const char* what, const char* text, Work work) {
  if (const ju_status bad = check(builder, what)) return bad;
  std::string_view row;
  return answer(nullptr, [&] {
    if (!text) return refuse(*builder, JU_NULL_POINTER, what, "no row");
    if (!read_string(text, row)) return refuse(*builder, JU_BAD_STRING, what, ju_status_text(JU_BAD_STRING));
    return say(
        builder, what, [&](auto& b) -> void requires requires { work(b, row); } { work(b, row); });
  });
}

const std::type_info* type_of(const void* type_info) noexcept { return static_cast<const std::type_info*>(type_info); }

}  // namespace

std::uint32_t bit_of(const Arch& arch) noexcept {
  unsigned cpu = 0;
#define JITUNWIND_ARCH(identifier)                                \
  if (&arch == &arch::identifier) return std::uint32_t{1} << cpu; \
  ++cpu;
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
  return 0;
}

ju_status refuse(ju_builder& builder, ju_status status, const char* what, std::string_view why) {
  builder.misuse.append(what).append(": ").append(ju_status_name(status)).append(": ").append(why).append("\n");
  if (builder.first_misuse == JU_OK) builder.first_misuse = status;
  return status;
}

[[gnu::cold, gnu::noinline]] static ju_status refuse_register(ju_builder& builder, const char* what, ju_reg reg) {
  ju_error error;
  ju_error_init(&error);
  const ju_status bad = check_register(reg, *builder.arch, &error);
  return refuse(builder, bad, what, error.text);
}

ju_status say_it(ju_builder* builder, const Said& said) {
  if (const ju_status bad = check(builder, said.what)) return bad;
  return answer(nullptr, [&] {
    for (const ju_reg reg : said.regs)
      if (cpu_of(reg) != builder->arch->elf_machine) return refuse_register(*builder, said.what, reg);
    if ((said.cpus & builder->cpu_bit) == 0)
      return refuse(*builder, JU_NO_SUCH_INSTRUCTION, said.what, std::string(builder->arch->name) + " has none");
    if (auto* const described = std::get_if<AnyBuilder>(&builder->recorder))
      return said.tell(*described, said.work), JU_OK;
    return refuse(*builder, JU_BAD_VALUE, said.what, "marks have no such function: use ju_describe()");
  });
}

}  // namespace jitunwind::c

ju_status ju_describe(ju_cpu cpu, const char* name, ju_builder** builder, ju_error* error) {
  return answer(error, [&] {
    if (!builder) return tell(error, JU_NULL_POINTER, "builder");
    const jitunwind::Arch* const arch = jitunwind::c::arch_of(cpu);
    if (!arch) return tell(error, JU_BAD_VALUE, "cpu", static_cast<unsigned>(cpu));
    std::string_view text;
    if (!jitunwind::c::read_string(name, text)) return tell(error, JU_BAD_STRING, "name");
    return jitunwind::c::hand_out(
        std::unique_ptr<ju_builder>(new ju_builder{.arch = arch, .recorder = jitunwind::c::AnyBuilder(*arch, text)}),
        builder);
  });
}

ju_status ju_describe_marks(ju_cpu cpu, ju_builder** marks, ju_error* error) {
  return answer(error, [&] {
    if (!marks) return tell(error, JU_NULL_POINTER, "marks");
    const jitunwind::Arch* const arch = jitunwind::c::arch_of(cpu);
    if (!arch) return tell(error, JU_BAD_VALUE, "cpu", static_cast<unsigned>(cpu));
    return jitunwind::c::hand_out(
        std::unique_ptr<ju_builder>(new ju_builder{.arch = arch, .recorder = jitunwind::c::AnyMarks(*arch)}), marks);
  });
}

ju_status ju_builder_copy(const ju_builder* builder, ju_builder** copy, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(builder, "builder", error)) return bad;
    if (!copy) return tell(error, JU_NULL_POINTER, "copy");
    return jitunwind::c::hand_out(std::make_unique<ju_builder>(*builder), copy);
  });
}

ju_status ju_builder_free(ju_builder* builder) { return jitunwind::c::check_and_free(builder, "builder"); }

// The procedure as a whole.

JITUNWIND_SAYS(ju_set_size, (uint64_t bytes), size(bytes))
JITUNWIND_SAYS(ju_set_personality, (uint64_t routine), personality(routine))
JITUNWIND_SAYS(ju_set_lsda, (uint64_t address), lsda(address))
JITUNWIND_SAYS(ju_set_gp, (uint64_t value), gp(value))
JITUNWIND_SAYS(ju_ends_without_return, (), ends_without_return())

// Instructions.

#define JITUNWIND_AT Instruction(begin, end)

JITUNWIND_SAYS(ju_push, (int64_t begin, int64_t end, ju_reg reg), push(JITUNWIND_AT, r...), reg)
JITUNWIND_SAYS(ju_push_other, (int64_t begin, int64_t end), push(JITUNWIND_AT))
JITUNWIND_SAYS(ju_enter, (int64_t begin, int64_t end, int64_t bytes), enter(JITUNWIND_AT, bytes))
JITUNWIND_SAYS(ju_allocate, (int64_t begin, int64_t end, int64_t bytes), allocate(JITUNWIND_AT, bytes))
JITUNWIND_SAYS(ju_set_frame_pointer, (int64_t begin, int64_t end, ju_reg reg, int64_t above_sp),
               set_frame_pointer(JITUNWIND_AT, r..., above_sp), reg)
JITUNWIND_SAYS(ju_move_frame_pointer, (int64_t begin, int64_t end, ju_reg reg, int64_t bytes),
               move_frame_pointer(JITUNWIND_AT, r..., bytes), reg)
JITUNWIND_SAYS(ju_save_at_sp, (int64_t begin, int64_t end, ju_reg reg, int64_t offset),
               save_at_sp(JITUNWIND_AT, r..., offset), reg)
JITUNWIND_SAYS(ju_save_at_fp, (int64_t begin, int64_t end, ju_reg reg, int64_t offset),
               save_at_fp(JITUNWIND_AT, r..., offset), reg)
JITUNWIND_SAYS(ju_move_to, (int64_t begin, int64_t end, ju_reg reg, ju_reg to), move_to(JITUNWIND_AT, r...), reg, to)
JITUNWIND_SAYS(ju_store_pair, (int64_t begin, int64_t end, ju_reg first, ju_reg second, int64_t offset),
               store_pair(JITUNWIND_AT, r..., offset), first, second)
JITUNWIND_SAYS(ju_store_pair_pre, (int64_t begin, int64_t end, ju_reg first, ju_reg second, int64_t moved),
               store_pair_pre(JITUNWIND_AT, r..., moved), first, second)
JITUNWIND_SAYS(ju_store_pre, (int64_t begin, int64_t end, ju_reg reg, int64_t moved),
               store_pre(JITUNWIND_AT, r..., moved), reg)
JITUNWIND_SAYS(ju_sign_return_address, (int64_t begin, int64_t end), sign_return_address(JITUNWIND_AT))
JITUNWIND_SAYS(ju_realign, (int64_t begin, int64_t end), realign(JITUNWIND_AT))
JITUNWIND_SAYS(ju_allocate_variable, (int64_t begin, int64_t end), allocate_variable(JITUNWIND_AT))
JITUNWIND_SAYS(ju_store_sp, (int64_t begin, int64_t end, int64_t offset), store_sp(JITUNWIND_AT, offset))
JITUNWIND_SAYS(ju_reload_sp, (int64_t begin, int64_t end), reload_sp(JITUNWIND_AT))
ju_status ju_probe_loop(ju_builder* builder, ju_instruction bound, ju_instruction first_step, ju_instruction back,
                        int64_t bytes, ju_reg scratch) {
  const jitunwind::ProbeLoop loop{
      {bound.begin, bound.end}, {first_step.begin, first_step.end}, {back.begin, back.end}, bytes};
  return say(builder, "ju_probe_loop", JITUNWIND_CALL(probe_loop(loop, r...)), scratch);
}
JITUNWIND_SAYS(ju_pop, (int64_t begin, int64_t end, ju_reg reg), pop(JITUNWIND_AT, r...), reg)
JITUNWIND_SAYS(ju_pop_other, (int64_t begin, int64_t end), pop(JITUNWIND_AT))
JITUNWIND_SAYS(ju_deallocate, (int64_t begin, int64_t end, int64_t bytes), deallocate(JITUNWIND_AT, bytes))
JITUNWIND_SAYS(ju_restore_sp, (int64_t begin, int64_t end, ju_reg fp, int64_t offset),
               restore_sp(JITUNWIND_AT, r..., offset), fp)
JITUNWIND_SAYS(ju_leave, (int64_t begin, int64_t end), leave(JITUNWIND_AT))
JITUNWIND_SAYS(ju_reload, (int64_t begin, int64_t end, ju_reg reg), reload(JITUNWIND_AT, r...), reg)
JITUNWIND_SAYS(ju_reload_pair, (int64_t begin, int64_t end, ju_reg first, ju_reg second),
               reload_pair(JITUNWIND_AT, r...), first, second)
JITUNWIND_SAYS(ju_load_pair_post, (int64_t begin, int64_t end, ju_reg first, ju_reg second, int64_t moved),
               load_pair_post(JITUNWIND_AT, r..., moved), first, second)
JITUNWIND_SAYS(ju_load_post, (int64_t begin, int64_t end, ju_reg reg, int64_t moved),
               load_post(JITUNWIND_AT, r..., moved), reg)
JITUNWIND_SAYS(ju_authenticate_return_address, (int64_t begin, int64_t end), authenticate_return_address(JITUNWIND_AT))
JITUNWIND_SAYS(ju_pop_return_address, (int64_t begin, int64_t end, ju_reg to), pop_return_address(JITUNWIND_AT, r...),
               to)
JITUNWIND_SAYS(ju_remember, (), remember())
JITUNWIND_SAYS(ju_restore, (int64_t begin, int64_t end), restore(JITUNWIND_AT))
JITUNWIND_SAYS(ju_call, (int64_t begin, int64_t end), call(JITUNWIND_AT))
JITUNWIND_SAYS(ju_callee_pops, (int64_t begin, int64_t end, int64_t bytes), callee_pops(JITUNWIND_AT, bytes))

// Exceptions.

JITUNWIND_SAYS(ju_call_site, (int64_t begin, int64_t end, int64_t landing_pad), call_site(JITUNWIND_AT, landing_pad))
JITUNWIND_SAYS(ju_catches, (const void* type_info), catches(jitunwind::c::type_of(type_info)))
JITUNWIND_SAYS(ju_catches_all, (), catches_all())
ju_status ju_allows(ju_builder* builder, const void* const* type_infos, size_t count) {
  if (const ju_status bad = check(builder, "ju_allows")) return bad;
  if (count != 0 && !type_infos) return JU_NULL_POINTER;
  return answer(nullptr, [&] {
    std::vector<const std::type_info*> types(count);
    for (size_t i = 0; i < count; ++i) types[i] = jitunwind::c::type_of(type_infos[i]);
    const std::span<const std::type_info* const> all = types;
    return say(builder, "ju_allows", JITUNWIND_CALL(allows(all)));
  });
}
JITUNWIND_SAYS(ju_cleans_up, (), cleans_up())
JITUNWIND_SAYS(ju_terminates, (int64_t begin, int64_t end), terminates(JITUNWIND_AT))
int ju_selector(ju_builder* builder, const void* type_info) {
  int selector = 0;
  (void)say(
      builder, "ju_selector", [&](auto& b) -> void requires requires { b.selector(nullptr); } {
        selector = type_info ? b.selector(*jitunwind::c::type_of(type_info)) : b.selector(nullptr);
      });
  return selector;
}

// Frames built elsewhere.

ju_status ju_entry_state(ju_builder* builder, const char* row) {
  return jitunwind::c::say_text(builder, "ju_entry_state", row, JITUNWIND_CALL_WITH_TEXT(entry_state(text)));
}
ju_status ju_entry_state_at(ju_builder* builder, const char* row, int64_t sp_distance) {
  return jitunwind::c::say_text(builder, "ju_entry_state_at", row,
                                JITUNWIND_CALL_WITH_TEXT(entry_state(text, sp_distance)));
}
ju_status ju_row_at(ju_builder* builder, int64_t offset, const char* row) {
  return jitunwind::c::say_text(builder, "ju_row_at", row, JITUNWIND_CALL_WITH_TEXT(row_at(offset, text)));
}

// Directives.

JITUNWIND_SAYS(ju_region, (int32_t insn_count), region(insn_count))
JITUNWIND_SAYS(ju_save_reg, (int32_t when, ju_reg reg, ju_reg in), save_reg(when, r...), reg, in)
JITUNWIND_SAYS(ju_spill_sp_rel, (int32_t when, ju_reg reg, int64_t offset), spill_sp_rel(when, r..., offset), reg)
JITUNWIND_SAYS(ju_spill_fp_rel, (int32_t when, ju_reg reg, int64_t offset), spill_fp_rel(when, r..., offset), reg)
JITUNWIND_SAYS(ju_add, (int32_t when, ju_reg reg, int64_t value), add(when, r..., value), reg)
JITUNWIND_SAYS(ju_pop_frames, (int32_t when, int64_t count), pop_frames(when, count))
JITUNWIND_SAYS(ju_label_state, (int32_t when, uint64_t label), label_state(when, label))
JITUNWIND_SAYS(ju_copy_state, (int32_t when, uint64_t label), copy_state(when, label))
JITUNWIND_SAYS(ju_alias, (int32_t when, uint64_t address), alias(when, address))
JITUNWIND_SAYS(ju_stop, (), stop())
ju_status ju_op(ju_builder* builder, int8_t tag, int8_t predicate, int32_t when, int16_t reg, uint64_t value) {
  const unw_dyn_op_t op{tag, predicate, reg, when, value};
  return say(builder, "ju_op", JITUNWIND_CALL(op(op)));
}

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
