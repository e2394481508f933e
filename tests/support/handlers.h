// What handlers of tests need to know of ThreadSanitizer.
#pragma once

#include <libunwind.h>

#include <ucontext.h>

namespace jitunwind::test {

/// What a handler can walk from: the stack that its signal interrupted. ThreadSanitizer runs handlers later than the
/// kernel does and hands them the context of then: there it is the handler's own stack.
struct HandlerContext {
#ifdef __SANITIZE_THREAD__
  static constexpr int k_kind = 0;
#else
  static constexpr int k_kind = UNW_INIT_SIGNAL_FRAME;
#endif
  unw_context_t* context;
};

}  // namespace jitunwind::test

/// Declares `name` in a handler, whose last argument is `given`. In the handler's own frame, which walks pass.
#ifdef __SANITIZE_THREAD__
#define JITUNWIND_HANDLER_CONTEXT(name, given) \
  unw_context_t name##_here;                   \
  unw_getcontext(&name##_here);                \
  (void)(given);                               \
  const ::jitunwind::test::HandlerContext name { &name##_here }
#else
#define JITUNWIND_HANDLER_CONTEXT(name, given) \
  const ::jitunwind::test::HandlerContext name { static_cast<unw_context_t*>(given) }
#endif
