// fork in a handler behind every single instruction of register, cancel and walks. The child walks, looks up and throws
// at once; when the interrupted function has ended, it also registers and cancels. Nothing waits. Walks have many
// instructions: the test forks behind some of theirs, the proof behind all (FORK_AT_EVERY).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "tests/registry/every_instruction.h"
#include "tests/registry/procedures.h"
#include "tests/support/jit_frame.h"

namespace {

using namespace jitunwind;
using namespace registry_test;
using jitunwind::test::JitFrame;

constexpr std::uint64_t k_code = 0x60000000;
constexpr std::size_t k_every = FORK_AT_EVERY;  // of the instructions of walks

struct Scene {
  JitFrame frame;
  unw_dyn_info_t stays = procedure(k_code, 64);
  unw_dyn_info_t spare = procedure(k_code + 128, 64);
  std::size_t every = 1;
  std::size_t instructions = 0;
  std::size_t forks = 0;
  bool is_child = false;
  int wrong = 0;  // the first status that was not 0
};

/// Counts the frames below `scene.frame` that a walk sees.
std::size_t frames_through(Scene& scene) {
  std::size_t count = 0;
  (void)scene.frame(
      [](void* into) -> void* {
        for (const Frame& frame : walk_here()) *static_cast<std::size_t*>(into) += frame.pc() != 0;
        return nullptr;
      },
      &count);
  return count;
}

bool throws_through(Scene& scene) {
  try {
    (void)scene.frame([](void* thrown) -> void* { throw thrown; }, &scene);
  } catch (void* thrown) {
    return thrown == &scene;
  }
  return false;
}

bool registers_and_cancels(Scene& scene) {
  return register_procedure(&scene.spare) && lookup(scene.spare.start_ip) == &scene.spare &&
         cancel_procedure(&scene.spare) && lookup(scene.spare.start_ip) == nullptr;
}

int wrong_at_once(Scene& scene) {
  if (lookup(k_code) != &scene.stays) return 11;
  std::array<void*, 64> addresses;
  if (backtrace(addresses) < 4) return 12;
  if (frames_through(scene) < 4) return 13;
  if (!throws_through(scene)) return 14;
  return 0;
}

int wrong_at_the_end(Scene& scene) {
  if (!registers_and_cancels(scene)) return 21;
  if (const int wrong = wrong_at_once(scene)) return wrong + 20;
  return cancel_procedure(&scene.stays) && lookup(k_code) == nullptr ? 0 : 22;
}

/// The alarm kills a child that waits for a thread which the child does not have.
void fork_here(void* of) {
  Scene& scene = *static_cast<Scene*>(of);
  if (scene.wrong != 0) return EveryInstruction::stop();
  if (scene.instructions++ % scene.every != 0) return;
  ++scene.forks;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    scene.is_child = true;
    EveryInstruction::stop();
    if (const int wrong = wrong_at_once(scene)) ::_exit(wrong);
    return;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) scene.wrong = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class ForkAnywhere : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(register_procedure(&scene_.stays));
    ASSERT_EQ(wrong_at_once(scene_), 0);  // what is bound or found once
  }
  void TearDown() override { EXPECT_TRUE(cancel_procedure(&scene_.stays)); }

  template <class Operation>
  void run(const char* name, std::size_t at_every, Operation&& operation) {
    scene_.every = at_every;
    scene_.instructions = scene_.forks = 0;
    EveryInstruction every;
    const std::size_t instructions = every.run(fork_here, &scene_, operation);
    if (scene_.is_child) ::_exit(wrong_at_the_end(scene_));
    EXPECT_EQ(scene_.wrong, 0) << name << ", fork " << scene_.forks;
    EXPECT_EQ(scene_.forks, (instructions + at_every - 1) / at_every);
    EXPECT_GT(instructions, 100u);
    std::printf("%-24s %6zu forks in %6zu instructions, each child walks, throws, registers and cancels\n", name,
                scene_.forks, instructions);
  }

  Scene scene_;
};

// covers: SF10
TEST_F(ForkAnywhere, OfRegisterAndCancel) {
  unw_dyn_info_t info = procedure(k_code + 64, 64);  // in the same cell as another
  run("register", 1, [&] { (void)register_procedure(&info); });
  run("cancel", 1, [&] { (void)cancel_procedure(&info); });
  run("register again", 1, [&] { (void)register_procedure(&info); });
  run("retire", 1, [&] { (void)retire_procedures(std::array{&info}); });
}

std::array<void*, 5> innermost;
std::array<void*, 128> all;

void take_steps(std::size_t count) {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  Cursor cursor = cursor_at(context, Cursor::Top::returned_to);
  for (std::size_t i = 0; i < count; ++i)
    if (const auto moved = cursor.step(); !moved || !*moved) break;
}

void* walk_for_the_first_time(void*) {
  forget_rows(0, ~std::uint64_t{0});
  take_steps(innermost.size());
  forget_rows(0, ~std::uint64_t{0});
  (void)backtrace(innermost);
  return nullptr;
}

void* walk_again(void*) {
  take_steps(all.size());
  (void)backtrace(all);
  return nullptr;
}

[[gnu::noinline]] void* walk_again_below(int depth) {
  void* const found = depth == 0 ? walk_again(nullptr) : walk_again_below(depth - 1);
  asm volatile("");
  return found;
}

// covers: SF10
TEST_F(ForkAnywhere, OfFirstWalks) {
  run("first walk", k_every, [&] { (void)scene_.frame(walk_for_the_first_time, nullptr); });
}

TEST_F(ForkAnywhere, OfWalksOfWhatIsKnown) {
  for (int i = 0; i < 3; ++i) (void)walk_again_below(30);
  run("walk", k_every, [&] { (void)scene_.frame([](void*) { return walk_again_below(30); }, nullptr); });
}

}  // namespace
