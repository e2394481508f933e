#include "tests/exceptions/matrix/scenarios.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "tests/exceptions/matrix/asm_frames.h"
#include "tests/exceptions/matrix/stack.h"

using namespace jitunwind::test;

namespace {

void note_value(void* object) { noted.values[noted.value_count++] = static_cast<Thrown*>(object)->value; }

// The landing pads' functions.

void (*in_handler)(void* object);
void (*in_cleanup)();

ControlWords expected_at_pads = k_own_control_words;

void caught(void* object, int, const AtPad* at) {
  ++noted.caught_in_frame;
  expect_right_at_pad(at, expected_at_pads);
  if (in_handler != nullptr) in_handler(object);
}
void cleaned(const AtPad* at) {
  ++noted.cleaned_in_frame;
  expect_right_at_pad(at, expected_at_pads);
  if (in_cleanup != nullptr) in_cleanup();
}

void (*in_outermost_handler)(void* object) = note_value;

/// A stack with `innermost` at the bottom.
void prepare(const char* outer, const char* inner, void (*innermost)(), Catches what = Catches::thrown) {
  set_at_pads({caught, cleaned});
  stack = {make_frame(outer, what), make_frame(inner, what), innermost};
}

// Exceptions.

void throw_through() {
  prepare("passes", "passes", throw_it<42>);
  for (int i = 1; i <= 3; ++i) {  // what is kept from the first throw serves the next
    noted.value_count = 0;
    expect_caught_outside();
    expect_values({42});
    expect_destroyed(i);
  }
}

void catch_in_frame() {
  prepare("catches", "passes", throw_it<42>);
  in_handler = [](void* object) {
    note_value(object);
    expect(noted.destroyed[k_between] == 1 && noted.destroyed[k_below] == 1, "objects below are gone");
    expect(noted.destroyed[k_above] == 0, "objects above are not");
  };
  expect(expect_returned() == 101, "returned from the handler");
  expect_values({42});
  expect_destroyed();
  expect(!std::current_exception(), "nothing is being handled");
}

void cleanup_in_frame() {
  prepare("cleans", "cleans", throw_it<42>);
  in_cleanup = [] { expect(noted.destroyed[k_above] == 0, "objects above are not gone"); };
  expect_caught_outside();
  expect_values({42});
  expect(noted.cleaned_in_frame == 2, "both frames cleaned up");
  expect_destroyed();
}

void rethrow() {
  prepare("catches", "catches", throw_it<42>);
  in_handler = [](void* object) {
    note_value(object);
    throw;
  };
  expect_caught_outside();
  expect_values({42, 42, 42});
  expect_destroyed();
  expect(!std::current_exception() && std::uncaught_exceptions() == 0, "nothing is being handled");
}

/// An exception inside a cleanup, another inside a handler, and one that takes the place of the one handled.
void nested() {
  prepare("catches", "cleans", throw_it<42>);
  static const Frame other = make_frame("catches");
  in_cleanup = [] {
    expect(std::uncaught_exceptions() == 1, "uncaught, in the cleanup");
    expect(call(other, throw_it<45>) == 101, "caught inside a cleanup");
  };
  in_handler = [](void* object) {
    note_value(object);
    if (static_cast<Thrown*>(object)->value != 42) return;
    expect(call(other, throw_it<43>) == 101, "caught inside a handler");
    throw_it<44>();
  };
  expect_caught_outside();
  expect_values({45, 42, 43, 44});
  expect_destroyed();
  expect(!std::current_exception() && std::uncaught_exceptions() == 0, "nothing is being handled");
}

/// An exception of another language is caught outside, and in a frame. The catching code deletes it.
void foreign() {
  static _Unwind_Exception exception;
  static int deleted;
  std::memcpy(&exception.exception_class, "JITUTEST", 8);
  exception.exception_cleanup = [](_Unwind_Reason_Code code, _Unwind_Exception*) {
    expect(code == _URC_FOREIGN_EXCEPTION_CAUGHT, "reason for the deletion");
    ++deleted;
  };
  const auto raise = [] {
    (void)_Unwind_RaiseException(&exception);
    expect(false, "_Unwind_RaiseException does not return");
  };
  in_outermost_handler = [](void*) { expect(deleted == 0, "not deleted early"); };
  prepare("passes", "cleans", raise);
  expect_caught_outside();
  expect(deleted == 1 && noted.cleaned_in_frame == 1, "deleted outside, behind a cleanup");
  prepare("catches", "cleans", raise, Catches::everything);
  expect(expect_returned() == 101, "returned from the handler");
  expect(deleted == 2 && noted.caught_in_frame == 1 && noted.cleaned_in_frame == 2, "deleted by the frame");
  expect_destroyed(2);
}

// Threads that end.

std::atomic<bool> waiting, cancelled;

/// The thread stands here until a signal ends it, whose handler does not return.
void wait_for_signal() {
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  static_assert(sizeof waiting == 1);
  stand_still(&waiting);
}
/// The thread ends itself by a call.
void wait_for_call() {
  waiting = true;
  while (!cancelled) ::sched_yield();
  ::pthread_testcancel();
}

/// Ends a thread with the stack in it, and checks what it leaves.
void* end_thread(bool by_cancelling) {
  pthread_t thread;
  void* result = nullptr;
  waiting = cancelled = false;
  ::pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        load(k_own_control_words);
        (void)above();
        return nullptr;
      },
      nullptr);
  if (by_cancelling) {
    while (!waiting) ::usleep(100);
    ::pthread_cancel(thread);
    cancelled = true;
  }
  ::pthread_join(thread, &result);
  return result;
}

/// Linux enters handlers with control words of its own.
ControlWords control_words_in_handler() {
  static ControlWords in_handler;
  (void)std::signal(SIGUSR1, [](int) { in_handler = control_words(); });
  (void)std::raise(SIGUSR1);
  return in_handler;
}

void cancel() {
  expected_at_pads = control_words_in_handler();
  prepare("cleans", "passes", wait_for_signal);
  expect(end_thread(true) == PTHREAD_CANCELED, "cancelled");
  expect(noted.cleaned_in_frame == 1, "the frame cleaned up");
  expect_destroyed();
}

void exit_thread() {
  prepare("cleans", "passes", [] { ::pthread_exit(&waiting); });
  expect(end_thread(false) == &waiting, "result of the thread");
  expect(noted.cleaned_in_frame == 1, "the frame cleaned up");
  expect_destroyed();
}

/// The handlers for everything throw on, as they must.
void cancel_rethrown() {
  prepare("catches", "catches", wait_for_call, Catches::everything);
  in_handler = [](void*) { throw; };
  expect(end_thread(true) == PTHREAD_CANCELED, "cancelled");
  expect(noted.caught_in_frame == 2, "both frames caught it");
  expect_destroyed();
}

// Jumps without the unwinder.

jmp_buf outside;
/// No destructor runs; afterwards everything is as before.
void jump_past() {
  prepare("cleans", "passes", [] { ::longjmp(outside, 1); });
  Arrival arrival{};
  jumping_frame([](void*) { (void)above(); }, nullptr, &arrival, outside);
  expect(arrival.at_landing == 1 && preserved_are_magic(arrival), "jumped, with the registers of setjmp()");
  for (int place = 0; place < k_places; ++place) {
    expect(noted.constructed[place] == 1 && noted.destroyed[place] == 0, "no destructor has run");
    noted.constructed[place] = 0;
  }
  expect(noted.cleaned_in_frame == 0, "nor a cleanup");
  stack.innermost = throw_it<42>;
  expect_caught_outside();
  expect_values({42});
  expect_destroyed();
}

struct Trace {
  std::array<std::uintptr_t, 200> pcs;
  std::size_t depth = 0;
  _Unwind_Reason_Code end = _URC_NO_REASON;
};
extern "C" void _start();

Trace take_trace() {
  Trace trace;
  trace.end = _Unwind_Backtrace(
      [](_Unwind_Context* context, void* argument) {
        Trace& out = *static_cast<Trace*>(argument);
        if (out.depth == out.pcs.size()) return _URC_NORMAL_STOP;
        const std::uintptr_t pc = _Unwind_GetIP(context);
        if (pc != 0) out.pcs[out.depth++] = pc;  // libgcc calls once more behind the end
        return _URC_NO_REASON;
      },
      &trace);
  return trace;
}

[[noreturn]] void report_uncaught() {
  const Trace trace = take_trace();
  const auto frames_in = [&](const MatrixFrame* frame) {
    int count = 0;
    for (std::size_t i = 0; i < trace.depth; ++i) count += matrix_contains(frame, trace.pcs[i]);
    return count;
  };
  if (stack.outer.made != nullptr)
    expect(frames_in(stack.outer.made) == 1 && frames_in(stack.inner.made) == 1, "frames are in the trace");
  constexpr std::uintptr_t k_size_of_start = 64;
  const std::uintptr_t last = trace.depth > 0 ? trace.pcs[trace.depth - 1] : 0;
  expect(last - reinterpret_cast<std::uintptr_t>(&_start) < k_size_of_start, "the trace goes to the program's start");
  for (int place = 0; place < k_places; ++place)
    expect(noted.constructed[place] == 1 && noted.destroyed[place] == 0, "nothing is unwound");
  expect(std::current_exception() != nullptr, "the exception is known");
  end_program();
}

void uncaught() {
  prepare("cleans", "passes", throw_it<42>);
  std::set_terminate(report_uncaught);
  (void)above();
  expect(false, "not reached");
}

constexpr Scenario k_scenarios[]{{"throw_through", throw_through},
                                 {"catch_in_frame", catch_in_frame},
                                 {"cleanup_in_frame", cleanup_in_frame},
                                 {"rethrow", rethrow},
                                 {"nested", nested},
                                 {"foreign", foreign},
                                 {"cancel", cancel},
                                 {"cancel_rethrown", cancel_rethrown},
                                 {"exit_thread", exit_thread},
                                 {"jump_past", jump_past},
                                 {"uncaught", uncaught},
                                 {"threads", throw_in_threads}};

}  // namespace

extern "C" void catching_frame_caught(void* object) {
  ++noted.caught_outside;
  expect(control_words() == k_own_control_words, "control words where it is caught");
  in_outermost_handler(object);
}

std::span<const Scenario> jitunwind::test::all_scenarios() { return k_scenarios; }
