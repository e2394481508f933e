// A process with hundreds of libraries, where each frame of a stack is in another one, while libraries come and go.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/jit_arena.h"
#include "bench/libraries/many_libraries.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using bench::LoadedLibrary;
using bench::StackFunction;

constexpr std::size_t k_libraries = MANY_LIBRARIES_COUNT;
constexpr std::size_t k_most_addresses = 1024;
#ifdef JITUNWIND_TEST_SANITIZED  // loading is slow, and memory theirs as well
constexpr bool k_is_sanitized = true;
#else
constexpr bool k_is_sanitized = false;
#endif

/// Addresses that walks from one place have found.
struct Found {
  std::vector<Addr> by_backtrace, by_cursor, slowly;
};

struct Scene : bench::Context {
  Found found;
};

std::vector<Addr> addresses_in(const AddressSpace& space, const void* context) {
  std::vector<Addr> all;
  Cursor cursor(space, registers_from_ucontext(context, space.arch), Cursor::Top::returned_to);
  do all.push_back(cursor.pc());
  while (cursor.step() && cursor.stop_reason() == StopReason::none);
  return all;
}

void walk(bench::Context* context) {
  Found& found = static_cast<Scene*>(context)->found;
  alignas(16) std::byte captured[k_context_size];
  jitunwind_capture_context(captured);
  std::array<void*, k_most_addresses> listed;
  const std::size_t count = backtrace(captured, Cursor::Top::returned_to, listed);
  found.by_backtrace.clear();
  for (std::size_t i = 0; i < count; ++i) found.by_backtrace.push_back(reinterpret_cast<std::uintptr_t>(listed[i]));
  found.by_cursor = addresses_in(local_space(), captured);
  found.slowly = addresses_in(local_space_without_kept_rows(), captured);
}

/// Frames of the functions, from the innermost one, on the walked stack.
bool has_frames_of(const std::vector<Addr>& walked, const std::vector<StackFunction>& functions) {
  constexpr Addr k_longest = 128;
  if (walked.size() < functions.size() + 1) return false;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Addr function = reinterpret_cast<std::uintptr_t>(functions[functions.size() - 1 - i]);
    if (walked[i + 1] - function > k_longest) return false;
  }
  return true;
}

void expect_right_walks(const std::vector<StackFunction>& functions) {
  std::vector<StackFunction> all = functions;
  all.push_back(walk);
  Scene scene;
  scene.next = all.data() + 1;
  all.front()(&scene);
  ASSERT_TRUE(has_frames_of(scene.found.slowly, functions));
  ASSERT_EQ(scene.found.by_cursor, scene.found.slowly);
  ASSERT_EQ(scene.found.by_backtrace, scene.found.slowly);
}

/// Returns the KiB of this process that no file backs.
long anonymous_memory() {
  for (const std::string& line : lines_of(text_of_file("/proc/self/status")))
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  return 0;
}

TEST(ManyLibraries, WalksThroughAllOfThem) {
  const std::vector<LoadedLibrary> libraries = bench::load_libraries(k_libraries);
  std::vector<StackFunction> functions;
  for (const LoadedLibrary& library : libraries) functions.push_back(library.function());
  std::mt19937 random(6);
  std::shuffle(functions.begin(), functions.end(), random);
  const long before = anonymous_memory();
  for (int i = 0; i < 3; ++i) expect_right_walks(functions);
  const long taken = anonymous_memory() - before;
  std::printf("%zu libraries, one frame in each: walks have touched %ld KiB\n", k_libraries, taken);
  EXPECT_LT(taken, k_is_sanitized ? 65536 : 2048) << "more than the tables, and the stack";
}

/// Other libraries are loaded where one was, between walks and beside them.
TEST(ManyLibraries, WalksAreRightWhileTheyComeAndGo) {
  constexpr std::size_t k_loaded = 150, k_depth = 30, k_of_other_thread = 50;
  constexpr int k_rounds = k_is_sanitized ? 30 : 300;
  std::mt19937 random(7);
  std::vector<std::unique_ptr<LoadedLibrary>> libraries(k_loaded);
  std::size_t next = k_of_other_thread;
  const auto load_another = [&](std::unique_ptr<LoadedLibrary>& place) {
    place.reset();
    place = std::make_unique<LoadedLibrary>(next);
    next = next + 1 == k_libraries ? k_of_other_thread : next + 1;
  };
  for (auto& library : libraries) load_another(library);
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (std::size_t i = 0; !done; i = (i + 1) % k_of_other_thread) const LoadedLibrary library(i);
  });
  for (int round = 0; round < k_rounds && !HasFatalFailure(); ++round) {
    for (int i = 0; i < 5; ++i) load_another(libraries[random() % k_loaded]);
    std::vector<StackFunction> functions;
    for (std::size_t i = 0; i < k_depth; ++i) functions.push_back(libraries[random() % k_loaded]->function());
    expect_right_walks(functions);
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace jitunwind::test
