// Profiles: the counting of stacks, and the folded text.
#include <gtest/gtest.h>

#include "jitunwind/sdk/jitstack/output_p.h"

namespace jitunwind::jitstack {
namespace {

/// Makes a stack, the innermost frame first; "jit:" marks registered code, "guess:" guesses.
SeenStack stack_of(const std::string& thread, const std::vector<std::string>& names, bool is_whole = true) {
  SeenStack stack;
  stack.thread.name = thread;
  stack.stop = is_whole ? StopReason::outermost : StopReason::no_info;
  for (const std::string& name : names) {
    SeenFrame frame{.name = name, .module = "/bin/program", .origin = RowOrigin::eh_frame};
    if (name.starts_with("jit:")) frame.name = name.substr(4), frame.module = "", frame.is_jit = true;
    if (name.starts_with("guess:")) frame.name = "", frame.module = "", frame.origin = RowOrigin::followed_code;
    stack.frames.push_back(frame);
  }
  return stack;
}

Profile profile_of(const std::vector<SeenStack>& stacks) {
  Profile profile;
  for (const SeenStack& stack : stacks) profile.add(stack);
  return profile;
}

TEST(Profile, CountsStacksByTheirFrames) {
  const Profile profile = profile_of({
      stack_of("t", {"f", "jit:j", "main"}),
      stack_of("t", {"f", "jit:j", "main"}),
      stack_of("t", {"jit:j", "main"}),
      stack_of("u", {"f", "main"}),
      stack_of("u", {"f", "guess:"}, false),
  });
  EXPECT_EQ(profile.stacks(), 5u);
  EXPECT_EQ(profile.cut_short(), 1u);
  EXPECT_EQ(profile.folded(), "t;main;j_[j] 1\nt;main;j_[j];f 2\nu;[cut short];[?];f 1\nu;main;f 1\n");
}

TEST(Profile, FoldedNamesCannotBeTakenForFrames) {
  EXPECT_EQ(profile_of({stack_of("a;b\n", {"f 7\n;g"})}).folded(), "a:b\\x0a;f 7\\x0a:g 1\n");
}

}  // namespace
}  // namespace jitunwind::jitstack
