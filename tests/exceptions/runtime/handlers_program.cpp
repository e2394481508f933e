// Exceptions and jumps that leave signal handlers, exhausted stacks and the runtime's own callbacks, through code made
// at run time. Compiled with -fnon-call-exceptions. Prints what happened, the same with every runtime and in every
// way to link one.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "tests/exceptions/runtime/c_jit_frame.h"
#include "tests/support/painted_stack.h"

namespace {

using Callee = jitunwind::test::CJitFrame::Callee;

int destroyed = 0;
struct Guard {
  ~Guard() { ++destroyed; }
};

const jitunwind::test::CJitFrame* frame;
[[gnu::noinline]] void* through(Callee callee) {
  const Guard guard;
  return (*frame)(callee, nullptr);
}

void handle(int flags, void (*handler)(int), int number = SIGSEGV) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags | SA_NODEFER;
  ::sigaction(number, &action, nullptr);
}
void throw_number(int number) {
  const Guard guard;
  throw number;
}

void attempt(const char* what, void (*body)()) {
  destroyed = 0;
  try {
    body();
    std::printf("%s: came back\n", what);
  } catch (int number) {
    std::printf("%s: caught %d, destroyed %d\n", what, number, destroyed);
  }
  std::fflush(stdout);
}

volatile int* volatile nowhere = nullptr;
[[gnu::noinline]] void* store(void*) {
  const Guard guard;
  *nowhere = 1;
  return nullptr;
}
void store_below() { through(store); }
/// The call in the code made at run time itself faults.
void call_beyond_addresses() { through(reinterpret_cast<Callee>(0x8000'0000'0000'0123)); }
void store_in_a_destructor() {
  struct Stores {
    ~Stores() { attempt("fault in a destructor", store_below); }
  };
  const Stores stores;
  throw 3;
}
void fault_once_more(int number) {
  static bool was_here = false;
  if (!was_here) {
    was_here = true;
    *nowhere = 1;
  }
  throw_number(number);
}
void pause_below() {
  const itimerval soon{{0, 0}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  through([](void*) -> void* {
    const Guard guard;
    for (;;) ::pause();
  });
}

/// No frame has a landing pad: the stack ends anywhere in these functions, and a prologue has no landing pad.
volatile int endless = 1;
[[gnu::noinline]] void* fill_stack(void* argument) {
  volatile char room[300];
  room[0] = 1;
  void* const result = endless != 0 ? (*frame)(fill_stack, argument) : argument;
  return room[0] == 1 ? result : nullptr;
}
void exhaust() { (void)fill_stack(nullptr); }
void exhaust_often(const char* what) {
  for (int i = 0; i < 3; ++i) attempt(what, exhaust);
}

jmp_buf outside;
/// Runs until `body` has jumped here thrice.
void attempt_jumps(const char* what, void (*body)()) {
  volatile int jumps = 0;
  while (sigsetjmp(outside, 1) != 0 || jumps == 0) {
    if (jumps == 3) break;
    jumps = jumps + 1;
    body();
  }
  std::printf("%s: jumped %d times\n", what, jumps);
  attempt("an exception behind them", [] { through([](void*) -> void* { throw 5; }); });
}

void jump_in_a_cleanup() {
  struct Jumps {
    ~Jumps() { siglongjmp(outside, 1); }
  };
  attempt("cleanup", [] {
    through([](void*) -> void* {
      const Jumps jumps;
      throw 4;
    });
  });
}
_Unwind_Reason_Code jump_at_the_end(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
                                    _Unwind_Context*, void*) {
  if ((actions & _UA_END_OF_STACK) != 0) siglongjmp(outside, 1);
  return _URC_NO_REASON;
}
void jump_in_a_stop_function() {
  static _Unwind_Exception forced;
  std::memset(&forced, 0, sizeof forced);
  through([](void*) -> void* { return _Unwind_ForcedUnwind(&forced, jump_at_the_end, nullptr), nullptr; });
}
_Unwind_Reason_Code jump_at_the_fourth(_Unwind_Context*, void* seen) {
  if (++*static_cast<int*>(seen) == 4) siglongjmp(outside, 1);
  return _URC_NO_REASON;
}
void jump_in_a_trace() {
  through([](void*) -> void* {
    int seen = 0;
    return _Unwind_Backtrace(jump_at_the_fourth, &seen), nullptr;
  });
}

void on_the_ordinary_stack() {
  handle(0, throw_number);
  attempt("fault", store_below);
  attempt("call of what is no address", call_beyond_addresses);
  attempt("exception that meets a fault", store_in_a_destructor);
  handle(0, fault_once_more);
  attempt("fault in a handler", store_below);
  handle(0, throw_number, SIGALRM);
  attempt("alarm", pause_below);
}

void on_a_signal_stack(std::size_t size) {
  jitunwind::test::PaintedStack::make(size).use();
  handle(SA_ONSTACK, throw_number);
  for (int i = 0; i < 3; ++i) attempt("fault, signal stack", store_below);
  exhaust_often("no stack is left");
  handle(SA_ONSTACK, [](int) { siglongjmp(outside, 1); });
  attempt_jumps("no stack is left", exhaust);
}

}  // namespace

int main() {
  const rlimit small{256 << 10, 256 << 10};
  ::setrlimit(RLIMIT_STACK, &small);
  frame = new jitunwind::test::CJitFrame;
  on_the_ordinary_stack();
  // Exceptions have passed here before, so that their calls are bound: binding takes more stack.
  for (const std::size_t size : {std::size_t{8} << 10, std::size_t{64} << 10}) {
    on_a_signal_stack(size);
    pthread_t thread;
    ::pthread_create(
        &thread, nullptr, [](void* of) -> void* { return on_a_signal_stack(*static_cast<const std::size_t*>(of)), of; },
        const_cast<std::size_t*>(&size));
    ::pthread_join(thread, nullptr);
  }
  attempt_jumps("cleanup", jump_in_a_cleanup);
  attempt_jumps("stop function", jump_in_a_stop_function);
  attempt_jumps("trace", jump_in_a_trace);
  std::puts("end");
}
