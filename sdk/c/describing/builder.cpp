// Functions that forward to the C++ builder.
#include <initializer_list>
#include <span>
#include <typeinfo>
#include <vector>

#include "jitunwind/sdk/c/describing/builder_p.h"

using jitunwind::Instruction;
using jitunwind::c::answer;
using jitunwind::c::check;
using jitunwind::c::say;
using jitunwind::c::tell;

// A call of the C++ builder `b` with the registers `r...`. It compiles for the CPUs that have the instruction.
#define JITUNWIND_CALL(call)                                                     \
  [=](auto& b, [[maybe_unused]] auto... r) -> void requires requires { b.call; } \
  { b.call; }

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

ju_status ju_set_size(ju_builder* builder, uint64_t bytes) {
  return say(builder, "ju_set_size", JITUNWIND_CALL(size(bytes)));
}
ju_status ju_set_personality(ju_builder* builder, uint64_t routine) {
  return say(builder, "ju_set_personality", JITUNWIND_CALL(personality(routine)));
}
ju_status ju_set_lsda(ju_builder* builder, uint64_t address) {
  return say(builder, "ju_set_lsda", JITUNWIND_CALL(lsda(address)));
}
ju_status ju_set_gp(ju_builder* builder, uint64_t value) {
  return say(builder, "ju_set_gp", JITUNWIND_CALL(gp(value)));
}
ju_status ju_ends_without_return(ju_builder* builder) {
  return say(builder, "ju_ends_without_return", JITUNWIND_CALL(ends_without_return()));
}

// Instructions.

#define JITUNWIND_AT Instruction(begin, end)

ju_status ju_push(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg) {
  return say(builder, "ju_push", JITUNWIND_CALL(push(JITUNWIND_AT, r...)), reg);
}
ju_status ju_push_other(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_push_other", JITUNWIND_CALL(push(JITUNWIND_AT)));
}
ju_status ju_enter(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes) {
  return say(builder, "ju_enter", JITUNWIND_CALL(enter(JITUNWIND_AT, bytes)));
}
ju_status ju_allocate(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes) {
  return say(builder, "ju_allocate", JITUNWIND_CALL(allocate(JITUNWIND_AT, bytes)));
}
ju_status ju_set_frame_pointer(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t above_sp) {
  return say(builder, "ju_set_frame_pointer", JITUNWIND_CALL(set_frame_pointer(JITUNWIND_AT, r..., above_sp)), reg);
}
ju_status ju_move_frame_pointer(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t bytes) {
  return say(builder, "ju_move_frame_pointer", JITUNWIND_CALL(move_frame_pointer(JITUNWIND_AT, r..., bytes)), reg);
}
ju_status ju_save_at_sp(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t offset) {
  return say(builder, "ju_save_at_sp", JITUNWIND_CALL(save_at_sp(JITUNWIND_AT, r..., offset)), reg);
}
ju_status ju_save_at_fp(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t offset) {
  return say(builder, "ju_save_at_fp", JITUNWIND_CALL(save_at_fp(JITUNWIND_AT, r..., offset)), reg);
}
ju_status ju_move_to(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, ju_reg to) {
  return say(builder, "ju_move_to", JITUNWIND_CALL(move_to(JITUNWIND_AT, r...)), reg, to);
}
ju_status ju_store_pair(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second, int64_t offset) {
  return say(builder, "ju_store_pair", JITUNWIND_CALL(store_pair(JITUNWIND_AT, r..., offset)), first, second);
}
ju_status ju_store_pair_pre(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second,
                            int64_t moved) {
  return say(builder, "ju_store_pair_pre", JITUNWIND_CALL(store_pair_pre(JITUNWIND_AT, r..., moved)), first, second);
}
ju_status ju_store_pre(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t moved) {
  return say(builder, "ju_store_pre", JITUNWIND_CALL(store_pre(JITUNWIND_AT, r..., moved)), reg);
}
ju_status ju_sign_return_address(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_sign_return_address", JITUNWIND_CALL(sign_return_address(JITUNWIND_AT)));
}
ju_status ju_realign(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_realign", JITUNWIND_CALL(realign(JITUNWIND_AT)));
}
ju_status ju_allocate_variable(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_allocate_variable", JITUNWIND_CALL(allocate_variable(JITUNWIND_AT)));
}
ju_status ju_store_sp(ju_builder* builder, int64_t begin, int64_t end, int64_t offset) {
  return say(builder, "ju_store_sp", JITUNWIND_CALL(store_sp(JITUNWIND_AT, offset)));
}
ju_status ju_reload_sp(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_reload_sp", JITUNWIND_CALL(reload_sp(JITUNWIND_AT)));
}
ju_status ju_probe_loop(ju_builder* builder, ju_instruction bound, ju_instruction first_step, ju_instruction back,
                        int64_t bytes, ju_reg scratch) {
  const jitunwind::ProbeLoop loop{
      {bound.begin, bound.end}, {first_step.begin, first_step.end}, {back.begin, back.end}, bytes};
  return say(builder, "ju_probe_loop", JITUNWIND_CALL(probe_loop(loop, r...)), scratch);
}
ju_status ju_pop(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg) {
  return say(builder, "ju_pop", JITUNWIND_CALL(pop(JITUNWIND_AT, r...)), reg);
}
ju_status ju_pop_other(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_pop_other", JITUNWIND_CALL(pop(JITUNWIND_AT)));
}
ju_status ju_deallocate(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes) {
  return say(builder, "ju_deallocate", JITUNWIND_CALL(deallocate(JITUNWIND_AT, bytes)));
}
ju_status ju_restore_sp(ju_builder* builder, int64_t begin, int64_t end, ju_reg fp, int64_t offset) {
  return say(builder, "ju_restore_sp", JITUNWIND_CALL(restore_sp(JITUNWIND_AT, r..., offset)), fp);
}
ju_status ju_leave(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_leave", JITUNWIND_CALL(leave(JITUNWIND_AT)));
}
ju_status ju_reload(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg) {
  return say(builder, "ju_reload", JITUNWIND_CALL(reload(JITUNWIND_AT, r...)), reg);
}
ju_status ju_reload_pair(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second) {
  return say(builder, "ju_reload_pair", JITUNWIND_CALL(reload_pair(JITUNWIND_AT, r...)), first, second);
}
ju_status ju_load_pair_post(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second,
                            int64_t moved) {
  return say(builder, "ju_load_pair_post", JITUNWIND_CALL(load_pair_post(JITUNWIND_AT, r..., moved)), first, second);
}
ju_status ju_load_post(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t moved) {
  return say(builder, "ju_load_post", JITUNWIND_CALL(load_post(JITUNWIND_AT, r..., moved)), reg);
}
ju_status ju_authenticate_return_address(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_authenticate_return_address", JITUNWIND_CALL(authenticate_return_address(JITUNWIND_AT)));
}
ju_status ju_pop_return_address(ju_builder* builder, int64_t begin, int64_t end, ju_reg to) {
  return say(builder, "ju_pop_return_address", JITUNWIND_CALL(pop_return_address(JITUNWIND_AT, r...)), to);
}
ju_status ju_remember(ju_builder* builder) { return say(builder, "ju_remember", JITUNWIND_CALL(remember())); }
ju_status ju_restore(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_restore", JITUNWIND_CALL(restore(JITUNWIND_AT)));
}
ju_status ju_call(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_call", JITUNWIND_CALL(call(JITUNWIND_AT)));
}
ju_status ju_callee_pops(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes) {
  return say(builder, "ju_callee_pops", JITUNWIND_CALL(callee_pops(JITUNWIND_AT, bytes)));
}

// Exceptions.

ju_status ju_call_site(ju_builder* builder, int64_t begin, int64_t end, int64_t landing_pad) {
  return say(builder, "ju_call_site", JITUNWIND_CALL(call_site(JITUNWIND_AT, landing_pad)));
}
ju_status ju_catches(ju_builder* builder, const void* type_info) {
  return say(builder, "ju_catches", JITUNWIND_CALL(catches(jitunwind::c::type_of(type_info))));
}
ju_status ju_catches_all(ju_builder* builder) { return say(builder, "ju_catches_all", JITUNWIND_CALL(catches_all())); }
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
ju_status ju_cleans_up(ju_builder* builder) { return say(builder, "ju_cleans_up", JITUNWIND_CALL(cleans_up())); }
ju_status ju_terminates(ju_builder* builder, int64_t begin, int64_t end) {
  return say(builder, "ju_terminates", JITUNWIND_CALL(terminates(JITUNWIND_AT)));
}
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

ju_status ju_region(ju_builder* builder, int32_t insn_count) {
  return say(builder, "ju_region", JITUNWIND_CALL(region(insn_count)));
}
ju_status ju_save_reg(ju_builder* builder, int32_t when, ju_reg reg, ju_reg in) {
  return say(builder, "ju_save_reg", JITUNWIND_CALL(save_reg(when, r...)), reg, in);
}
ju_status ju_spill_sp_rel(ju_builder* builder, int32_t when, ju_reg reg, int64_t offset) {
  return say(builder, "ju_spill_sp_rel", JITUNWIND_CALL(spill_sp_rel(when, r..., offset)), reg);
}
ju_status ju_spill_fp_rel(ju_builder* builder, int32_t when, ju_reg reg, int64_t offset) {
  return say(builder, "ju_spill_fp_rel", JITUNWIND_CALL(spill_fp_rel(when, r..., offset)), reg);
}
ju_status ju_add(ju_builder* builder, int32_t when, ju_reg reg, int64_t value) {
  return say(builder, "ju_add", JITUNWIND_CALL(add(when, r..., value)), reg);
}
ju_status ju_pop_frames(ju_builder* builder, int32_t when, int64_t count) {
  return say(builder, "ju_pop_frames", JITUNWIND_CALL(pop_frames(when, count)));
}
ju_status ju_label_state(ju_builder* builder, int32_t when, uint64_t label) {
  return say(builder, "ju_label_state", JITUNWIND_CALL(label_state(when, label)));
}
ju_status ju_copy_state(ju_builder* builder, int32_t when, uint64_t label) {
  return say(builder, "ju_copy_state", JITUNWIND_CALL(copy_state(when, label)));
}
ju_status ju_alias(ju_builder* builder, int32_t when, uint64_t address) {
  return say(builder, "ju_alias", JITUNWIND_CALL(alias(when, address)));
}
ju_status ju_stop(ju_builder* builder) { return say(builder, "ju_stop", JITUNWIND_CALL(stop())); }
ju_status ju_op(ju_builder* builder, int8_t tag, int8_t predicate, int32_t when, int16_t reg, uint64_t value) {
  const unw_dyn_op_t op{tag, predicate, reg, when, value};
  return say(builder, "ju_op", JITUNWIND_CALL(op(op)));
}
