#include "jitunwind/sdk/target.h"

#include "jitunwind/sdk/c/describing/builder_p.h"
#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/c/target.h"

using jitunwind::Target;
using jitunwind::c::answer;
using jitunwind::c::check;
using jitunwind::c::tell;

struct ju_target {
  static constexpr jitunwind::c::Kind k_kind = jitunwind::c::Kind::target;
  jitunwind::c::TargetHead head{};
  Target target;
};

namespace jitunwind::c {
namespace {

/// The codes of the reasons stand in their order.
ju_status code_of(TargetError::Reason reason) noexcept {
  static_assert(JU_NO_PROCESS + static_cast<int>(TargetError::Reason::no_samples) == JU_NO_SAMPLES);
  return static_cast<ju_status>(JU_NO_PROCESS + static_cast<int>(reason));
}

/// The text includes the remedy, which depends on more than the code.
ju_status tell_reason(ju_error* error, const TargetError& why, const char* place) {
  return tell(error, code_of(why.reason), 0, place, why.text());
}

ju_status hand_out_target(Result<Target, TargetError>&& made, ju_target** out, const char* place, ju_error* error) {
  if (!made) return tell_reason(error, made.error(), place);
  return hand_out(std::unique_ptr<ju_target>(new ju_target{.target = std::move(*made)}), out);
}

ju_status read_text(const char* of_caller, std::string& out, const char* place, ju_error* error) {
  std::string_view text;
  if (!read_string(of_caller, text)) return tell(error, JU_BAD_STRING, place);
  out = text;
  return JU_OK;
}

ju_status read_folders(const ju_folders* of_caller, TargetFolders& out, ju_error* error) {
  if (!of_caller) return JU_OK;
  ju_folders folders;
  if (const ju_status bad = read_struct(of_caller, folders, "folders", error)) return bad;
  if (const ju_status bad = read_text(folders.root, out.root, "folders.root", error)) return bad;
  if (const ju_status bad = read_text(folders.program, out.program, "folders.program", error)) return bad;
  if (folders.file_count != 0 && !folders.files) return tell(error, JU_NULL_POINTER, "folders.files");
  for (size_t i = 0; i < folders.file_count; ++i) {
    auto& file = out.files.emplace_back(folders.files[i].address, "");
    if (const ju_status bad = read_text(folders.files[i].path, file.second, "folders.files", error)) return bad;
  }
  return JU_OK;
}

ju_status read_sample(const ju_sample* of_caller, Sample& out, ju_error* error) {
  ju_sample sample;
  if (const ju_status bad = read_struct(of_caller, sample, "sample", error)) return bad;
  out.arch = arch_of(sample.cpu);
  if (!out.arch) return tell(error, JU_BAD_VALUE, "sample.cpu", static_cast<unsigned>(sample.cpu));
  if (sample.register_count != 0 && !sample.registers) return tell(error, JU_NULL_POINTER, "sample.registers");
  if (sample.stack_size != 0 && !sample.stack) return tell(error, JU_NULL_POINTER, "sample.stack");
  for (size_t i = 0; i < sample.register_count; ++i) {
    const ju_reg_value& reg = sample.registers[i];
    if (const ju_status bad = check_register(reg.reg, *out.arch, error)) return bad;
    const int column = out.arch->column(dwarf_of(reg.reg));
    if (column < 0) return tell(error, JU_BAD_REGISTER, "sample.registers", i);
    out.registers.set_from_register(column, reg.value, dwarf_of(reg.reg));
  }
  out.stack_address = sample.stack_address;
  out.stack = {static_cast<const std::byte*>(sample.stack), sample.stack_size};
  std::string_view maps;
  if (!read_string(sample.maps, maps, SIZE_MAX)) return tell(error, JU_BAD_STRING, "sample.maps");
  out.mappings = Mappings::parse(maps).all();
  out.process = sample.process;
  out.thread = sample.thread;
  return JU_OK;
}

/// Checks the number of a thread.
ju_status check_thread(const ju_target* target, size_t i, ju_error* error) {
  if (const ju_status bad = check(target, "target", error)) return bad;
  return i < target->target.threads().size() ? JU_OK : tell(error, JU_OUT_OF_RANGE, "i", i);
}

}  // namespace
}  // namespace jitunwind::c

ju_status ju_target_attach(int32_t process, ju_hold hold, ju_target** target, ju_error* error) {
  return answer(error, [&] {
    if (!target) return tell(error, JU_NULL_POINTER, "target");
    if (hold != JU_WHILE_ATTACHED && hold != JU_TO_COPY) return tell(error, JU_BAD_VALUE, "hold");
    const auto how = hold == JU_TO_COPY ? Target::Hold::to_copy : Target::Hold::while_attached;
    return jitunwind::c::hand_out_target(Target::attach(process, how), target, "process", error);
  });
}

ju_status ju_target_of_traced(int32_t process, ju_target** target, ju_error* error) {
  return answer(error, [&] {
    if (!target) return tell(error, JU_NULL_POINTER, "target");
    return jitunwind::c::hand_out_target(Target::of_traced(process), target, "process", error);
  });
}

ju_status ju_target_open_core(const char* path, const ju_folders* folders, ju_target** target, ju_error* error) {
  return answer(error, [&] {
    if (!path || !target) return tell(error, JU_NULL_POINTER, path ? "target" : "path");
    std::string file;
    jitunwind::TargetFolders where;
    if (const ju_status bad = jitunwind::c::read_text(path, file, "path", error)) return bad;
    if (const ju_status bad = jitunwind::c::read_folders(folders, where, error)) return bad;
    return jitunwind::c::hand_out_target(Target::open_core(file, where), target, "path", error);
  });
}

ju_status ju_target_of_sample(const ju_sample* sample, const ju_folders* folders, ju_target** target, ju_error* error) {
  return answer(error, [&] {
    if (!target) return tell(error, JU_NULL_POINTER, "target");
    jitunwind::Sample read;
    jitunwind::TargetFolders where;
    if (const ju_status bad = jitunwind::c::read_sample(sample, read, error)) return bad;
    if (const ju_status bad = jitunwind::c::read_folders(folders, where, error)) return bad;
    return jitunwind::c::hand_out_target(Target::from_sample(std::move(read), where), target, "sample", error);
  });
}

ju_status ju_target_free(ju_target* target) { return jitunwind::c::check_and_free(target, "target"); }

int32_t ju_target_process(const ju_target* target) {
  return check(target, "target") == JU_OK ? target->target.process() : 0;
}

ju_cpu ju_target_cpu(const ju_target* target) {
  return check(target, "target") == JU_OK ? jitunwind::c::cpu_of(target->target.arch()) : JU_CPU_HOST;
}

size_t ju_target_threads(const ju_target* target) {
  return check(target, "target") == JU_OK ? target->target.threads().size() : 0;
}

ju_status ju_target_thread(const ju_target* target, size_t i, ju_thread* thread, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = jitunwind::c::check_thread(target, i, error)) return bad;
    const jitunwind::TargetThread& of = target->target.threads()[i];
    ju_thread out{};
    out.id = of.id;
    out.signal = of.signal;
    out.is_stopped = of.is_stopped;
    (void)jitunwind::c::write_text(of.name, out.name, sizeof out.name, nullptr);
    return jitunwind::c::write_struct(out, thread, "thread", error);
  });
}

ju_status ju_target_cursor(const ju_target* target, size_t i, ju_cursor* cursor, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = jitunwind::c::check_thread(target, i, error)) return bad;
    if (const ju_status bad = jitunwind::c::check_room(cursor, error)) return bad;
    jitunwind::Walk walk = target->target.walk(target->target.threads()[i]);
    jitunwind::c::begin(*cursor, *walk.begin(), &target->head);
    return JU_OK;
  });
}

ju_status ju_target_source_line(const ju_target* target, const ju_cursor* cursor, char* file, size_t room,
                                uint32_t* line, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(target, "target", error)) return bad;
    if (const ju_status bad = jitunwind::c::check_cursor(cursor, error)) return bad;
    if (!file && room != 0) return tell(error, JU_NULL_POINTER, "file");
    const jitunwind::Frame& frame = jitunwind::c::frame_of(*cursor);
    if (&frame.cursor().space() != &target->target.space()) return tell(error, JU_INVALID_ARGUMENT, "cursor");
    const auto source = target->target.source_line(frame);
    if (!source) return tell(error, JU_NO_INFO, "cursor", frame.pc());
    if (line) *line = source->line;
    return jitunwind::c::write_text(source->file, file, room, nullptr);
  });
}

ju_status ju_target_let_go(ju_target* target, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(target, "target", error)) return bad;
    target->target.let_go();
    return JU_OK;
  });
}

ju_status ju_target_renew(ju_target* target, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(target, "target", error)) return bad;
    ++target->head.renewals;
    const auto renewed = target->target.renew();
    return renewed ? JU_OK : jitunwind::c::tell_reason(error, renewed.error(), "target");
  });
}

ju_status ju_target_renew_sample(ju_target* target, const ju_sample* sample, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(target, "target", error)) return bad;
    jitunwind::Sample read;
    if (const ju_status bad = jitunwind::c::read_sample(sample, read, error)) return bad;
    ++target->head.renewals;
    const auto renewed = target->target.renew(std::move(read));
    return renewed ? JU_OK : jitunwind::c::tell_reason(error, renewed.error(), "target");
  });
}

ju_status ju_target_list(const ju_target* target, size_t i, uint64_t* address, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(target, "target", error)) return bad;
    if (!address) return tell(error, JU_NULL_POINTER, "address");
    const auto list = target->target.registered_list(i);
    if (!list) return tell(error, list.error(), "target");
    *address = *list;
    return JU_OK;
  });
}
