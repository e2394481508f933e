// Calls of __register_frame with the same address, and for code that has another description as well.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"
#include "tests/listen/told_section.h"

namespace jitunwind::test {
namespace {

/// Several threads call at once, and one of them finds that another was faster.
TEST(ToldCalls, MayHaveTheSameAddressFromSeveralThreads) {
  const auto frames = section_of(1);
  const void* const begin = at(frames->placed().begin);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([=] {
      for (int i = 0; i < 2000; ++i) {
        __register_frame(begin);
        __deregister_frame(begin);
      }
      __register_frame(begin);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registered(), 4u);
  EXPECT_EQ(RegisteredCode().row_at(k_code + 4), k_row);
  const auto never_told = listen_status().never_told;
  for (unsigned t = 0; t < 4; ++t) __deregister_frame(begin);
  EXPECT_EQ(listen_status().never_told, never_told);
  EXPECT_EQ(registered(), 0u);
  EXPECT_EQ(listen_status().procedures, 0u);
}

/// Each call returns its own value when it is taken back.
// covers: LS01
TEST(ToldCalls, WithTheSameAddressAreTakenBackInTheReverseOrder) {
  const auto frames = section_of(1);
  const void* const begin = at(frames->placed().begin);
  int first = 0, last = 0;
  __register_frame_info(begin, &first);
  __register_frame(begin);
  __register_frame(begin);
  __register_frame_info(begin, &last);
  EXPECT_EQ(registered(), 4u);
  for (void* const object : {static_cast<void*>(&last), static_cast<void*>(nullptr), static_cast<void*>(nullptr),
                             static_cast<void*>(&first)})
    EXPECT_EQ(__deregister_frame_info(begin), object);
  EXPECT_EQ(registered(), 0u);
}

[[gnu::noinline, gnu::aligned(16)]] int of_this_program(int number) { return number * 3 + 1; }

std::string row_of(Addr pc) {
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(pc), window);
  FrameRow row;
  const Found found = local_space().find_row(lookup, row);
  return found && *found ? std::string(origin_name(row.origin)) + ": " + to_text(row, local_space().arch) : "no row";
}

std::string name_of(Addr pc) {
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(pc), window);
  std::array<char, 128> text{};
  ProcedureName name;
  const Found found = local_space().find_name(lookup, text, name);
  return found && *found ? text.data() : "";
}

/// A reported description counts until it is taken back. libgcc behaves the same, and answers if this library does not
/// listen.
TEST(ToldCalls, CountBeforeTheTablesOfALoadedModule) {
  const Addr function = reinterpret_cast<std::uintptr_t>(&of_this_program);
  constexpr Addr k_unit = ToldFrameCode::k_code_alignment;
  const Addr within = function + 2 * k_unit;
  const auto pc = reinterpret_cast<void*>(within);
  const std::string row = row_of(within);
  const std::string name = name_of(within);
  EXPECT_EQ(row.substr(0, 10), "eh_frame: ");
  EXPECT_EQ(_Unwind_FindEnclosingFunction(pc), reinterpret_cast<void*>(function));
  const auto frames = section_of(1, function + k_unit);
  const void* const begin = at(frames->placed().begin);
  for (const bool listens : {true, false}) {
    listen(listens ? k_silent_dialects : 0);
    __register_frame(begin);
    EXPECT_EQ(row_of(within), listens ? k_row : row);
    EXPECT_EQ(name_of(within), name);
    EXPECT_EQ(_Unwind_FindEnclosingFunction(pc), reinterpret_cast<void*>(function + k_unit));
    __deregister_frame(begin);
    EXPECT_EQ(row_of(within), row);
    EXPECT_EQ(_Unwind_FindEnclosingFunction(pc), reinterpret_cast<void*>(function));
  }
  listen(k_silent_dialects);
}

/// The latest call is forgotten, and all are taken back.
TEST(ToldCalls, WithTheSameAddressAreForgotten) {
  void* const code = ::mmap(reinterpret_cast<void*>(k_code + 0x1'0000'0000), 4096, PROT_READ | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto frames = section_of(1, reinterpret_cast<std::uintptr_t>(code));
  const void* const begin = at(frames->placed().begin);
  __register_frame(begin);
  __register_frame(begin);
  ::munmap(code, 4096);
  const auto never_told = listen_status().never_told;
  for (const std::size_t left : {1u, 0u}) {
    forget_unmapped_frames(100'000);
    EXPECT_EQ(registered(), left);
    EXPECT_EQ(listen_status().procedures, left);
    __deregister_frame(begin);
  }
  EXPECT_EQ(listen_status().never_told, never_told);
  EXPECT_EQ(listen_status().procedures, 0u);
}

}  // namespace
}  // namespace jitunwind::test
