// Whole walks of this thread through code that has no unwind information, with every guess marked as one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <cstring>

#include "sdk/walk.h"

extern "C" int framed_without_tables(int (*call)(void), int value);
extern "C" int with_debug_frame(int (*call)(void), int value);

namespace jitunwind::test {
namespace {

/// What a walk saw, of fixed size: it is noted in signal handlers too. Names as the linker has them.
struct Seen {
  std::array<char, 256> name{};
  RowOrigin origin = RowOrigin::none;
  bool guess = false;

  bool is(const char* text) const { return std::strstr(name.data(), text) != nullptr; }
};

struct SeenWalk {
  std::array<Seen, 128> frames{};
  std::size_t count = 0;
  StopReason stop = StopReason::none;

  /// Position of the first frame with that in its name; `count` when there is none.
  std::size_t find(const char* text) const {
    std::size_t i = 0;
    while (i < count && !frames[i].is(text)) ++i;
    return i;
  }
};

SeenWalk seen;

void note(Walk walk) {
  seen.count = 0;
  for (const Frame& frame : walk) {
    if (seen.count == seen.frames.size()) break;
    Seen& s = seen.frames[seen.count++];
    if (!frame.raw_name(s.name)) s.name[0] = '\0';
    s.origin = frame.origin();
    s.guess = frame.is_guess();
  }
  seen.stop = walk.stop_reason();
}

__attribute__((noinline)) int note_here() {
  note(walk_here());
  return 5;
}

/// The walk ends at the program's start, the frame at `special` has that origin, and no other is a guess.
void expect_whole(std::size_t special, RowOrigin origin) {
  EXPECT_EQ(seen.stop, StopReason::outermost);
  ASSERT_LT(special, seen.count);
  EXPECT_LT(special, seen.find("main"));
  EXPECT_LT(seen.find("main"), seen.count);
  for (std::size_t i = 0; i < seen.count; ++i)
    EXPECT_EQ(seen.frames[i].guess, i == special && is_guess(origin)) << i << " " << seen.frames[i].name.data();
  EXPECT_EQ(seen.frames[special].origin, origin);
}

// covers: LU20
TEST(FallbackWalk, PassesFramePointerCodeWithoutTables) {
  EXPECT_EQ(framed_without_tables(&note_here, 2), 7);
  const std::size_t guess = seen.find("framed_without_tables");
  expect_whole(guess, RowOrigin::frame_pointer);
  ASSERT_GT(guess, 0u);
  EXPECT_TRUE(seen.frames[guess - 1].is("note_here"));
}

// The program has .eh_frame for everything else.
TEST(FallbackWalk, PassesCodeThatHasOnlyADebugFrame) {
  EXPECT_EQ(with_debug_frame(&note_here, 2), 7);
  const std::size_t frame = seen.find("with_debug_frame");
  expect_whole(frame, RowOrigin::debug_frame);
  ASSERT_GT(frame, 0u);
  EXPECT_TRUE(seen.frames[frame - 1].is("note_here"));
}

// covers: LU20
TEST(FallbackWalk, PassesUnregisteredCodeWithFramePointers) {
  // push rbp; mov rbp,rsp; call rdi; add eax,1; pop rbp; ret
  const std::uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x83, 0xc0, 0x01, 0x5d, 0xc3};
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memcpy(memory, code, sizeof code);
  ASSERT_EQ(::mprotect(memory, 4096, PROT_READ | PROT_EXEC), 0);
  const auto inner = reinterpret_cast<int (*)(int (*)())>(memory);
  EXPECT_EQ(inner(&note_here), 6);
  const std::size_t guess = seen.find("note_here") + 1;
  expect_whole(guess, RowOrigin::frame_pointer);
  EXPECT_STREQ(seen.frames[guess].name.data(), "");
  ::munmap(memory, 4096);
}

void on_crash(int, siginfo_t*, void* context) {
  auto* const uc = static_cast<ucontext_t*>(context);
  note(walk_interrupted(context));
  // On behind the call: the return address is still on top of the stack.
  std::uint64_t return_address = 0;
  std::memcpy(&return_address, reinterpret_cast<void*>(uc->uc_mcontext.gregs[REG_RSP]), sizeof return_address);
  uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(return_address);
  uc->uc_mcontext.gregs[REG_RSP] += 8;
}

// -fsanitize=function would look for a signature before the target.
__attribute__((noinline, no_sanitize("undefined"))) int call_badly(void (*target)()) {
  volatile int result = 3;  // keeps the call from becoming a jump
  target();
  return result;
}

// covers: LU20
TEST(FallbackWalk, StartsBehindACallThroughABadPointer) {
  struct sigaction action {};
  action.sa_sigaction = &on_crash;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before;
  ASSERT_EQ(::sigaction(SIGSEGV, &action, &before), 0);
  static int data = 0;
  for (void* target : {static_cast<void*>(nullptr), reinterpret_cast<void*>(0x4711), static_cast<void*>(&data)}) {
    EXPECT_EQ(call_badly(reinterpret_cast<void (*)()>(target)), 3);
    expect_whole(0, RowOrigin::bad_call);
    EXPECT_TRUE(seen.frames[1].is("call_badly")) << seen.frames[1].name.data();
  }
  ASSERT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
}

}  // namespace
}  // namespace jitunwind::test
