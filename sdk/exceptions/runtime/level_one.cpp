// Level I of the Itanium C++ ABI's exception handling: the two phases. Additions of libgcc to the ABI are as in libgcc,
// because personality routines depend on more of it than the ABI specifies. Entered from
// unwind_core/arch/*/exceptions.S.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <new>

#include "jitunwind/sdk/exceptions/runtime/unwind_frame_p.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind::eh {
namespace {

void add_name(Line& line, const UnwindFrame& frame) noexcept {
  std::array<char, 200> text;
  ProcedureName name;
  if (!find_local_name(frame.address(), text, name)) return void(line.text(" (unknown code)"));
  line.text(" (").text(text.data()).text("+").hex(frame.pc() - name.start).text(")");
}

using Known = UnwindFrame::Known;

constexpr int k_abi_version = 1;

/// A static link that takes the functions of this file takes the accessors too: contexts of the one are no contexts of
/// another runtime's.
[[gnu::used]] constexpr auto k_accessors = &_Unwind_GetIPInfo;

/// The next action of the entry, which knows the layout.
struct Outcome {
  void* go_on_at;
  std::intptr_t code;
};
Outcome returns(_Unwind_Reason_Code code) noexcept { return {nullptr, code}; }

_Unwind_Reason_Code ask_personality(int actions, _Unwind_Exception* exception, _Unwind_Context& context) {
  return context.frame.personality()(k_abi_version, static_cast<_Unwind_Action>(actions), exception->exception_class,
                                     exception, &context);
}

_Unwind_Reason_Code ask_stop(_Unwind_Stop_Fn stop, void* argument, int actions, _Unwind_Exception* exception,
                             _Unwind_Context& context) {
  return stop(k_abi_version, static_cast<_Unwind_Action>(actions), exception->exception_class, exception, &context,
              argument);
}

/// Says why a walk cannot go on, and which code tells the caller.
_Unwind_Reason_Code stopped(const UnwindFrame& frame, Known known, _Unwind_Reason_Code error) noexcept {
  if (known == Known::broken) {
    report("exception cannot pass", frame, &frame.error());
    return error;
  }
  if (!frame.is_outermost()) report("no unwind information for an exception", frame);
  return _URC_END_OF_STACK;
}

_Unwind_Reason_Code nonsense(const UnwindFrame& frame, _Unwind_Reason_Code error) noexcept {
  report("personality routine returned what it must not", frame);
  return error;
}

/// Room for a copy of a context, which std::optional would clear first: a kilobyte.
union CopiedContext {
  CopiedContext() noexcept {}
  _Unwind_Context context;
};

/// Phase 1. On _URC_HANDLER_FOUND `context` is the handler's frame. If others with a personality routine are below it,
/// `first` is the first of them, in `room`, else null: frames below it need no second lookup.
_Unwind_Reason_Code search(_Unwind_Exception* exception, _Unwind_Context& context, CopiedContext& room,
                           _Unwind_Context*& first) {
  for (;;) {
    const Known known = context.frame.look(UnwindFrame::Plain::passed);
    if (known != Known::found) return stopped(context.frame, known, _URC_FATAL_PHASE1_ERROR);
    if (context.frame.personality()) {
      const auto answer = ask_personality(_UA_SEARCH_PHASE, exception, context);
      if (answer == _URC_HANDLER_FOUND) return answer;
      if (answer != _URC_CONTINUE_UNWIND) return nonsense(context.frame, _URC_FATAL_PHASE1_ERROR);
      if (!first) first = new (&room.context) _Unwind_Context(context);
    }
    if (context.frame.step() == Known::broken) return stopped(context.frame, Known::broken, _URC_FATAL_PHASE1_ERROR);
  }
}

/// Phase 2: continues from a frame whose lookup is done, up to the next one that wants control. Returns only on errors.
JITUNWIND_LEFT_BY_A_JUMP _Unwind_Reason_Code clean_up(_Unwind_Exception* exception, _Unwind_Context& context,
                                                      Known known) {
  for (;; known = context.frame.look()) {
    const bool is_handler = context.frame.identity() == exception->private_2;
    if (known != Known::found) {
      (void)stopped(context.frame, known, _URC_FATAL_PHASE2_ERROR);
      return _URC_FATAL_PHASE2_ERROR;
    }
    if (context.frame.personality()) {
      const auto answer = ask_personality(_UA_CLEANUP_PHASE | (is_handler ? _UA_HANDLER_FRAME : 0), exception, context);
      if (answer == _URC_INSTALL_CONTEXT) {
        const Error error = context.frame.install();
        report("cannot go on at a landing pad", context.frame, &error);
        return _URC_FATAL_PHASE2_ERROR;
      }
      if (answer != _URC_CONTINUE_UNWIND) return nonsense(context.frame, _URC_FATAL_PHASE2_ERROR);
    }
    if (is_handler) {
      report("the handler that was found does not handle the exception", context.frame);
      return _URC_FATAL_PHASE2_ERROR;
    }
    if (context.frame.step() == Known::broken) return stopped(context.frame, Known::broken, _URC_FATAL_PHASE2_ERROR);
  }
}

/// The only phase of a forced unwind.
JITUNWIND_LEFT_BY_A_JUMP _Unwind_Reason_Code force(_Unwind_Exception* exception, _Unwind_Context& context) {
  const auto stop = reinterpret_cast<_Unwind_Stop_Fn>(exception->private_1 & ~(std::uint64_t{0xff} << k_tag_shift));
  const auto argument = reinterpret_cast<void*>(exception->private_2);
  for (;;) {
    const Known known = context.frame.look();
    if (known == Known::broken) {
      report("forced unwinding cannot pass", context.frame, &context.frame.error());
      return _URC_FATAL_PHASE2_ERROR;
    }
    const int actions = _UA_FORCE_UNWIND | _UA_CLEANUP_PHASE;
    const int at_end = known == Known::end ? _UA_END_OF_STACK : 0;
    if (ask_stop(stop, argument, actions | at_end, exception, context) != _URC_NO_REASON)
      return _URC_FATAL_PHASE2_ERROR;
    if (at_end) return _URC_END_OF_STACK;
    if (context.frame.personality()) {
      const auto answer = ask_personality(actions, exception, context);
      if (answer == _URC_INSTALL_CONTEXT) {
        const Error error = context.frame.install();
        report("cannot go on at a landing pad", context.frame, &error);
        return _URC_FATAL_PHASE2_ERROR;
      }
      if (answer != _URC_CONTINUE_UNWIND) return nonsense(context.frame, _URC_FATAL_PHASE2_ERROR);
    }
    if (context.frame.step() == Known::broken) {
      report("forced unwinding cannot pass", context.frame, &context.frame.error());
      return _URC_FATAL_PHASE2_ERROR;
    }
  }
}

bool is_forced(const _Unwind_Exception* exception) noexcept { return exception->private_1 != k_tag; }

}  // namespace

void report(const char* what, const UnwindFrame& frame, const Error* why) noexcept {
  Line line;
  line.text("jitunwind: ").text(what).text(" at frame ").number(frame.depth()).text(", pc ").hex(frame.pc());
  add_name(line, frame);
  if (why) line.text(": ").text(error_text(why->code)).text(", ").text(why->what).text(" at ").hex(why->at);
  line.write_to(STDERR_FILENO);
}

void give_up(const char* what) noexcept {
  Line line;
  line.text("jitunwind: ").text(what).write_to(STDERR_FILENO);
  std::abort();
}

extern "C" {

// An exception tells its walks apart: it is the last argument of contexts.

JITUNWIND_LEFT_BY_A_JUMP Outcome jitunwind_eh_raise(_Unwind_Exception* exception, void*, void*, const void* entry) {
  FrameRow row;
  _Unwind_Context context(entry, row, exception);
  begin_walk_with_room(exception, context.frame.sp());
  CopiedContext room;
  _Unwind_Context* first = nullptr;
  const auto found = search(exception, context, room, first);
  if (found != _URC_HANDLER_FOUND) return returns(found);
  exception->private_1 = k_tag;
  exception->private_2 = context.frame.identity();
  if (!first) return returns(clean_up(exception, context, Known::found));
  return returns(clean_up(exception, *first, first->frame.look_again()));
}

JITUNWIND_LEFT_BY_A_JUMP Outcome jitunwind_eh_force(_Unwind_Exception* exception, _Unwind_Stop_Fn stop, void* argument,
                                                    const void* entry) {
  exception->private_1 = k_tag | reinterpret_cast<std::uintptr_t>(stop);
  exception->private_2 = reinterpret_cast<std::uintptr_t>(argument);
  FrameRow row;
  _Unwind_Context context(entry, row, exception);
  begin_walk_with_room(exception, context.frame.sp());
  return returns(force(exception, context));
}

JITUNWIND_LEFT_BY_A_JUMP Outcome jitunwind_eh_resume(_Unwind_Exception* exception, void*, void*, const void* entry) {
  if (!is_ours(*exception)) {
    if (void* const other = other_function("_Unwind_Resume")) return {other, 0};
    give_up("_Unwind_Resume of an exception that was never raised");
  }
  FrameRow row;
  _Unwind_Context context(entry, row, exception);
  (void)(is_forced(exception) ? force(exception, context) : clean_up(exception, context, context.frame.look()));
  give_up("unwinding cannot go on behind a cleanup");
}

JITUNWIND_LEFT_BY_A_JUMP Outcome jitunwind_eh_rethrow(_Unwind_Exception* exception, void*, void*, const void* entry) {
  if (!is_ours(*exception)) {
    if (void* const other = other_function("_Unwind_Resume_or_Rethrow")) return {other, 0};
    return jitunwind_eh_raise(exception, nullptr, nullptr, entry);
  }
  if (!is_forced(exception)) return jitunwind_eh_raise(exception, nullptr, nullptr, entry);
  FrameRow row;
  _Unwind_Context context(entry, row, exception);
  (void)force(exception, context);
  give_up("forced unwinding cannot go on");
}

Outcome jitunwind_eh_backtrace(_Unwind_Trace_Fn trace, void* argument, void*, const void* entry) {
  FrameRow row;
  _Unwind_Context context(entry, row, &row);
  for (;;) {
    const Known known = context.frame.look();
    if (known == Known::broken) return returns(_URC_FATAL_PHASE1_ERROR);
    if (trace(&context, argument) != _URC_NO_REASON) return returns(_URC_FATAL_PHASE1_ERROR);
    if (known == Known::end) return returns(_URC_END_OF_STACK);
    if (context.frame.step() == Known::broken) return returns(_URC_FATAL_PHASE1_ERROR);
  }
}
}

}  // namespace jitunwind::eh
