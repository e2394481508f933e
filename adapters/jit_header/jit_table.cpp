// The library's side of jitunwind_jit.h: its table, by functions of the C interface.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <tuple>
#include <vector>

#include "jitunwind/adapters/jit_header/come_p.h"
#include "jitunwind/adapters/jit_header/ready_marks_p.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/sdk/c/code_segments.h"
#include "jitunwind/sdk/c/register.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/arch/arch.h"

using jitunwind::c::answer;
using jitunwind::c::Kind;
using jitunwind::c::read_struct;
using jitunwind::c::tell;

namespace {

static_assert(sizeof(ju_jit_error) == sizeof(ju_error) && offsetof(ju_jit_error, at) == offsetof(ju_error, at) &&
              offsetof(ju_jit_error, remedy) == offsetof(ju_error, remedy) &&
              offsetof(ju_jit_error, place) == offsetof(ju_error, place) &&
              offsetof(ju_jit_error, text) == offsetof(ju_error, text));
static_assert(sizeof(ju_jit_room) == sizeof(ju_code_room));
static_assert(JU_JIT_IN_HANDLER + 0 == JU_IN_SIGNAL_HANDLER + 0);

ju_error* error_of(ju_jit_error* error) noexcept { return reinterpret_cast<ju_error*>(error); }

ju_reg register_of(std::uint16_t dwarf) noexcept {
  return static_cast<ju_reg>(jitunwind::host_arch()->elf_machine) << 16 | dwarf;
}

/// A mark as the builder's functions take it.
struct Said {
  std::array<ju_reg, 2> regs;
  std::int64_t begin, end, value;
};

using Marks = ju_builder;
using NoPlace = ju_status (*)(Marks*);
using Directive = ju_status (*)(Marks*, std::int32_t, ju_reg, std::int64_t);

ju_status call(NoPlace say, Marks* to, const Said&) { return say(to); }
/// `Rest`: one register or two, or none, and a value or none.
template <class... Rest>
ju_status call(ju_status (*say)(Marks*, std::int64_t, std::int64_t, Rest...), Marks* to, const Said& said) {
  const ju_reg* reg = said.regs.data();
  [[maybe_unused]] const auto next = [&]<class T>(T) { return std::is_same_v<T, ju_reg> ? T(*reg++) : T(said.value); };
  const std::tuple<Rest...> rest{next(Rest{})...};  // in this order
  return std::apply([&](Rest... of) { return say(to, said.begin, said.end, of...); }, rest);
}
/// Directives count instructions from the first one, -1 is in front of it.
ju_status call(Directive say, Marks* to, const Said& said) {
  if (said.end < 0) return JU_BAD_VALUE;
  const auto when = static_cast<std::int32_t>(said.end / jitunwind::host_arch()->unit) - 1;
  return say(to, when, said.regs[0], said.value);
}

ju_status add_to_sp(Marks* to, std::int32_t when, ju_reg, std::int64_t value) {
  return ju_add(to, when, register_of(jitunwind::host_arch()->sp), value);
}

template <auto Function>
ju_status say(Marks* to, const Said& said) {
  return call(Function, to, said);
}

constexpr ju_status (*k_functions[])(Marks*, const Said&) = {
    say<ju_push>,
    say<ju_push_other>,
    say<ju_enter>,
    say<ju_allocate>,
    say<ju_set_frame_pointer>,
    say<ju_move_frame_pointer>,
    say<ju_save_at_sp>,
    say<ju_save_at_fp>,
    say<ju_move_to>,
    say<ju_store_pair>,
    say<ju_store_pair_pre>,
    say<ju_store_pre>,
    say<ju_sign_return_address>,
    say<ju_realign>,
    say<ju_allocate_variable>,
    say<ju_store_sp>,
    say<ju_reload_sp>,
    say<ju_pop>,
    say<ju_pop_other>,
    say<ju_deallocate>,
    say<ju_restore_sp>,
    say<ju_leave>,
    say<ju_reload>,
    say<ju_reload_pair>,
    say<ju_load_pair_post>,
    say<ju_load_post>,
    say<ju_authenticate_return_address>,
    say<ju_restore>,
    say<ju_callee_pops>,
    say<ju_remember>,
    say<ju_ends_without_return>,
    say<ju_spill_sp_rel>,
    say<add_to_sp>,
};
static_assert(std::size(k_functions) == JU_JIT_DOES_COUNT);

/// Says all that a frame has to say. Mistakes of single marks are the builder's to tell.
ju_status say_frame(const ju_jit_frame& frame, Marks* to, ju_error* error) {
  if (frame.mark_count != 0 && !frame.marks) return tell(error, JU_NULL_POINTER, "frame.marks");
  for (std::size_t i = 0; i < frame.mark_count; ++i) {
    const ju_jit_mark& mark = frame.marks[i];
    if (mark.does >= JU_JIT_DOES_COUNT) return tell(error, JU_BAD_VALUE, "frame.marks", i);
    const Said said{{register_of(mark.reg), register_of(mark.other)}, std::int64_t{mark.end} - 1, mark.end, mark.value};
    if (k_functions[mark.does](to, said) == JU_BAD_VALUE) return tell(error, JU_BAD_VALUE, "frame.marks", i);
  }
  if (frame.personality) ju_set_personality(to, reinterpret_cast<std::uintptr_t>(frame.personality));
  return JU_OK;
}

/// A builder of marks that no call uses at this moment: making one takes as long as registering.
std::atomic<Marks*> spare_marks{nullptr};

/// The description of a frame that serves many, made by the first announcement.
ju_status describe(ju_jit_frame& frame, const ju_description*& out, ju_error* error) {
  const std::atomic_ref<void*> made(frame.made);
  out = static_cast<const ju_description*>(made.load(std::memory_order_acquire));
  if (out) [[likely]]
    return JU_OK;
  Marks* builder = nullptr;
  ju_description* description = nullptr;
  ju_status status = ju_describe(JU_CPU_HOST, nullptr, &builder, error);
  if (status == JU_OK) status = say_frame(frame, builder, error);
  if (status == JU_OK) status = ju_build(builder, &description, error);
  ju_builder_free(builder);
  if (status != JU_OK) return status;
  void* other = nullptr;
  out = description;
  if (made.compare_exchange_strong(other, description)) return JU_OK;
  ju_description_free(description);
  out = static_cast<const ju_description*>(other);
  return JU_OK;
}

ju_code code_of(const ju_jit_code& code) noexcept {
  ju_code out;
  ju_code_init(&out, code.start, code.size);
  out.name = code.name;
  out.lsda = reinterpret_cast<std::uintptr_t>(code.lsda);
  out.user = code.user;
  return out;
}

/// Registers the code by one of these functions.
template <class ByDescription, class ByMarks>
ju_status announce_frame(const ju_jit_code& code, ju_error* error, ByDescription by_description, ByMarks by_marks) {
  const ju_code place = code_of(code);
  if (code.frame->serves_many) {
    const ju_description* description = nullptr;
    if (const ju_status bad = describe(*code.frame, description, error)) return bad;
    return by_description(description, &place);
  }
  Marks* marks = spare_marks.exchange(nullptr);
  if (!marks)
    if (const ju_status bad = ju_describe_marks(JU_CPU_HOST, &marks, error)) return bad;
  ju_status status = say_frame(*code.frame, marks, error);
  if (status != JU_OK) return ju_builder_free(marks), status;
  status = by_marks(marks, &place);
  ju_builder_free(spare_marks.exchange(marks));
  return status;
}

/// Keeps the object loaded that has this memory of its own. An unloaded JIT may have announced a section there, which
/// walks read.
void keep_loaded(const void* memory) noexcept {
  Dl_info object;
  if (dladdr(memory, &object) != 0) (void)dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

ju_status announce_section(const ju_jit_code& code, ju_jit_known*& known, ju_error* error) {
  const std::uint64_t start = reinterpret_cast<std::uintptr_t>(code.start);
  const std::uint64_t entries = reinterpret_cast<std::uintptr_t>(code.eh_frame);
  const ju_range range{start, start + code.size};
  const ju_function function{start, code.size, code.name};
  ju_object_code object{};
  object.struct_size = sizeof object;
  object.code = &range;
  object.code_count = 1;
  object.eh_frame = {entries, entries + code.eh_frame_size};
  object.functions = &function;
  object.function_count = code.name ? 1 : 0;
  ju_object* made = nullptr;
  const ju_status status = ju_object_register(&object, &made, error);
  if (status == JU_OK) keep_loaded(code.eh_frame);
  known = reinterpret_cast<ju_jit_known*>(made);
  return status;
}

/// Reads the caller's structure, and tells its lines to those who want them in front of the code.
ju_status read_code(const ju_jit_code* of_caller, const ju_jit_code*& code, ju_jit_code& copy, ju_error* error) {
  if (const ju_status bad = read_struct(of_caller, code, copy, "code", error)) return bad;
  if (!code->frame && !code->eh_frame) [[unlikely]]
    return tell(error, JU_INVALID_ARGUMENT, 0, "code", "neither a frame nor eh_frame");
  if (code->line_count == 0) [[likely]]
    return JU_OK;
  return answer(error, [&] {
    if (!code->lines) return tell(error, JU_NULL_POINTER, "code.lines");
    std::string_view file;
    if (!jitunwind::c::read_string(code->file, file)) return tell(error, JU_BAD_STRING, "code.file");
    const jitunwind::FunctionsAbove* const above = jitunwind::functions_above();
    if (!above) return JU_OK;  // nobody writes perf's files
    std::vector<jitunwind::ToldLine> lines(code->line_count);
    for (std::size_t i = 0; i < code->line_count; ++i) lines[i] = {code->lines[i].offset, code->lines[i].line, file};
    const jitunwind::Addr start = reinterpret_cast<std::uintptr_t>(code->start);
    return tell(error, above->tell_perf_lines({start, start + code->size}, lines), "lines");
  });
}

/// Registers the code of a frame that was described before, or of one of its own without a builder, if its marks leave
/// nothing to judge. False: they do, or JITUNWIND_CHECK judges all.
bool announce_ready(const ju_jit_code& code, ju_registration** made, ju_status& status, ju_error* error) noexcept {
  const ju_jit_frame& frame = *code.frame;
  jitunwind::Code place{reinterpret_cast<std::uintptr_t>(code.start), code.size, {},
                        reinterpret_cast<std::uintptr_t>(code.lsda),  0,         code.user};
  if (!jitunwind::c::read_name(code.name, place.name)) return false;
  if (frame.serves_many) {
    const jitunwind::Description* description = nullptr;
    const auto* const described = static_cast<const ju_description*>(__atomic_load_n(&frame.made, __ATOMIC_ACQUIRE));
    if (!described || jitunwind::c::read_handle(described, description, nullptr) != JU_OK) return false;
    return status = jitunwind::c::hand_out(register_released(*description, place), made, error), true;
  }
  const jitunwind::Arch& arch = *jitunwind::host_arch();
  if (!frame.marks || !arch.calls_push() || jitunwind::checks_registrations()) return false;
  jitunwind::jit_header::ReadyMarks marks;
  if (!marks.read(arch, {frame.marks, frame.mark_count}, code.size)) return false;
  jitunwind::ReadyDirectives directives = marks.directives();
  directives.personality = reinterpret_cast<std::uintptr_t>(frame.personality);
  status = jitunwind::c::hand_out(jitunwind::register_released(directives, place), made, error);
  return true;
}

int announce(const ju_jit_code* of_caller, ju_jit_known** known, ju_jit_error* of_error) {
  ju_error* const error = error_of(of_error);
  ju_jit_code copy;
  const ju_jit_code* code = nullptr;
  if (const ju_status bad = read_code(of_caller, code, copy, error)) return bad;
  ju_jit_known* made = nullptr;
  auto* const registration = reinterpret_cast<ju_registration**>(&made);
  ju_status status = JU_OK;
  if (!code->frame)
    status = announce_section(*code, made, error);
  else if (!announce_ready(*code, registration, status, error))
    status = announce_frame(
        *code, error, [&](auto* by, const ju_code* place) { return ju_register(by, place, registration, error); },
        [&](Marks* by, const ju_code* place) { return ju_register_marks(by, place, registration, error); });
  if (status == JU_OK && known) *known = made;
  return status;
}

int take_back(ju_jit_known* known, ju_jit_error* error) {
  if (jitunwind::c::is_handle(known, Kind::object))
    return ju_object_cancel(reinterpret_cast<ju_object*>(known), error_of(error));
  return ju_cancel(reinterpret_cast<ju_registration*>(known), error_of(error));
}

int forget(ju_jit_frame* frame) {
  if (!frame) return JU_NULL_POINTER;
  const std::atomic_ref<void*> made(frame->made);
  return ju_description_free(static_cast<ju_description*>(made.exchange(nullptr)));
}

/// The allocator of all JITs that announce their code here, which is there for good.
ju_status segments_of_all(ju_code_segments*& out, ju_error* error) {
  static std::atomic<ju_code_segments*> segments{nullptr};
  out = segments.load(std::memory_order_acquire);
  if (out) return JU_OK;
  ju_code_segments* made = nullptr;
  if (const ju_status bad = ju_code_new(nullptr, &made, error)) return bad;
  if (segments.compare_exchange_strong(out, made)) return out = made, JU_OK;
  return ju_code_free(made);
}

int allocate(std::size_t size, ju_jit_room* room, ju_jit_error* error) {
  ju_code_segments* segments = nullptr;
  if (const ju_status bad = segments_of_all(segments, error_of(error))) return bad;
  return ju_code_allocate(segments, size, reinterpret_cast<ju_code_room*>(room), error_of(error));
}

int commit(const ju_jit_code* of_caller, ju_jit_error* of_error) {
  ju_error* const error = error_of(of_error);
  ju_jit_code copy;
  const ju_jit_code* code = nullptr;
  ju_code_segments* segments = nullptr;
  if (const ju_status bad = read_code(of_caller, code, copy, error)) return bad;
  if (const ju_status bad = segments_of_all(segments, error)) return bad;
  if (!code->frame) return tell(error, JU_INVALID_ARGUMENT, 0, "code", "code in a room needs a frame");
  return announce_frame(
      *code, error, [&](auto* by, const ju_code* place) { return ju_code_commit(segments, by, place, error); },
      [&](Marks* by, const ju_code* place) { return ju_code_commit_marks(segments, by, place, error); });
}

int release(const void* start, ju_jit_error* error) {
  ju_code_segments* segments = nullptr;
  if (const ju_status bad = segments_of_all(segments, error_of(error))) return bad;
  return ju_code_release(segments, start, error_of(error));
}

const char* text(int code) { return ju_status_text(static_cast<ju_status>(code)); }

constinit thread_local volatile bool is_called = false;  // volatile: a handler asks in between

/// A function of the table, which a handler does not enter if it has interrupted one in its thread: they allocate.
template <auto Function>
struct OneCall;
template <class... Arguments, int (*Function)(Arguments...)>
struct OneCall<Function> {
  static int run(Arguments... arguments) {
    if (is_called) return refuse(arguments...);
    is_called = true;
    const int result = Function(arguments...);
    is_called = false;
    return result;
  }

 private:
  static int refuse(const void*) { return JU_IN_SIGNAL_HANDLER; }
  static int refuse(const void*, ju_jit_error* error) { return tell(error_of(error), JU_IN_SIGNAL_HANDLER, ""); }
  template <class Argument>
  static int refuse(Argument, void*, ju_jit_error* error) {
    return refuse(nullptr, error);
  }
};

constexpr ju_jit_table k_table{sizeof(ju_jit_table),    JITUNWIND_VERSION,     OneCall<announce>::run,
                               OneCall<take_back>::run, OneCall<forget>::run,  OneCall<allocate>::run,
                               OneCall<commit>::run,    OneCall<release>::run, text};

}  // namespace

/// The symbol that the header looks for. Null: a version of it that is newer than this library.
extern "C" __attribute__((visibility("default"))) const ju_jit_table* ju_jit_functions(unsigned version) {
  return version >= 1 && version <= JU_JIT_VERSION ? &k_table : nullptr;
}

// A library that comes late brings itself to those that wait.
[[gnu::constructor]] static void come() noexcept { jitunwind::jit_header::come_to_those_that_wait(ju_jit_functions); }
