// Signal contexts for handlers of tests, with and without ThreadSanitizer.
#pragma once

#include <libunwind.h>

#include <ucontext.h>

namespace jitunwind::test {

/// The context that a handler can walk from: that of the interrupted code. ThreadSanitizer runs handlers later than the
/// kernel does and passes them a stale context. There it is the context of the handler itself.
struct HandlerContext {
#ifdef __SANITIZE_THREAD__
  static constexpr int k_kind = 0;
#else
  static constexpr int k_kind = UNW_INIT_SIGNAL_FRAME;
#endif
  unw_context_t* context;
};

}  // namespace jitunwind::test

/// Declares `name` in a handler whose last argument is `given`. It is a macro because the context must be that of the
/// handler's own frame, which walks pass.
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
