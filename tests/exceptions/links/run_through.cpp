#include "tests/exceptions/links/run_through.h"

#include <execinfo.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/sdk/walk.h"

namespace {

using namespace jitunwind;

// push rbp; push rbx; sub rsp,24; mov rbp,-1; mov rbx,-1; call rdi; add rsp,24; pop rbx; pop rbp; ret
constexpr std::array<std::uint8_t, 29> k_code{0x55, 0x53, 0x48, 0x83, 0xec, 0x18, 0x48, 0xc7, 0xc5, 0xff,
                                              0xff, 0xff, 0xff, 0x48, 0xc7, 0xc3, 0xff, 0xff, 0xff, 0xff,
                                              0xff, 0xd7, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3};
constexpr std::size_t k_slot = 64;
constexpr std::size_t k_places = 4096;

Description describe_code() {
  using namespace x86_64;
  return describe("jit")
      .push({0, 1}, rbp)
      .push({1, 2}, rbx)
      .allocate({2, 6}, 24)
      .deallocate({22, 26}, 24)
      .pop({26, 27}, rbx)
      .pop({27, 28}, rbp)
      .size(k_code.size())
      .build()
      .value();
}

/// Places for procedures, next to each other over several pieces of what a table holds.
class Arena {
 public:
  Arena()
      : memory_(static_cast<std::byte*>(
            mmap(nullptr, k_places * k_slot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (std::size_t i = 0; i < k_places; ++i) std::memcpy(memory_ + i * k_slot, k_code.data(), k_code.size());
    mprotect(memory_, k_places * k_slot, PROT_READ | PROT_EXEC);
    live_.resize(k_places);
  }
  void add(std::size_t place) {
    live_[place] = register_code(description_, memory_ + place * k_slot, k_code.size()).value();
  }
  void cancel(std::size_t place) { live_[place] = Registration(); }
  void retire(std::size_t place) { (void)live_[place].retire(); }
  void call(std::size_t place, void (*callee)()) const {
    reinterpret_cast<void (*)(void (*)())>(memory_ + place * k_slot)(callee);
  }

 private:
  std::byte* const memory_;
  const Description description_ = describe_code();
  std::vector<Registration> live_;
};

Arena& arena() {
  static Arena one;
  return one;
}

std::atomic<int> g_alive{0};
struct Counted {
  Counted() { ++g_alive; }
  ~Counted() { --g_alive; }
};

thread_local const std::vector<std::size_t>* g_places;
thread_local std::size_t g_next;
thread_local int g_depth;
bool g_with_backtrace = true;
int (*g_count_frames)() = nullptr;  // by another unwinder

int count_frames() {
  if (g_count_frames != nullptr) return g_count_frames();
  std::array<void*, 100> trace;
  return backtrace(trace.data(), static_cast<int>(trace.size()));
}

void deeper() {
  const Counted counted;
  if (g_next < g_places->size()) return arena().call((*g_places)[g_next++], deeper);
  g_depth = g_with_backtrace ? count_frames() : 0;
  throw std::runtime_error("from below");
}

/// Throws once through the procedures at these places.
bool passes(const std::vector<std::size_t>& places) {
  g_places = &places;
  g_next = 0;
  g_depth = 0;
  try {
    deeper();
  } catch (const std::runtime_error& error) {
    const bool whole = !g_with_backtrace || g_depth > 2 * static_cast<int>(places.size());
    return std::string(error.what()) == "from below" && whole;
  }
  return false;
}

int g_thrown = 0, g_passed = 0;
void expect_passes(const std::vector<std::size_t>& places) {
  ++g_thrown;
  g_passed += passes(places);
}

/// Procedures come and go in any order, and others take their places.
void throw_while_they_come_and_go() {
  constexpr std::size_t k_step = 37;  // jumps from piece to piece
  for (std::size_t i = 0; i < 300; ++i) arena().add(i * k_step % k_places);
  for (std::size_t i = 0; i + 4 < 300; i += 5)
    expect_passes({i * k_step % k_places, (i + 1) * k_step % k_places, (i + 4) * k_step % k_places});
  for (std::size_t i = 0; i < 300; i += 2) arena().cancel(i * k_step % k_places);
  for (std::size_t i = 1; i < 299; i += 4) expect_passes({i * k_step % k_places, (i + 2) * k_step % k_places});
  for (std::size_t i = 1; i < 300; i += 4) arena().retire(i * k_step % k_places);
  for (std::size_t i = 0; i < 300; i += 2) arena().add(i * k_step % k_places);
  for (std::size_t i = 0; i < 298; i += 4)
    expect_passes({i * k_step % k_places, (i + 2) * k_step % k_places, (i + 3) * k_step % k_places});
  for (std::size_t i = 0; i < 300; ++i) arena().cancel(i * k_step % k_places);
}

void throw_in_two_threads() {
  arena().add(5);
  arena().add(3000);
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) passed += passes({5, 3000});
    });
  }
  for (std::size_t i = 0; i < 400; ++i) {
    arena().add(6 + i);
    if (i >= 20) arena().cancel(6 + i - 20);
  }
  for (std::thread& thread : threads) thread.join();
  g_thrown += 400;
  g_passed += passed;
}

bool g_walked = false;

/// Walks with a function that holds every thread that throws.
bool walk_passes() {
  arena().call(1, [] {
    int named = 0;
    Walk walk = walk_here();
    for (const Frame& frame : walk) named += frame.name() == "jit";
    g_walked = named == 1 && walk.why() == "complete";
  });
  return g_walked;
}

/// The answers that one thread gets from the unwinders do not change those of another thread.
bool threads_find_the_same() {
  const SystemUnwinderStatus expected = system_unwinder_status();
  std::atomic<int> others{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const SystemUnwinderStatus found = system_unwinder_status();
        others += found.path != expected.path || found.slots != expected.slots || found.unreached != expected.unreached;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (others != 0) std::printf("%d times another status\n", others.load());
  return others == 0;
}

struct Words {
  std::string path{};
  bool at_the_end_only = false;
  bool is_short = false;
  bool is_unwinder_late = false;
};

Words read_words(std::span<char*> words) {
  Words read;
  g_with_backtrace = true;
  g_count_frames = nullptr;
  for (const std::string_view word : words) {
    if (word == "without-backtrace") g_with_backtrace = false;
    if (word == "at-the-end") read.at_the_end_only = true;
    if (word == "short") read.is_short = true;
    if (word == "late-unwinder") read.is_unwinder_late = true;
    if (word.starts_with("path=")) read.path = word.substr(5);
    if (word.starts_with("frames=")) {
      const auto address = std::strtoull(word.data() + 7, nullptr, 16);
      g_count_frames = reinterpret_cast<int (*)()>(static_cast<std::uintptr_t>(address));
    }
  }
  return read;
}

void print(const SystemUnwinderStatus& status) {
  std::printf("path: %s; %s; %s; %u slots, %u unreached; %s\n", path_name(status.path), status.why,
              status.has_next ? "there is a next definition" : "no next definition", status.slots, status.unreached,
              status.why_unreached);
  std::fflush(stdout);
}

}  // namespace

extern "C" int run_through(int argc, char** argv) {
  const Words words =
      read_words(argc > 1 ? std::span(argv + 1, static_cast<std::size_t>(argc - 1)) : std::span<char*>());
  g_thrown = g_passed = 0;
  arena().add(1);
  if (words.is_unwinder_late) (void)count_frames();
  const SystemUnwinderStatus before = words.at_the_end_only ? SystemUnwinderStatus{} : system_unwinder_status();
  if (!words.at_the_end_only) print(before);
  if (words.is_short) {
    expect_passes({1});
  } else if (words.at_the_end_only || before.path != SystemUnwinderPath::none) {
    throw_while_they_come_and_go();
    throw_in_two_threads();
  }
  const SystemUnwinderStatus after = system_unwinder_status();
  if (words.at_the_end_only) print(after);
  const bool expected = words.path.empty() || words.path == path_name(after.path);
  const bool same = words.is_short || threads_find_the_same();
  const bool right =
      walk_passes() && g_passed == g_thrown && g_alive == 0 && after.refused == before.refused && expected && same;
  std::printf("%d of %d throws passed, %d objects left, %lu refused\n", g_passed, g_thrown, g_alive.load(),
              static_cast<unsigned long>(after.refused));
  std::puts(right ? "all right" : "WRONG");
  std::fflush(stdout);
  return right ? 0 : 1;
}
