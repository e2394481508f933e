// Exceptions that cannot be handled: each scenario ends the program, and the runtime prints the reason.
#include <unwind.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "tests/support/jit_frame.h"

namespace {

using jitunwind::Addr;
using jitunwind::test::JitFrame;

void* throw_it(void*) { throw std::runtime_error("thrown by a test"); }

void expect_terminate(const JitFrame& frame, JitFrame::Callee callee, void* argument) {
  try {
    frame(callee, argument);
  } catch (const std::exception&) {
    std::puts("caught");
  }
}

void cancelled_on_the_stack() {
  JitFrame frame;
  expect_terminate(
      frame,
      [](void* cancelled) -> void* {
        (void)static_cast<JitFrame*>(cancelled)->registration().cancel();
        throw std::runtime_error("thrown by a test");
      },
      &frame);
}

template <int Search, int Cleanup>
_Unwind_Reason_Code answers(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
                            _Unwind_Context*) {
  return static_cast<_Unwind_Reason_Code>(actions & _UA_SEARCH_PHASE ? Search : Cleanup);
}
template <int Search, int Cleanup>
void with_personality() {
  const JitFrame frame(reinterpret_cast<Addr>(&answers<Search, Cleanup>));
  expect_terminate(frame, throw_it, nullptr);
}

/// The description finds the caller's SP through rbx, which the frame has set to 0.
void broken_description() {
  const JitFrame frame("cfa=rbx+16 ra=[cfa-8]");
  expect_terminate(frame, throw_it, nullptr);
}
/// The description makes the frame its own caller.
void own_caller() {
  const JitFrame frame("cfa=rsp+0 ra=[cfa-8]");
  expect_terminate(frame, throw_it, nullptr);
}

/// libgcc crashes when it is asked for SP.
_Unwind_Reason_Code print_sp(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
                             _Unwind_Context* context, void*) {
  const bool at_end = (actions & _UA_END_OF_STACK) != 0;
  const auto sp = _Unwind_GetGR(context, 7);
  if (at_end || sp != _Unwind_GetCFA(context))
    std::printf("sp %#lx at_end %d\n", static_cast<unsigned long>(sp), at_end);
  return _URC_NO_REASON;
}
int sp_at_the_end() {
  _Unwind_Exception exception{};
  return _Unwind_ForcedUnwind(&exception, print_sp, nullptr) == _URC_END_OF_STACK ? 0 : 1;
}

}  // namespace

int main(int, char** argv) {
  const char* const wanted = argv[1] ? argv[1] : "";
  const auto is = [&](const char* name) { return std::strcmp(wanted, name) == 0; };
  if (is("cancelled")) cancelled_on_the_stack();
  if (is("nonsense_in_search")) with_personality<77, 8>();
  if (is("nonsense_in_cleanup")) with_personality<8, 77>();
  if (is("handler_that_handles_not")) with_personality<6, 8>();
  if (is("broken_description")) broken_description();
  if (is("own_caller")) own_caller();
  if (is("sp_at_the_end")) return sp_at_the_end();
  return 3;
}
