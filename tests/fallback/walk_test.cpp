// Whole walks of this thread through code that has no unwind information, with every guess marked as one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "tests/targets/target_programs.h"

extern "C" {
int framed_without_tables(int (*call)(void), int value);
int framed_calls_leaf(const int* value);
int framed_calls_frameless(int (*call)(void), int value);
int frameless_without_tables(int (*call)(void), int value);
int frameless_with_other_rbp(int (*call)(void), int value);
int with_debug_frame(int (*call)(void), int value);
int framed_with_broken_cfi(int (*call)(void));
using Calls = int (*)(int (*)());
int call_by_scratch_register(Calls code, int (*callee)());
int call_by_preserved_register(Calls code, int (*callee)());
int jump_badly(void (*target)());
int return_badly(void (*target)());
}

namespace jitunwind::test {
namespace {

/// A walk's results. The size is fixed, because signal handlers write them, too. Names are the linker's.
struct Seen {
  std::array<char, 256> name{};
  Addr pc = 0;
  RowOrigin origin = RowOrigin::none;
  bool guess = false;
  bool is_signal_frame = false;

  bool is(const char* text) const { return std::strstr(name.data(), text) != nullptr; }
};

struct SeenWalk {
  std::array<Seen, 128> frames{};
  std::size_t count = 0;
  std::size_t listed = 0;  ///< by backtrace()
  StopReason stop = StopReason::none;
  Error error{};

  /// Returns the position of the first frame with that text in its name; `count` if there is none.
  std::size_t find(const char* text) const {
    std::size_t i = 0;
    while (i < count && !frames[i].is(text)) ++i;
    return i;
  }
};

SeenWalk seen;

__attribute__((noinline)) void note(Walk walk) {
  std::array<void*, 128> list;
  seen.listed = backtrace(list);
  seen.count = 0;
  for (const Frame& frame : walk) {
    if (seen.count == seen.frames.size()) break;
    Seen& s = seen.frames[seen.count++];
    if (!frame.raw_name(s.name)) s.name[0] = '\0';
    s.origin = frame.origin();
    s.pc = frame.pc();
    s.guess = frame.is_guess();
    s.is_signal_frame = frame.is_signal_frame();
  }
  seen.stop = walk.stop_reason();
  seen.error = walk.stop_error();
}

__attribute__((noinline)) int note_here() {
  note(walk_here());
  return 5;
}
__attribute__((noinline)) int note_boldly() {
  note(walk_here(Guesses::bold));
  return 5;
}

struct Expected {
  std::size_t frame;
  RowOrigin origin;
};

/// The walk ends at the program's start, these frames have these origins, and no other is a guess.
void expect_whole(std::initializer_list<Expected> special) {
  EXPECT_EQ(seen.stop, StopReason::outermost);
  EXPECT_LT(seen.find("main"), seen.count);
  for (const Expected& e : special) ASSERT_LT(e.frame, std::min(seen.count, seen.find("main")));
  for (std::size_t i = 0; i < seen.count; ++i) {
    const auto expected = std::ranges::find(special, i, &Expected::frame);
    const bool guess = expected != special.end() && is_guess(expected->origin);
    EXPECT_EQ(seen.frames[i].guess, guess) << i << " " << seen.frames[i].name.data();
    if (expected != special.end()) {
      EXPECT_EQ(seen.frames[i].origin, expected->origin) << i;
    }
  }
}
void expect_whole(std::size_t frame, RowOrigin origin) { expect_whole({{frame, origin}}); }

/// The walk ends at the frame behind note_here, and says why.
void expect_end_above_note(const char* name, StopReason reason, const char* why) {
  EXPECT_EQ(seen.stop, reason);
  EXPECT_STREQ(seen.error.what, why);
  ASSERT_EQ(seen.count, seen.find("note_here") + 2);
  EXPECT_TRUE(seen.frames[seen.count - 1].is(name));
  EXPECT_EQ(seen.frames[seen.count - 1].origin, RowOrigin::none);
  for (std::size_t i = 0; i < seen.count; ++i) EXPECT_FALSE(seen.frames[i].guess) << i;
}

// covers: LU20
TEST(FallbackWalk, PassesCodeWithoutTables) {
  for (auto* const code : {&framed_without_tables, &frameless_without_tables, &frameless_with_other_rbp}) {
    // Each is called directly at its place.
    int result = 0;
    if (code == &framed_without_tables) result = framed_without_tables(&note_here, 2);
    if (code == &frameless_without_tables) result = frameless_without_tables(&note_here, 2);
    if (code == &frameless_with_other_rbp) result = frameless_with_other_rbp(&note_here, 2);
    EXPECT_EQ(result, 7);
    const std::size_t guess = seen.find("note_here") + 1;
    expect_whole(guess, RowOrigin::followed_code);
    EXPECT_TRUE(seen.frames[guess].is(code == &framed_without_tables ? "framed" : "frameless"));
  }
}

// The callee does not change the frame pointer, so it tells nothing about the callee.
// covers: LU20
TEST(FallbackWalk, LosesNoCallerOfFramelessCode) {
  EXPECT_EQ(framed_calls_frameless(&note_here, 2), 7);
  const std::size_t guess = seen.find("note_here") + 1;
  expect_whole({{guess, RowOrigin::followed_code}, {guess + 1, RowOrigin::followed_code}});
  EXPECT_TRUE(seen.frames[guess].is("frameless_without_tables"));
  EXPECT_TRUE(seen.frames[guess + 1].is("framed_calls_frameless"));
}

// The program has .eh_frame for everything else.
TEST(FallbackWalk, PassesCodeThatHasOnlyADebugFrame) {
  EXPECT_EQ(with_debug_frame(&note_here, 2), 7);
  const std::size_t frame = seen.find("with_debug_frame");
  expect_whole(frame, RowOrigin::debug_frame);
  ASSERT_GT(frame, 0u);
  EXPECT_TRUE(seen.frames[frame - 1].is("note_here"));
}

/// A page of code that nobody registered.
class CodePage {
 public:
  explicit CodePage(const std::vector<std::uint8_t>& code) {
    EXPECT_NE(memory_, MAP_FAILED);
    std::ranges::copy(code, static_cast<std::uint8_t*>(memory_));
    EXPECT_EQ(::mprotect(memory_, 4096, PROT_READ | PROT_EXEC), 0);
  }
  ~CodePage() { ::munmap(memory_, 4096); }
  CodePage(const CodePage&) = delete;
  CodePage& operator=(const CodePage&) = delete;

  template <class Function>
  Function as() const {
    return reinterpret_cast<Function>(memory_);
  }

 private:
  void* memory_ = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

/// push rbp; mov rbp,rsp; call rdi; add eax,1; pop rbp; ret
constexpr std::initializer_list<std::uint8_t> k_framed_code{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7,
                                                            0x83, 0xc0, 0x01, 0x5d, 0xc3};
constexpr const char* k_unconfirmed = "code without unwind information, and its caller cannot be confirmed";

// covers: LU20
TEST(FallbackWalk, PassesCodeThatNobodyRegisteredWhereTheCallTellsOfIt) {
  const CodePage code(k_framed_code);
  EXPECT_EQ(call_by_preserved_register(code.as<Calls>(), &note_here), 6);
  const std::size_t guess = seen.find("note_here") + 1;
  expect_whole(guess, RowOrigin::followed_code);
  EXPECT_STREQ(seen.frames[guess].name.data(), "");
}

/// Two pages, the second of which is code only from the second walk on.
std::uint8_t* later_code = nullptr;
SeenWalk seen_before;

__attribute__((noinline)) int note_twice() {
  note(walk_here());
  seen_before = seen;
  EXPECT_EQ(::mprotect(later_code, 4096, PROT_READ | PROT_EXEC), 0);
  MemoryWindow window;
  const auto at = reinterpret_cast<std::uintptr_t>(later_code);
  while (!LocalMemory().is_executable(at, window).value_or(false)) ::usleep(1000);  // older kernels' answers are kept
  note(walk_here());
  return 5;
}

// Data that becomes code is followed at once.
// covers: LU20
TEST(FallbackWalk, FollowsNoCodeIntoData) {
  void* const pages = ::mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  later_code = static_cast<std::uint8_t*>(pages) + 4096;
  constexpr std::ptrdiff_t k_upto_call = 6;
  std::ranges::copy(k_framed_code, later_code - k_upto_call);
  ASSERT_EQ(::mprotect(pages, 4096, PROT_READ | PROT_EXEC), 0);
  EXPECT_EQ(call_by_preserved_register(reinterpret_cast<Calls>(later_code - k_upto_call), &note_twice), 6);
  EXPECT_EQ(seen_before.stop, StopReason::no_info);
  EXPECT_EQ(seen_before.count, seen_before.find("note_twice") + 2);
  expect_whole(seen.find("note_twice") + 1, RowOrigin::followed_code);
  ::munmap(pages, 2 * 4096);
}

// covers: LU20
TEST(FallbackWalk, EndsWhereTheCallTellsNothing) {
  const CodePage code(k_framed_code);
  EXPECT_EQ(call_by_scratch_register(code.as<Calls>(), &note_here), 6);
  expect_end_above_note("", StopReason::no_info, k_unconfirmed);
}

// covers: LU20
TEST(FallbackWalk, GuessesBoldlyForThoseWhoAsk) {
  const CodePage code(k_framed_code);
  EXPECT_EQ(call_by_scratch_register(code.as<Calls>(), &note_boldly), 6);
  expect_whole(seen.find("note_boldly") + 1, RowOrigin::frame_pointer);
}

// A bold guess can lose a caller: code that does not use rbp is left by its caller's record, so its caller is skipped.
TEST(FallbackWalk, MarksTheBoldGuessThatLosesACaller) {
  // movabs rax,note_boldly; sub rsp,8; call rax; add rsp,8; ret
  std::vector<std::uint8_t> code{0x48, 0xb8, 0,    0,    0,    0,    0,    0,    0,    0,   0x48,
                                 0x83, 0xec, 0x08, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  const auto callee = reinterpret_cast<std::uintptr_t>(&note_boldly);
  std::memcpy(code.data() + 2, &callee, sizeof callee);
  const CodePage frameless(code), framed(k_framed_code);
  (void)call_by_scratch_register(framed.as<Calls>(), frameless.as<int (*)()>());
  const std::size_t guess = seen.find("note_boldly") + 1;
  expect_whole(guess, RowOrigin::frame_pointer);
  EXPECT_TRUE(seen.frames[guess + 1].is("call_by_scratch_register")) << seen.frames[guess + 1].name.data();
}

// covers: LU20
TEST(FallbackWalk, DoesNotGuessWhereUnwindInformationIsBroken) {
  EXPECT_EQ(framed_with_broken_cfi(&note_here), 5);
  expect_end_above_note("framed_with_broken_cfi", StopReason::broken, "no remembered state to restore");
}

bool g_from_handler = false;

void on_crash(int, siginfo_t*, void* context) {
  auto* const uc = static_cast<ucontext_t*>(context);
  note(g_from_handler ? walk_here() : walk_interrupted(context));
  // The handler continues behind the call: the return address is still on top of the stack.
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

__attribute__((noinline, no_sanitize("undefined"))) int call_badly_with(void (*target)(long), long argument) {
  volatile int result = 3;
  target(argument);
  return result;
}

/// Walks every crash while it lives; execution then continues behind the call.
class CrashesAreWalked {
 public:
  CrashesAreWalked() {
    struct sigaction action {};
    action.sa_sigaction = &on_crash;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGSEGV, &action, &before_), 0);
  }
  ~CrashesAreWalked() { EXPECT_EQ(::sigaction(SIGSEGV, &before_, nullptr), 0); }
  CrashesAreWalked(const CrashesAreWalked&) = delete;
  CrashesAreWalked& operator=(const CrashesAreWalked&) = delete;

 private:
  struct sigaction before_ {};
};

// The page of the kernel's old gettimeofday() may be executed and not read: a bad pointer that it is given faults
// there. covers: LU20
TEST(FallbackWalk, StartsInCodeThatCannotBeRead) {
  constexpr Addr k_vsyscall = 0xffffffffff600000;
  const CrashesAreWalked handler;
  EXPECT_EQ(call_badly_with(reinterpret_cast<void (*)(long)>(k_vsyscall), 16), 3);
  EXPECT_EQ(seen.frames[0].pc, k_vsyscall);
  expect_whole(0, RowOrigin::followed_code);  // the page is known by its address
  EXPECT_TRUE(seen.frames[1].is("call_badly_with")) << seen.frames[1].name.data();
}

// covers: LU20
TEST(FallbackWalk, StartsBehindACallThroughABadPointer) {
  const CrashesAreWalked handler;
  static int data = 0;
  for (void* target : {static_cast<void*>(nullptr), reinterpret_cast<void*>(0x4711), static_cast<void*>(&data)}) {
    EXPECT_EQ(call_badly(reinterpret_cast<void (*)()>(target)), 3);
    expect_whole(0, RowOrigin::bad_call);
    EXPECT_TRUE(seen.frames[1].is("call_badly")) << seen.frames[1].name.data();
  }
}

// Data whose bytes are those of code that returns, and of a signal trampoline.
struct LikeCode {
  std::uint8_t bytes[16];
};
LikeCode like_code[] = {{{0xc3}},                                                   // ret
                        {{0x00, 0x00, 0x00, 0x00, 0xc3}},                           // add [rax],al twice; ret
                        {{0xb8, 1, 2, 3, 4, 0xc3}},                                 // mov eax,0x4030201; ret
                        {{0x53, 0x5b, 0xc3}},                                       // push rbx; pop rbx; ret
                        {{0xeb, 0x00, 0xc3}},                                       // jmp to the next; ret
                        {{0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}}};  // mov rax,15; syscall

// covers: LU20
TEST(FallbackWalk, FollowsNoData) {
  const CrashesAreWalked handler;
  for (LikeCode& data : like_code) {
    EXPECT_EQ(call_badly(reinterpret_cast<void (*)()>(&data)), 3);
    expect_whole(0, RowOrigin::bad_call);
    EXPECT_TRUE(seen.frames[1].is("call_badly")) << seen.frames[1].name.data();
  }
}

// covers: LU20
TEST(FallbackWalk, FollowsNoDataOfAnotherProcess) {
  static int crashed[2];
  for (LikeCode& data : like_code) {
    ASSERT_EQ(::pipe(crashed), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      die_with_the_test();
      ::signal(SIGSEGV, [](int) {
        (void)!::write(crashed[1], "", 1);
        ::pause();
      });
      call_badly(reinterpret_cast<void (*)()>(&data));
    }
    char byte;
    ASSERT_EQ(::read(crashed[0], &byte, 1), 1);
    const auto target = Target::attach(child);
    ASSERT_TRUE(target) << target.error().text();
    RowOrigin callee = RowOrigin::none, origin = RowOrigin::none;
    for (const Frame& frame : target->walk(target->threads().at(0))) {
      if (frame.name().starts_with("jitunwind::test::(anonymous namespace)::call_badly")) callee = origin;
      origin = frame.origin();
    }
    EXPECT_EQ(callee, RowOrigin::bad_call);
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(crashed[0]), ::close(crashed[1]);
  }
}

// The walk starts inside the handler and passes the frame that the kernel made. A pc of 0 does not end a stack there.
// covers: LU20
TEST(FallbackWalk, PassesABadCallBehindASignalFrame) {
  const CrashesAreWalked handler;
  static int data = 0;
  g_from_handler = true;
  for (void* target : {static_cast<void*>(nullptr), reinterpret_cast<void*>(0x4711), static_cast<void*>(&data)}) {
    EXPECT_EQ(call_badly(reinterpret_cast<void (*)()>(target)), 3);
    const std::size_t call = seen.find("call_badly");
    ASSERT_GE(call, 3u);
    EXPECT_EQ(seen.frames[call - 1].pc, reinterpret_cast<std::uintptr_t>(target));
    EXPECT_TRUE(seen.frames[call - 2].is_signal_frame);
    expect_whole(call - 1, RowOrigin::bad_call);
    EXPECT_EQ(seen.listed, seen.count);
  }
  g_from_handler = false;
}

// The call in front of the address on top of the stack led to a jump by a register with the bad pc.
// covers: LU20
TEST(FallbackWalk, StartsBehindABadJump) {
  const CrashesAreWalked handler;
  EXPECT_EQ(jump_badly(nullptr), 3);
  expect_whole(0, RowOrigin::bad_call);
  EXPECT_TRUE(seen.frames[1].is("jump_badly"));
}

// The call led elsewhere, as far as can be known: the word on top of the stack may be an old address.
// covers: LU20
TEST(FallbackWalk, EndsAtABadPcThatNoCallLedTo) {
  const CrashesAreWalked handler;
  EXPECT_EQ(return_badly(nullptr), 3);
  EXPECT_EQ(seen.stop, StopReason::no_info);
  EXPECT_EQ(seen.count, 1u);
}

// covers: LU20
TEST(FallbackWalk, StartsBehindABadCallOfCodeWithoutTables) {
  const CrashesAreWalked handler;
  (void)framed_without_tables(nullptr, 0);
  expect_whole({{0, RowOrigin::bad_call}, {1, RowOrigin::followed_code}});
  EXPECT_TRUE(seen.frames[1].is("framed_without_tables"));
}

// covers: LU20
TEST(FallbackWalk, StartsInALeafWithoutTables) {
  const CrashesAreWalked handler;
  (void)framed_calls_leaf(nullptr);
  expect_whole({{0, RowOrigin::followed_code}, {1, RowOrigin::followed_code}});
  EXPECT_TRUE(seen.frames[0].is("leaf_without_tables"));
  EXPECT_TRUE(seen.frames[1].is("framed_calls_leaf"));
}

// covers: LU20
TEST(FallbackWalk, StartsInALeafThatNobodyRegistered) {
  // push rbp; mov rbp,rsp; call leaf; pop rbp; ret; leaf: mov eax,[rdi]; ret
  const CodePage code({0x55, 0x48, 0x89, 0xe5, 0xe8, 2, 0, 0, 0, 0x5d, 0xc3, 0x8b, 0x07, 0xc3});
  const CrashesAreWalked handler;
  (void)call_by_preserved_register(code.as<Calls>(), nullptr);
  expect_whole({{0, RowOrigin::followed_code}, {1, RowOrigin::followed_code}});
  EXPECT_STREQ(seen.frames[0].name.data(), "");
  EXPECT_STREQ(seen.frames[1].name.data(), "");
}

}  // namespace
}  // namespace jitunwind::test
