// Walks from a signal handler behind every single instruction of code that a handler may interrupt: registration, the C
// library's allocator, the dynamic linker.
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tests/registry/every_instruction.h"

namespace jitunwind::test {
namespace {

/// Results of the walks of one run. A handler must not allocate, so it counts and keeps the first failure.
struct Walks {
  std::size_t complete = 0;
  std::size_t incomplete = 0;
  std::size_t other_length = 0;
  std::size_t named = 0;
  unw_word_t first_stop = 0;  ///< ip
  int first_error = 0;
};

/// Walks from the handler through the signal frame to the outermost frame, in both ways.
void walk(void* into) {
  Walks& walks = *static_cast<Walks*>(into);
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  const bool names = walks.complete % 512 == 0;
  int frames = 1, moved = 0;
  while ((moved = unw_step(&cursor)) > 0) {
    ++frames;
    std::array<char, 64> name;
    if (names && unw_get_proc_name(&cursor, name.data(), name.size(), nullptr) == 0) ++walks.named;
  }
  if (moved == 0) {
    ++walks.complete;
  } else if (walks.incomplete++ == 0) {
    walks.first_error = moved;
    unw_get_reg(&cursor, UNW_REG_IP, &walks.first_stop);
  }
  std::array<void*, 128> listed;
  if (unw_backtrace(listed.data(), static_cast<int>(listed.size())) != frames) ++walks.other_length;
}

template <class Code>
void expect_walks_at_every_instruction(Code&& code) {
  code();  // lazily bound functions are bound, first allocations made
  Walks walks;
  registry_test::EveryInstruction every;
  const std::size_t instructions = every.run(walk, &walks, code);
  testing::Test::RecordProperty("instructions", static_cast<int>(instructions));
  EXPECT_GT(instructions, 20u);
  EXPECT_EQ(walks.complete, instructions);
  EXPECT_EQ(walks.incomplete, 0u) << unw_strerror(walks.first_error) << " at " << std::hex << walks.first_stop;
  EXPECT_EQ(walks.other_length, 0u);
  EXPECT_GT(walks.named, 0u);
}

// covers: SF02 SF08
TEST(EveryInstruction, OfRegisterAndCancel) {
  static unw_dyn_info_t info;
  info.start_ip = 0x1000'0000;
  info.end_ip = 0x1000'0100;
  expect_walks_at_every_instruction([] {
    _U_dyn_register(&info);
    _U_dyn_cancel(&info);
  });
}

// covers: SF02
TEST(EveryInstruction, OfMallocAndFree) {
  expect_walks_at_every_instruction([] {
    std::array<void*, 6> blocks;
    std::size_t size = 24;
    for (void*& block : blocks) {
      block = std::malloc(size *= 7);  // small and large bins, and mmap
      asm volatile("" : "+r"(block));  // clang leaves out both calls for a block that nobody uses
    }
    for (void* block : blocks) std::free(block);
  });
}

// covers: SF02
TEST(EveryInstruction, OfDlopenAndDlclose) {
  expect_walks_at_every_instruction([] {
    if (void* const library = ::dlopen(SMALL_LIBRARY, RTLD_NOW | RTLD_LOCAL)) ::dlclose(library);
  });
}

/// Resumes into the calling frame and continues there. Its own frame is found by its frame pointer alone, which belongs
/// to another frame as soon as registers are loaded.
[[gnu::noinline]] void resume_into_caller() {
  volatile char* const room = static_cast<char*>(__builtin_alloca(16 + static_cast<std::size_t>(getpid() & 64)));
  room[0] = 0;
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  if (unw_step(&cursor) > 0) unw_resume(&cursor);
}
void (*volatile g_resume)() = resume_into_caller;

/// The top of its stack is no return address.
[[gnu::noinline]] void call_and_be_resumed() {
  std::array<volatile unsigned long, 16> room;
  for (volatile unsigned long& word : room) word = 0x4141;
  g_resume();
  room[0] = room[1];
}

// covers: SF02
TEST(EveryInstruction, OfAResumption) { expect_walks_at_every_instruction(call_and_be_resumed); }

/// Resumes into the frame that the signal interrupted, by the kernel's own way.
void resume_interrupted(int, siginfo_t*, void* interrupted) {
  const auto flags = static_cast<ucontext_t*>(interrupted)->uc_mcontext.gregs[REG_EFL] & 0x100;
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  do {
    if (unw_is_signal_frame(&cursor) <= 0) continue;
    if (unw_step(&cursor) <= 0) return;
    // Handlers begin without the trap flag.
    asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"r"(flags)
                 : "memory", "cc");
    unw_resume(&cursor);
  } while (unw_step(&cursor) > 0);
}

// covers: SF02
TEST(EveryInstruction, OfAResumptionThroughASignal) {
  struct sigaction action {
  }, before;
  action.sa_sigaction = resume_interrupted;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, &before);
  expect_walks_at_every_instruction([] { raise(SIGUSR1); });
  sigaction(SIGUSR1, &before, nullptr);
}

void* volatile g_behind_interrupted = nullptr;

/// This frame is found by its frame pointer alone.
[[gnu::noinline]] void be_interrupted() {
  volatile char* const room = static_cast<char*>(__builtin_alloca(16 + static_cast<std::size_t>(getpid() & 64)));
  room[0] = 0;
  g_behind_interrupted = __builtin_return_address(0);
  raise(SIGUSR1);
  room[0] = 1;
}
void (*volatile g_be_interrupted)() = be_interrupted;

/// The top of its stack is no return address, either.
[[gnu::noinline]] void call_and_be_interrupted() {
  std::array<volatile unsigned long, 16> room;
  for (volatile unsigned long& word : room) word = 0x4141;
  g_be_interrupted();
  room[0] = room[1];
}

/// Resumes behind the interrupted frame, over several frames, by the kernel's own way.
void resume_behind_interrupted(int, siginfo_t*, void* interrupted) {
  const auto flags = static_cast<ucontext_t*>(interrupted)->uc_mcontext.gregs[REG_EFL] & 0x100;
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  unw_word_t ip = 0;
  while (unw_get_reg(&cursor, UNW_REG_IP, &ip) == 0 && ip != reinterpret_cast<std::uintptr_t>(g_behind_interrupted))
    if (unw_step(&cursor) <= 0) return;
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"r"(flags)
               : "memory", "cc");
  unw_resume(&cursor);
}

// The kernel's frame has the registers of one frame or the other, never some of each.
// covers: SF02
TEST(EveryInstruction, OfAResumptionBehindASignal) {
  struct sigaction action {
  }, before;
  action.sa_sigaction = resume_behind_interrupted;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, &before);
  expect_walks_at_every_instruction(call_and_be_interrupted);
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace jitunwind::test
