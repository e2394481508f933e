// A library with a copy of ours of its own, and a procedure in that one's list.
#include "tests/support/jit_frame.h"

/// In no table but that of its file.
extern "C" [[gnu::visibility("hidden"), gnu::noinline]] void* plugin_inner(jitunwind::test::JitFrame::Callee callee,
                                                                           void* argument) {
  static jitunwind::test::JitFrame frame;
  void* const result = frame(callee, argument);
  asm volatile("");  // no tail call
  return result;
}

extern "C" [[gnu::visibility("default")]] void* plugin_call(jitunwind::test::JitFrame::Callee callee, void* argument) {
  void* const result = plugin_inner(callee, argument);
  asm volatile("");  // no tail call
  return result;
}

/// Goes through a frame at a page of the caller's choice that is described anew: as it is, or as the end of the stack.
/// A copy of this library that was loaded for it has made the same number of changes to its list then.
extern "C" [[gnu::visibility("default")]] void* plugin_described_again(jitunwind::test::JitFrame::Callee callee,
                                                                       void* argument, jitunwind::Addr page,
                                                                       bool as_the_end) {
  using namespace jitunwind;
  test::JitFrame frame(test::JitFrame::On{page});
  (void)frame.registration().cancel();
  auto end = test::host::describe("ends_here");
  end.row_at(0, test::host_row("cfa=SP+8 ra=undefined"));
  const auto description = as_the_end ? end.build() : test::JitFrame::described().build();
  auto registered = register_code(*description, reinterpret_cast<void*>(page), frame.size());
  void* const result = registered ? frame(callee, argument) : nullptr;
  (void)registered->cancel();
  return result;
}
