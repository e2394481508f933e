// C++ exceptions through registered procedures, by the unwinder of the C++ run-time.
#include <gtest/gtest.h>

#include <execinfo.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "tests/exceptions/jit_frames.h"

namespace jitunwind::test {
namespace {

/// The frames between the test and the innermost function: code made at run time, and C++ functions with a destructor
/// between them.
struct Stack {
  const std::vector<const FrameOfKind*>* frames = nullptr;
  std::size_t next = 0;
  void (*innermost)() = nullptr;
  int constructed = 0;
  int destroyed = 0;
};
thread_local Stack g_stack;

struct Counted {
  Counted() { ++g_stack.constructed; }
  ~Counted() { ++g_stack.destroyed; }
};

void go_deeper() {
  const Counted counted;
  if (g_stack.next == g_stack.frames->size()) return g_stack.innermost();
  const FrameOfKind& frame = *(*g_stack.frames)[g_stack.next++];
  frame(go_deeper);
}

/// Values that a caller keeps in preserved registers while it calls.
struct Kept {
  std::array<long, 6> values{};
  int in_registers = 0;
};

[[gnu::noinline]] void save_preserved(long (&into)[6]) {
  asm volatile(
      "mov %%rbx,0(%0); mov %%rbp,8(%0); mov %%r12,16(%0); mov %%r13,24(%0); mov %%r14,32(%0); mov %%r15,40(%0)"
      :
      : "r"(into)
      : "memory");
}

/// Calls `body`, which throws, with six live values; they are unchanged after the catch.
template <class Body>
[[gnu::noinline]] Kept keep_through_catch(Body body, std::exception_ptr& caught) {
  long a = 0x1111, b = 0x2222, c = 0x3333, d = 0x4444, e = 0x5555, f = 0x6666;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  static thread_local long seen[6];
  try {
    save_preserved(seen);
    body();
  } catch (...) {
    caught = std::current_exception();
  }
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  Kept kept{{a, b, c, d, e, f}, 0};
  for (const long value : {0x1111L, 0x2222L, 0x3333L, 0x4444L, 0x5555L, 0x6666L})
    kept.in_registers += std::find(std::begin(seen), std::end(seen), value) != std::end(seen);
  return kept;
}

void run(const std::vector<const FrameOfKind*>& frames, void (*innermost)()) {
  g_stack = {&frames, 0, innermost, 0, 0};
  go_deeper();
}

void throw_error() { throw std::runtime_error("from below"); }

/// Throws through the frames and checks everything that must hold then.
void expect_caught(const std::vector<const FrameOfKind*>& frames) {
  std::exception_ptr caught;
  const Kept kept = keep_through_catch([&] { run(frames, throw_error); }, caught);
  ASSERT_TRUE(caught);
  try {
    std::rethrow_exception(caught);
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from below");
  }
  EXPECT_EQ(kept.values, (std::array<long, 6>{0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666}));
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_GE(kept.in_registers, 4) << "nothing was proven of preserved registers";
#endif
  EXPECT_EQ(g_stack.constructed, static_cast<int>(frames.size()) + 1);
  EXPECT_EQ(g_stack.destroyed, g_stack.constructed);
}

class Throw : public testing::TestWithParam<FrameKind> {};

// covers: EX14
TEST_P(Throw, ThroughOneFrame) {
  const FrameOfKind frame(GetParam());
  run({&frame}, [] {});
  EXPECT_EQ(g_stack.destroyed, 2);
  for (int i = 0; i < 3; ++i) expect_caught({&frame});
}

// covers: EX14
TEST_P(Throw, ThroughManyFrames) {
  const FrameOfKind first(GetParam());
  const FrameOfKind second(GetParam());
  std::vector<const FrameOfKind*> frames;
  for (int i = 0; i < 25; ++i) frames.insert(frames.end(), {&first, &second});
  expect_caught(frames);
}

INSTANTIATE_TEST_SUITE_P(Frames, Throw, testing::ValuesIn(k_frame_kinds),
                         [](const auto& kind) { return name_of(kind.param); });

struct AllKinds {
  AllKinds() {
    for (const FrameKind kind : k_frame_kinds) made.push_back(std::make_unique<FrameOfKind>(kind));
    for (const auto& frame : made) frames.push_back(frame.get());
  }
  std::vector<std::unique_ptr<FrameOfKind>> made;
  std::vector<const FrameOfKind*> frames;
};

TEST(ThrowThroughAll, KindsOfFrames) {
  const AllKinds all;
  expect_caught(all.frames);
}

TEST(ThrowThroughAll, WithManyProceduresRegistered) {
  for (const std::size_t count : {std::size_t{1000}, std::size_t{100'000}}) {
    const Crowd crowd(count);
    const AllKinds all;
    expect_caught(all.frames);
  }
}

TEST(ThrowThroughAll, TheExceptionAgainWithRethrow) {
  static std::exception_ptr kept;
  try {
    throw std::runtime_error("from below");
  } catch (...) {
    kept = std::current_exception();
  }
  const AllKinds all;
  std::exception_ptr caught;
  (void)keep_through_catch([&] { run(all.frames, [] { std::rethrow_exception(kept); }); }, caught);
  EXPECT_EQ(caught, kept);
  EXPECT_EQ(g_stack.destroyed, static_cast<int>(all.frames.size()) + 1);
}

/// Catches halfway, and throws the exception again.
TEST(ThrowThroughAll, CaughtAndThrownAgainBetweenFrames) {
  static const AllKinds inner;
  static int caught_between = 0;
  const AllKinds outer;
  std::exception_ptr caught;
  (void)keep_through_catch(
      [&] {
        run(outer.frames, [] {
          const Stack outside = g_stack;
          try {
            run(inner.frames, throw_error);
          } catch (const std::runtime_error&) {
            ++caught_between;
            EXPECT_EQ(g_stack.destroyed, static_cast<int>(inner.frames.size()) + 1);
            g_stack = outside;
            throw;
          }
        });
      },
      caught);
  EXPECT_TRUE(caught);
  EXPECT_EQ(caught_between, 1);
  EXPECT_EQ(g_stack.destroyed, static_cast<int>(outer.frames.size()) + 1);
}

/// A cancelled procedure is unknown, and the next one at its place is known by its own rows.
TEST(ThrowThroughReusedCode, IsRight) {
  const Place place;
  void* const in_code = static_cast<char*>(place.begin()) + 4;
  for (int i = 0; i < 3; ++i) {
    for (const FrameKind kind : k_frame_kinds) {
      const FrameOfKind frame(kind, &place);
      EXPECT_EQ(_Unwind_FindEnclosingFunction(in_code), place.begin());
      expect_caught({&frame});
    }
    EXPECT_EQ(_Unwind_FindEnclosingFunction(in_code), nullptr);
  }
}

// Backtraces.

std::array<void*, 400> g_trace;
int g_depth;
void take_backtrace() { g_depth = backtrace(g_trace.data(), static_cast<int>(g_trace.size())); }
void take_unwind_backtrace() {
  g_depth = 0;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void*) {
        g_trace[static_cast<std::size_t>(g_depth++)] = reinterpret_cast<void*>(_Unwind_GetIP(context));
        return _URC_NO_REASON;
      },
      nullptr);
}

std::vector<void*> trace() { return std::vector<void*>(g_trace.begin(), g_trace.begin() + g_depth); }

/// The frames of main and below it, which are the same in both.
void expect_same_end(const std::vector<void*>& inner, const std::vector<void*>& outer) {
  ASSERT_GT(outer.size(), 4u);
  const std::size_t common = outer.size() - 3;  // but those that take the trace, and the one that calls them
  ASSERT_GT(inner.size(), common);
  EXPECT_TRUE(std::equal(outer.end() - static_cast<std::ptrdiff_t>(common), outer.end(),
                         inner.end() - static_cast<std::ptrdiff_t>(common)));
}

void expect_reaches_main(void (*take)()) {
  take();
  const std::vector<void*> outer = trace();
  const AllKinds all;
  run(all.frames, take);
  const std::vector<void*> inner = trace();
  EXPECT_GE(inner.size(), outer.size() + 2 * all.frames.size());
  expect_same_end(inner, outer);
  for (const FrameOfKind* frame : all.frames) {
    const auto is_in = [&](void* pc) {
      const auto at = reinterpret_cast<std::uintptr_t>(pc);
      return at > frame->begin() && at < frame->begin() + frame->size();
    };
    EXPECT_EQ(std::count_if(inner.begin(), inner.end(), is_in), 1);
  }
}

TEST(Backtrace, OfTheCLibraryReachesMain) { expect_reaches_main(take_backtrace); }
TEST(Backtrace, OfTheUnwinderReachesMain) { expect_reaches_main(take_unwind_backtrace); }

TEST(Status, IsInterposed) {
  const SystemUnwinderStatus status = system_unwinder_status();
  EXPECT_EQ(status.path, SystemUnwinderPath::interposed) << status.why;
  EXPECT_TRUE(status.has_next);
  EXPECT_STREQ(path_name(status.path), "interposed");
}

}  // namespace
}  // namespace jitunwind::test
