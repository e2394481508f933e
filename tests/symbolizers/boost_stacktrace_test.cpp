// Boost.Stacktrace names frames by dladdr(), and lists them by libgcc's unwinder.
#include <gtest/gtest.h>

#include <boost/stacktrace.hpp>
#include <string>

#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

TEST(BoostStacktrace, NamesJitFrames) {
  const JitFrame frame;
  std::string text;
  frame(
      [](void* into) -> void* {
        *static_cast<std::string*>(into) = boost::stacktrace::to_string(boost::stacktrace::stacktrace());
        return into;
      },
      &text);
  const auto at = text.find("# jit_frame");
  ASSERT_NE(at, text.npos) << text;
  EXPECT_NE(text.find("# ", at + 1), text.npos) << "its caller: " << text;
}

}  // namespace
}  // namespace jitunwind::test
