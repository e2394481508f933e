// Walks by kept rows and walks that make each row, over random stacks.
#include <alloca.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <vector>

#include "sdk/local_space.h"
#include "sdk/walk.h"
#include "tests/support/jit_frame.h"

#include <libunwind.h>

namespace jitunwind::test {
namespace {

constexpr std::size_t k_jit_frames = 12;
constexpr unsigned k_static_kinds = 3;

struct Stack {
  std::vector<unsigned> kinds;  ///< from the outermost one; k_static_kinds and more: a frame made at run time
  std::size_t reached = 0;
  const std::vector<std::unique_ptr<JitFrame>>* frames = nullptr;
  std::size_t compared = 0;
};

std::vector<Addr> pcs_by(const AddressSpace& space, const void* context) {
  Cursor cursor(space, registers_from_ucontext(context, space.arch), Cursor::Top::returned_to);
  std::vector<Addr> pcs;
  do pcs.push_back(cursor.pc());
  while (cursor.step() && cursor.stop_reason() == StopReason::none);
  EXPECT_EQ(cursor.stop_reason(), StopReason::outermost);
  return pcs;
}

void compare(Stack& stack) {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  const std::vector<Addr> slow = pcs_by(local_space_without_kept_rows(), context);
  EXPECT_EQ(pcs_by(local_space(), context), slow);
  std::array<void*, 512> listed;
  const int count = unw_backtrace(listed.data(), static_cast<int>(listed.size()));
  ASSERT_EQ(static_cast<std::size_t>(count), slow.size());
  // The first address is that of another call of this function.
  for (std::size_t i = 1; i < slow.size(); ++i) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(listed[i]), slow[i]);
  stack.compared += slow.size() > stack.kinds.size();
}

void* descend(void* of);

[[gnu::noinline]] void through_plain(Stack& stack) {
  (void)descend(&stack);
  asm volatile("");
}
[[gnu::noinline]] void through_variable(Stack& stack) {
  void* volatile room = ::alloca(16 + 16 * (stack.reached % 7));
  (void)descend(&stack);
  (void)room;
}
[[gnu::noinline]] void through_realigned(Stack& stack) {
  alignas(64) volatile char room[64];
  room[0] = 0;
  (void)descend(&stack);
  (void)room[0];
}

void* descend(void* of) {
  Stack& stack = *static_cast<Stack*>(of);
  if (stack.reached == stack.kinds.size()) {
    compare(stack);
    return nullptr;
  }
  const unsigned kind = stack.kinds[stack.reached++];
  if (kind == 0) through_plain(stack);
  if (kind == 1) through_variable(stack);
  if (kind == 2) through_realigned(stack);
  if (kind >= k_static_kinds) (*(*stack.frames)[kind - k_static_kinds])(descend, &stack);
  asm volatile("");
  return nullptr;
}

/// Frames made at run time come and go between the stacks, at the same addresses.
// covers: LU27
TEST(FastWalks, GiveTheListOfSlowOnes) {
  std::mt19937 random(27);
  std::vector<std::unique_ptr<JitFrame>> frames;
  for (std::size_t i = 0; i < k_jit_frames; ++i) frames.push_back(std::make_unique<JitFrame>());
  std::size_t compared = 0;
  constexpr std::size_t k_stacks = 10'000;
  for (std::size_t i = 0; i < k_stacks; ++i) {
    auto& replaced = frames[random() % frames.size()];
    replaced.reset();
    replaced = std::make_unique<JitFrame>();
    Stack stack;
    stack.frames = &frames;
    stack.kinds.resize(random() % 24);
    for (unsigned& kind : stack.kinds) kind = static_cast<unsigned>(random() % (k_static_kinds + k_jit_frames));
    (void)descend(&stack);
    compared += stack.compared;
  }
  EXPECT_EQ(compared, k_stacks);
}

}  // namespace
}  // namespace jitunwind::test
