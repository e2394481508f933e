// Threads that walk two targets of another CPU, in both byte orders, and themselves, a frame of each in turn, while
// policies change, caches are flushed and code comes and goes.
#include <libunwind.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/address_spaces/cross_walks.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_threads = 3;
constexpr int k_rounds = 300;

/// A walk of this thread, and the IPs that it must have.
struct SelfWalk {
  unw_cursor_t cursor;
  std::vector<unw_word_t> expected;
};

unw_word_t ip_of(unw_cursor_t& cursor) {
  unw_word_t ip = 0;
  (void)unw_get_reg(&cursor, UNW_REG_IP, &ip);
  return ip;
}

std::vector<unw_word_t> alone(unw_cursor_t cursor) {
  std::vector<unw_word_t> ips;
  do ips.push_back(ip_of(cursor));
  while (unw_step(&cursor) > 0);
  return ips;
}

/// Returns the number of wrong frames.
std::size_t walk_in_turns(CrossWalk& little, CrossWalk& big, SelfWalk& self) {
  std::size_t wrong = 0;
  bool more = true;
  for (std::size_t i = 0; more; ++i) {
    more = false;
    for (CrossWalk* cross : {&little, &big}) {
      if (i >= k_cross_frames) continue;
      wrong += cross->ip() != cross_ip(i);
      const bool moved = cross->step() > 0;
      wrong += moved != (i + 1 < k_cross_frames);
      more |= moved;
    }
    if (i >= self.expected.size()) continue;
    wrong += ip_of(self.cursor) != self.expected[i];
    const bool moved = unw_step(&self.cursor) > 0;
    wrong += moved != (i + 1 < self.expected.size());
    more |= moved;
  }
  return wrong;
}

struct Scene {
  std::unique_ptr<CrossSpace> little = make_cross_space(false), big = make_cross_space(true);
  std::atomic<std::size_t> wrong{0};
  std::atomic<std::size_t> frames{0};
};

void walk_once(Scene& scene) {
  unw_context_t context;
  unw_getcontext(&context);
  SelfWalk self;
  (void)unw_init_local(&self.cursor, &context);
  self.expected = alone(self.cursor);
  scene.frames += self.expected.size();
  scene.wrong += walk_in_turns(*scene.little->walk(), *scene.big->walk(), self);
}

/// This thread makes, walks and destroys its own spaces while the others walk.
void walk_spaces_of_its_own() {
  Scene own;
  walk_once(own);
  EXPECT_EQ(own.wrong, 0u);
}

// covers: AS10 SF05
TEST(Interleaved, WalksOfSeveralTargetsByThreadsDoNotMix) {
  Scene scene;
  std::atomic<std::size_t> running{k_threads};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < k_threads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < k_rounds; ++round) {
        const JitFrame frame;
        frame(
            [](void* of) -> void* {
              walk_once(*static_cast<Scene*>(of));
              return nullptr;
            },
            &scene);
        if (round % 16 == 0) walk_spaces_of_its_own();
      }
      --running;
    });
  }
  for (int turn = 0; running != 0; ++turn) {
    for (CrossSpace* space : {scene.little.get(), scene.big.get()}) {
      space->set_policy(turn % 3);
      space->flush();
    }
    (void)unw_set_caching_policy(unw_local_addr_space, turn % 2 == 0 ? UNW_CACHE_NONE : UNW_CACHE_GLOBAL);
    unw_flush_cache(unw_local_addr_space, 0, 0);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  (void)unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_GLOBAL);
  EXPECT_EQ(scene.wrong, 0u);
  EXPECT_GT(scene.frames, 4u * k_threads * k_rounds);
}

}  // namespace
}  // namespace jitunwind::test
