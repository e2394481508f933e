#include "jitunwind/sdk/c/walk.h"

#include <chrono>
#include <utility>

#include "jitunwind/sdk/c/describing/builder_p.h"
#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk_thread.h"
#include "jitunwind/unwind_core/walk/address_walk_internal.h"
#include "jitunwind/unwind_core/walk/cursor_step_internal.h"
#include "jitunwind/unwind_core/walk/resume.h"

using jitunwind::Cursor;
using jitunwind::Frame;
using jitunwind::StopReason;
using jitunwind::c::check_cursor;
using jitunwind::c::frame_of;
using jitunwind::c::tell;

namespace jitunwind::c {
namespace {

static_assert(static_cast<int>(StopReason::limit) == JU_STOP_LIMIT);
static_assert(static_cast<int>(RowOrigin::leaf) == JU_ORIGIN_LEAF);
static_assert(static_cast<int>(RowOrigin::arm_exidx) == JU_ORIGIN_ARM_EXIDX);
static_assert(static_cast<int>(Guesses::bold) == JU_GUESSES_BOLD);

ju_stop_reason reason_of(StopReason reason) noexcept { return static_cast<ju_stop_reason>(reason); }
ju_origin origin_of(RowOrigin origin) noexcept { return static_cast<ju_origin>(origin); }

bool is_top(ju_top top) noexcept { return top == JU_RETURNED_TO || top == JU_INTERRUPTED; }
Cursor::Top top_of(ju_top top) noexcept {
  return top == JU_INTERRUPTED ? Cursor::Top::interrupted : Cursor::Top::returned_to;
}

ju_status tell_stop(ju_error* error, StopReason reason, const Error& why) noexcept {
  return reason == StopReason::outermost ? JU_OK : tell(error, why, stop_reason_name(reason));
}

/// Begins at the frame that called the function of `inner`, as if the walk had started there: its registers are in
/// their places after the function's return. Memory that the step proved readable is not probed again.
ju_status begin_at_caller(Cursor&& inner, ju_cursor& out, ju_error* error) noexcept {
  const auto moved = inner.step();
  if (!moved) return tell(error, moved.error());
  const Arch& arch = inner.space().arch;
  RegisterFile registers;
  for (const RegisterInfo& info : arch.registers)
    if (inner.registers().known(info.column))
      registers.set_from_register(info.column, inner.registers().value(info.column), info.dwarf);
  Cursor caller(inner.space(), registers, Cursor::Top::returned_to);
  caller.set_proven(inner.proven());
  begin(out, caller);
  return JU_OK;
}

[[gnu::noinline]] ju_status step_otherwise(Cursor& at, const KeepTicket& ticket, ju_error* error) noexcept {
  const auto moved = CursorStep::otherwise(at, ticket);
  if (!moved) return tell(error, moved.error(), "step");
  return *moved ? JU_OK : JU_END;
}

ju_status walk_on(ju_cursor& at, ju_on_frame on_frame, void* context, ju_error* error) {
  if (!on_frame) return tell(error, JU_NULL_POINTER, "on_frame");
  for (;;) {
    if (on_frame(&at, context) != 0) return tell(error, JU_STOP_UNWIND, "on_frame");
    const ju_status moved = ju_cursor_step(&at, error);
    if (moved != JU_OK) return moved == JU_END ? JU_OK : moved;
  }
}

/// `Seen`: a Frame or a ThreadFrame.
template <class Seen>
void fill(const Seen& of, std::uint32_t depth, bool is_signal_frame, ju_frame& out) noexcept {
  out.pc = of.pc();
  out.sp = of.sp();
  out.depth = depth;
  out.origin = origin_of(of.origin());
  out.is_guess = of.is_guess();
  out.is_signal_frame = is_signal_frame;
  out.is_return_address = of.address().is_return_address();
}

/// The codes of the answers stand in their order.
ju_status code_of(ThreadWalk::Answer answer) noexcept {
  using Answer = ThreadWalk::Answer;
  static_assert(JU_THREAD_GONE + static_cast<int>(Answer::busy) - static_cast<int>(Answer::no_thread) ==
                JU_THREADS_BUSY);
  if (answer == Answer::given) return JU_OK;
  return static_cast<ju_status>(JU_THREAD_GONE + static_cast<int>(answer) - static_cast<int>(Answer::no_thread));
}

ju_status write_name(const Result<ProcedureName>& name, Addr pc, uint64_t* offset) noexcept {
  if (!name) return status_of(name.error().code);
  if (offset) *offset = pc - name->start;
  return JU_OK;
}

}  // namespace
}  // namespace jitunwind::c

const char* ju_origin_name(ju_origin origin) {
  return jitunwind::origin_name(static_cast<jitunwind::RowOrigin>(origin));
}
const char* ju_stop_reason_name(ju_stop_reason reason) {
  return jitunwind::stop_reason_name(static_cast<StopReason>(reason));
}

// Functions that begin at their caller store their own registers, and step once.

ju_status ju_cursor_here(ju_cursor* cursor, ju_error* error) {
  if (const ju_status bad = jitunwind::c::check_room(cursor, error)) return bad;
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  return jitunwind::c::begin_at_caller(jitunwind::cursor_at(context, Cursor::Top::returned_to), *cursor, error);
}

ju_status ju_walk_here(ju_on_frame on_frame, void* context, ju_error* error) {
  alignas(16) std::byte registers[jitunwind::k_context_size];
  jitunwind_capture_context(registers);
  ju_cursor cursor;
  Cursor own = jitunwind::cursor_at(registers, Cursor::Top::returned_to);
  if (const ju_status bad = jitunwind::c::begin_at_caller(std::move(own), cursor, error)) return bad;
  return jitunwind::c::walk_on(cursor, on_frame, context, error);
}

int ju_backtrace(void** addresses, int size) {
  int count = jitunwind_backtrace(addresses, size, 1);
  asm volatile("" : "+r"(count));  // no tail call, which would omit another frame
  return count;
}

ju_status ju_cursor_at(ju_cursor* cursor, const void* ucontext, ju_top top, ju_error* error) {
  if (const ju_status bad = jitunwind::c::check_room(cursor, error)) return bad;
  if (!ucontext) return tell(error, JU_NULL_POINTER, "ucontext");
  if (!jitunwind::c::is_top(top)) return tell(error, JU_BAD_VALUE, "top", static_cast<unsigned>(top));
  jitunwind::c::begin(*cursor, Frame(ucontext, jitunwind::c::top_of(top), jitunwind::Guesses::confirmed));
  return JU_OK;
}

ju_status ju_walk_at(const void* ucontext, ju_top top, ju_on_frame on_frame, void* context, ju_error* error) {
  ju_cursor cursor;
  if (const ju_status bad = ju_cursor_at(&cursor, ucontext, top, error)) return bad;
  return jitunwind::c::walk_on(cursor, on_frame, context, error);
}

ju_status ju_walk(const ju_cursor* cursor, ju_on_frame on_frame, void* context, ju_error* error) {
  if (const ju_status bad = check_cursor(cursor, error)) return bad;
  ju_cursor copy = *cursor;
  return jitunwind::c::walk_on(copy, on_frame, context, error);
}

size_t ju_backtrace_at(const void* ucontext, ju_top top, void** addresses, size_t size) {
  if (!ucontext || !addresses || !jitunwind::c::is_top(top)) return 0;
  return jitunwind::backtrace(ucontext, jitunwind::c::top_of(top), {addresses, size});
}

[[gnu::cold]] ju_status ju_cursor_set_guesses(ju_cursor* cursor, ju_guesses guesses) {
  if (const ju_status bad = check_cursor(cursor, nullptr)) return bad;
  if (guesses != JU_GUESSES_CONFIRMED && guesses != JU_GUESSES_BOLD) return JU_BAD_VALUE;
  frame_of(*cursor).cursor().set_guesses(static_cast<jitunwind::Guesses>(guesses));
  return JU_OK;
}

ju_status ju_cursor_step(ju_cursor* cursor, ju_error* error) {
  if (const ju_status bad = check_cursor(cursor, error)) [[unlikely]]
    return bad;
  Cursor& at = frame_of(*cursor).cursor();
  jitunwind::KeepTicket ticket;
  if (jitunwind::CursorStep::is_made(at, ticket)) [[likely]]
    return JU_OK;
  return jitunwind::c::step_otherwise(at, ticket, error);
}

ju_stop_reason ju_cursor_stop_reason(const ju_cursor* cursor) {
  if (check_cursor(cursor, nullptr) != JU_OK) return JU_STOP_NONE;
  return jitunwind::c::reason_of(frame_of(*cursor).cursor().stop_reason());
}

uint64_t ju_frame_pc(const ju_cursor* cursor) {
  return check_cursor(cursor, nullptr) == JU_OK ? frame_of(*cursor).pc() : 0;
}
uint64_t ju_frame_sp(const ju_cursor* cursor) {
  return check_cursor(cursor, nullptr) == JU_OK ? frame_of(*cursor).sp() : 0;
}

ju_status ju_frame_get(const ju_cursor* cursor, ju_frame* frame, ju_error* error) {
  if (const ju_status bad = check_cursor(cursor, error)) return bad;
  const Frame& of = frame_of(*cursor);
  ju_frame out{};
  jitunwind::c::fill(of, of.depth(), of.is_signal_frame(), out);
  return jitunwind::c::write_struct(out, frame, "frame", error);
}

ju_status ju_frame_name(const ju_cursor* cursor, char* into, size_t room, uint64_t* offset) {
  if (const ju_status bad = check_cursor(cursor, nullptr)) return bad;
  if (!into && room != 0) return JU_NULL_POINTER;
  const Frame& frame = frame_of(*cursor);
  return jitunwind::c::write_name(frame.raw_name({into, room}), frame.pc(), offset);
}

void* ju_frame_user(const ju_cursor* cursor) {
  return check_cursor(cursor, nullptr) == JU_OK ? frame_of(*cursor).user() : nullptr;
}

[[gnu::cold]] ju_status ju_frame_procedure(const ju_cursor* cursor, ju_procedure* procedure, ju_error* error) {
  if (const ju_status bad = check_cursor(cursor, error)) return bad;
  const auto info = frame_of(*cursor).procedure();
  if (!info) return tell(error, info.error());
  ju_procedure out{};
  out.begin = info->range.begin;
  out.end = info->range.end;
  out.personality = info->handler;
  out.lsda = info->lsda;
  out.gp = info->gp;
  out.unwind_info = info->unwind_info;
  out.unwind_info_size = info->unwind_info_size;
  out.user = reinterpret_cast<void*>(static_cast<std::uintptr_t>(info->user));
  out.origin = jitunwind::c::origin_of(info->origin);
  out.format = info->format;
  return jitunwind::c::write_struct(out, procedure, "procedure", error);
}

[[gnu::cold]] ju_status ju_frame_row(const ju_cursor* cursor, char* into, size_t room, size_t* length) {
  if (const ju_status bad = check_cursor(cursor, nullptr)) return bad;
  if (!into && room != 0) return JU_NULL_POINTER;
  jitunwind::FrameRow row;
  if (const auto found = frame_of(*cursor).row(row); !found) return jitunwind::c::status_of(found.error().code);
  const size_t size = jitunwind::write_text(row, frame_of(*cursor).cursor().space().arch, {into, room});
  if (length) *length = size;
  return JU_OK;
}

namespace jitunwind::c {
namespace {

/// Checks that the register belongs to the cursor's CPU.
ju_status check_register_of(const ju_cursor* cursor, ju_reg reg, ju_error* error) noexcept {
  if (const ju_status bad = check_cursor(cursor, error)) return bad;
  return check_register(reg, frame_of(*cursor).cursor().space().arch, error);
}

}  // namespace
}  // namespace jitunwind::c

ju_status ju_frame_get_reg(const ju_cursor* cursor, ju_reg reg, uint64_t* value, ju_error* error) {
  if (const ju_status bad = jitunwind::c::check_register_of(cursor, reg, error)) return bad;
  if (!value) return tell(error, JU_NULL_POINTER, "value");
  const auto got = frame_of(*cursor).get(jitunwind::c::dwarf_of(reg));
  if (!got) return tell(error, got.error(), "reg");
  *value = *got;
  return JU_OK;
}

[[gnu::cold]] ju_status ju_frame_set_reg(ju_cursor* cursor, ju_reg reg, uint64_t value, ju_error* error) {
  if (const ju_status bad = jitunwind::c::check_register_of(cursor, reg, error)) return bad;
  return tell(error, frame_of(*cursor).cursor().set(jitunwind::c::dwarf_of(reg), value), "reg");
}

[[gnu::cold]] ju_status ju_frame_saved_at(const ju_cursor* cursor, ju_reg reg, uint64_t* address, ju_error* error) {
  if (const ju_status bad = jitunwind::c::check_register_of(cursor, reg, error)) return bad;
  if (!address) return tell(error, JU_NULL_POINTER, "address");
  const jitunwind::SaveLocation place = frame_of(*cursor).location(jitunwind::c::dwarf_of(reg));
  *address = place.kind == jitunwind::SaveLocation::Kind::memory ? place.at : 0;
  return JU_OK;
}

[[gnu::cold]] ju_status ju_resume(const ju_cursor* cursor, ju_error* error) {
  if (const ju_status bad = check_cursor(cursor, error)) return bad;
  return tell(error, jitunwind::resume(frame_of(*cursor).cursor()), "cursor");
}

[[gnu::cold]] ju_status ju_walk_thread(int32_t thread, uint64_t wait_ns, ju_frame* frames, size_t room, size_t* count,
                                       ju_error* error) {
  if (count) *count = 0;
  if (!frames && room != 0) return tell(error, JU_NULL_POINTER, "frames");
  if (room != 0 && !jitunwind::c::has_size(*frames)) return tell(error, JU_BAD_STRUCT_SIZE, "frames");
  constexpr uint64_t k_longest = 3'600'000'000'000;  // one hour, because the sum with the clock must not overflow
  const jitunwind::ThreadWalk walk =
      jitunwind::walk_thread(thread, std::chrono::nanoseconds(std::min(wait_ns, k_longest)));
  if (const ju_status none = jitunwind::c::code_of(walk.answer())) return tell(error, none, "thread");
  const size_t size = room == 0 ? 0 : frames->struct_size;
  auto* const bytes = reinterpret_cast<std::byte*>(frames);
  for (size_t i = 0; i < std::min(room, walk.size()); ++i) {
    auto* const frame = reinterpret_cast<ju_frame*>(bytes + i * size);
    ju_frame out{};
    const jitunwind::ThreadFrame& of = walk.begin()[i];
    jitunwind::c::fill(of, static_cast<std::uint32_t>(i), of.origin() == jitunwind::RowOrigin::signal_frame, out);
    frame->struct_size = size;
    (void)jitunwind::c::write_struct(out, frame, "frames", error);
  }
  if (count) *count = walk.size();
  return jitunwind::c::tell_stop(error, walk.stop_reason(), walk.stop_error());
}

ju_status ju_symbolise(uint64_t pc, int is_return_address, char* into, size_t room, uint64_t* offset) {
  if (!into && room != 0) return JU_NULL_POINTER;
  const auto at =
      is_return_address != 0 ? jitunwind::CodeAddress::returned_to(pc) : jitunwind::CodeAddress::interrupted(pc);
  const jitunwind::ThreadFrame frame(at, 0, jitunwind::RowOrigin::none);
  return jitunwind::c::write_name(frame.raw_name({into, room}), pc, offset);
}

void ju_forget_walked_stacks(void) { jitunwind::forget_walked_stacks(); }
ju_status ju_keep_at_least(size_t rows) { return jitunwind::keep_at_least(rows) ? JU_OK : JU_OUT_OF_MEMORY; }
size_t ju_kept_rows(void) { return jitunwind::kept_rows(); }
