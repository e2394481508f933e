// A caller must be code, whatever the callee's unwind information says, in each way of walking.
#include <gtest/gtest.h>
#include <libunwind.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "jitunwind/sdk/walk.h"
#include "tests/support/allowed_calls.h"

extern "C" int any_caller(int (*call)(), const void* caller);

namespace jitunwind::test {
namespace {

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
const void* pointer(Addr at) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(at)); }

/// The results of one walk from behind any_caller() in each way.
struct Seen {
  std::size_t steps = 0, listed = 0, listed_into_less = 0, by_libunwind = 0;  ///< frames from any_caller()'s callee on
  Addr last = 0;
  StopReason stop = StopReason::none;
  Error error{};
  int returned = 0;  ///< by the last unw_step()
};
Seen seen;

int note() {
  seen = {};
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    ++seen.steps;
    seen.last = frame.pc();
  }
  seen.stop = walk.stop_reason();
  seen.error = walk.stop_error();

  std::array<void*, 64> list;
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  seen.listed = backtrace(context, Cursor::Top::returned_to, list);
  // The list has this frame, any_caller(), and its caller, if that is one.
  seen.listed_into_less = backtrace(context, Cursor::Top::returned_to, std::span(list).first(3));

  unw_context_t here;
  unw_getcontext(&here);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &here);
  do ++seen.by_libunwind;
  while ((seen.returned = unw_step(&cursor)) > 0);
  return 1;
}

void walk_from(const void* caller) { ASSERT_EQ(any_caller(&note, caller), 1); }

/// Expects no frame behind any_caller().
void expect_end(StopReason stop, ErrorCode code, const char* what, Addr at) {
  EXPECT_EQ(seen.stop, stop);
  EXPECT_EQ(seen.error, (Error{code, at, ""}));
  EXPECT_STREQ(seen.error.what, what);
  EXPECT_EQ(seen.returned, -unw_error(code));
  for (const std::size_t frames : {seen.steps, seen.listed, seen.listed_into_less, seen.by_libunwind})
    EXPECT_EQ(frames, 2u) << std::hex << at;
}
void expect_broken_end(Addr at) {
  expect_end(StopReason::broken, ErrorCode::invalid_ip, "caller is not executable memory", at);
}

/// Expects one frame behind any_caller(), of code that nothing knows.
void expect_unknown_caller(Addr at) {
  EXPECT_EQ(seen.stop, StopReason::no_info);
  EXPECT_EQ(seen.last, at);
  EXPECT_EQ(seen.returned, -UNW_ENOINFO);
  for (const std::size_t frames : {seen.steps, seen.listed, seen.listed_into_less, seen.by_libunwind})
    EXPECT_EQ(frames, 3u) << std::hex << at;
}

/// Maps a page at an address that nothing else gets afterwards, because the kernel's answers are remembered for a
/// moment.
Addr page(int protection) {
  void* const at = ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return addr_of(at);
}

// covers: LU20
TEST(CallerCode, NoFrameIsWhereNoCodeIs) {
  static const int data = 0;
  const Addr on_stack = addr_of(__builtin_frame_address(0));
  for (const Addr at : {Addr{1}, Addr{0x4711}, Addr{0x40149d89d89d89d9}, Addr{1} << 47, ~Addr{0}, addr_of(&data) + 8,
                        on_stack, page(PROT_READ | PROT_WRITE) + 64, page(PROT_NONE) + 64}) {
    walk_from(pointer(at));
    expect_broken_end(at);
    walk_from(pointer(at));  // as it may be remembered
    expect_broken_end(at);
  }
}

// covers: LU20
TEST(CallerCode, AFrameIsWhereCodeMayBe) {
  const Addr code = page(PROT_READ | PROT_EXEC) + 64;
  for (int i = 0; i < 3; ++i) {
    walk_from(pointer(code));
    expect_unknown_caller(code);
  }
}

// Memory that was written becomes executable later.
TEST(CallerCode, CodeIsSeenAsSoonAsItMayBeExecuted) {
  const Addr at = page(PROT_READ | PROT_WRITE);
  walk_from(pointer(at + 64));
  expect_broken_end(at + 64);
  ASSERT_EQ(::mprotect(const_cast<void*>(pointer(at)), 4096, PROT_READ | PROT_EXEC), 0);
  walk_from(pointer(at + 64));
  expect_unknown_caller(at + 64);
}

// A trampoline may begin at the start of a mapping.
TEST(CallerCode, TheFirstByteOfAMappingMayBeReturnedTo) {
  void* const pages = ::mmap(nullptr, 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const Addr code = addr_of(pages) + 4096;
  ASSERT_EQ(::mprotect(const_cast<void*>(pointer(code)), 4096, PROT_READ | PROT_EXEC), 0);
  walk_from(pointer(code));
  expect_unknown_caller(code);
}

// covers: LU12
TEST(CallerCode, NoCallerIsTheEnd) {
  walk_from(nullptr);
  EXPECT_EQ(seen.stop, StopReason::outermost);
  EXPECT_EQ(seen.returned, 0);
  for (const std::size_t frames : {seen.steps, seen.listed, seen.listed_into_less, seen.by_libunwind})
    EXPECT_EQ(frames, 2u);
}

// covers: LU20
TEST(CallerCode, WhereTheKernelCannotBeAskedTheWalkEndsEarly) {
  const Addr code = page(PROT_READ | PROT_EXEC) + 64;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!refuse({SYS_openat}, EACCES)) ::_exit(2);
    walk_from(pointer(code));
    expect_end(StopReason::no_info, ErrorCode::no_info, "whether the caller is executable memory", code);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace jitunwind::test
