// The C++ walk: a range of frames with names, and the reason why it ended.
#include <jitunwind/jitunwind.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "frame_code.h"
#include "tests/libunwind/context_words.h"

namespace jitunwind {
namespace {

struct Snapshot {
  std::vector<std::string> names;
  std::vector<Frame> frames;
  StopReason reason = StopReason::none;
  std::string why;
};

Snapshot leaf_of_the_test(int value) {
  Snapshot shot;
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    shot.names.push_back(frame.name());
    shot.frames.push_back(frame);
  }
  shot.reason = walk.stop_reason();
  shot.why = walk.why();
  asm volatile("" : "+r"(value));
  return shot;
}

// The functions are called through these pointers to keep their names and their effects: the compiler makes no clones
// of them.
Snapshot (*volatile g_leaf)(int) = leaf_of_the_test;

Snapshot middle_of_the_test(int value) {
  Snapshot shot = g_leaf(value + 1);
  asm volatile("" ::: "memory");
  return shot;
}

Snapshot (*volatile g_middle)(int) = middle_of_the_test;

TEST(Walk, NamesEveryFrameUpToTheStartOfTheProgram) {
  const Snapshot shot = g_middle(1);
  EXPECT_EQ(shot.reason, StopReason::outermost) << shot.why;
  EXPECT_EQ(shot.why, "complete");
  ASSERT_GT(shot.names.size(), 5u);
  EXPECT_EQ(shot.names[0], "jitunwind::(anonymous namespace)::leaf_of_the_test(int)");
  EXPECT_EQ(shot.names[1], "jitunwind::(anonymous namespace)::middle_of_the_test(int)");
  EXPECT_NE(shot.names[2].find("NamesEveryFrameUpToTheStartOfTheProgram"), std::string::npos);
  EXPECT_EQ(shot.names.back(), "_start");
  EXPECT_NE(std::ranges::find(shot.names, "main"), shot.names.end());
  for (std::size_t i = 0; i < shot.frames.size(); ++i) {
    const Frame& frame = shot.frames[i];
    EXPECT_EQ(frame.depth(), i);
    EXPECT_EQ(frame.origin(), RowOrigin::eh_frame) << shot.names[i];
    EXPECT_FALSE(frame.is_guess());
    EXPECT_FALSE(frame.is_signal_frame());
    EXPECT_EQ(frame.offset() > 0, !shot.names[i].empty()) << "some of the C library's have no symbol";
    const auto procedure = frame.procedure();
    ASSERT_TRUE(procedure) << shot.names[i];
    EXPECT_TRUE(procedure->range.contains(frame.address().lookup()));
    if (i > 0) {
      EXPECT_GT(frame.sp(), shot.frames[i - 1].sp());
    }
  }
}

TEST(Walk, MayBeLeftAtAnyFrame) {
  int seen = 0;
  Walk walk = walk_here();
  std::optional<Frame> kept;
  for (const Frame& frame : walk) {
    kept = frame;
    if (++seen == 2) break;
  }
  EXPECT_EQ(walk.stop_reason(), StopReason::none);
  EXPECT_EQ(kept->depth(), 1u);
  FrameRow row;
  EXPECT_TRUE(kept->row(row));
}

TEST(Walk, BacktraceIsTheSameStack) {
  std::vector<void*> addresses(100);
  addresses.resize(backtrace(addresses));
  std::vector<void*> walked;
  for (const Frame& frame : walk_here())
    walked.push_back(reinterpret_cast<void*>(static_cast<std::uintptr_t>(frame.pc())));
  ASSERT_EQ(addresses.size() + 1, walked.size());
  EXPECT_TRUE(std::equal(addresses.begin(), addresses.end(), walked.begin() + 1));
}

TEST(Walk, DemanglesNamesOfCxxFunctionsOnly) {
  const auto shown = [](const char* name) -> std::string {
    static char code[16];
    const auto description = test::host::describe(name).size(sizeof code).build();
    const auto registration = register_code(*description, code, sizeof code);
    ucontext_t context{};
    jitunwind_capture_context(&context);
    test::set_word(&context, test::k_pc, reinterpret_cast<std::uintptr_t>(code + 8));
    return (*Walk(cursor_at(&context, Cursor::Top::returned_to)).begin()).name();
  };
  EXPECT_EQ(shown("_Z4callPFviE"), "call(void (*)(int))");
  for (const char* name : {"f", "i", "PKc", "_Zbad", "call"}) EXPECT_EQ(shown(name), name);
}

TEST(Walk, SaysWhereUnknownCodeEndedIt) {
  // The return address leads to data: nothing knows it, and FP does not refer to a frame record.
  ucontext_t context{};
  jitunwind_capture_context(&context);
  static char data[64];
  test::set_word(&context, test::k_pc, reinterpret_cast<std::uintptr_t>(data + 8));
  test::set_word(&context, test::k_fp, 1);
  Walk walk(cursor_at(&context, Cursor::Top::returned_to));
  int frames = 0;
  for (const Frame& frame : walk) {
    ++frames;
    EXPECT_EQ(frame.origin(), RowOrigin::none);
  }
  EXPECT_EQ(frames, 1);
  EXPECT_EQ(walk.stop_reason(), StopReason::no_info);
  EXPECT_EQ(walk.stop_error().at, reinterpret_cast<std::uintptr_t>(data + 8));
  EXPECT_NE(walk.why().find("no unwind information"), std::string::npos) << walk.why();
}

std::vector<std::string> g_interrupted_names;
std::vector<bool> g_handler_signal_frames;
int* volatile g_bad_pointer = nullptr;

void on_fault(int, siginfo_t*, void* context) {
  g_interrupted_names.clear();
  for (const Frame& frame : walk_interrupted(context)) g_interrupted_names.push_back(frame.name());
  g_handler_signal_frames.clear();
  for (const Frame& frame : walk_here()) g_handler_signal_frames.push_back(frame.is_signal_frame());
  static int landing;
  test::set_word(context, test::LoadThroughPointer::k_register, reinterpret_cast<std::uintptr_t>(&landing));
}

int faulting_function() { return test::LoadThroughPointer::load(g_bad_pointer); }

int (*volatile g_faulting)() = faulting_function;

TEST(Walk, FromASignalHandler) {
  struct sigaction action {
  }, old{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &old);
  g_faulting();
  sigaction(SIGSEGV, &old, nullptr);
  ASSERT_GT(g_interrupted_names.size(), 2u);
  EXPECT_EQ(g_interrupted_names[0], "jitunwind::(anonymous namespace)::faulting_function()");
  EXPECT_EQ(g_interrupted_names.back(), "_start");
  EXPECT_EQ(std::ranges::count(g_handler_signal_frames, true), 1);
}

}  // namespace
}  // namespace jitunwind
