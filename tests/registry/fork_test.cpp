// A child that was forked while other threads read and write walks, registers and cancels without waiting for threads
// that it does not have.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "tests/registry/procedures.h"

namespace {

using namespace jitunwind;
using namespace registry_test;

constexpr std::uint64_t k_forked_code = 0x40000000;

/// Returns the child's exit status: the number of its first mistake, or 0.
template <class Work>
int in_child(Work&& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// covers: SF10
TEST(Fork, ChildDoesNotWaitForReadersItDoesNotHave) {
  static unw_dyn_info_t a, b;
  a = procedure(k_forked_code, 64), b = procedure(k_forked_code + 64, 64);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  std::atomic<int> held{0};
  std::atomic<bool> let_go{false};
  std::thread holder([&] {
    const ProcedureHold hold(k_forked_code);
    held = 1;
    while (!let_go) std::this_thread::yield();
  });
  while (held == 0) std::this_thread::yield();
  {
    const ProcedureHold own(k_forked_code + 64);
    const int wrong = in_child([&] {
      if (own.info() != &b || lookup(k_forked_code) != &a || listed().size() != 2) return 1;
      if (!cancel_procedure(&a)) return 2;  // the parent's other thread holds it
      if (lookup(k_forked_code) != nullptr) return 3;
      if (cancel_procedure(&b)) return 4;  // this thread holds it, in the child as well
      const auto ticket = retire_procedures(std::array{&b});
      if (!ticket || reclaimed(*ticket)) return 5;
      if (!register_procedure(&a) || lookup(k_forked_code) != &a) return 6;
      return 0;
    });
    EXPECT_EQ(wrong, 0);
  }
  let_go = true;
  holder.join();
  EXPECT_EQ(listed().size(), 2u) << "the parent's own list";
  ASSERT_TRUE(cancel_procedures(std::array{&a, &b}));
}

// A retired batch that a reader of the parent held is reclaimed in the child.
TEST(Fork, ChildReclaimsWhatOthersHeld) {
  static unw_dyn_info_t a;
  a = procedure(k_forked_code, 64);
  ASSERT_TRUE(register_procedure(&a));
  std::atomic<int> held{0};
  std::atomic<bool> let_go{false};
  std::thread holder([&] {
    const ProcedureHold hold(k_forked_code);
    held = 1;
    while (!let_go) std::this_thread::yield();
  });
  while (held == 0) std::this_thread::yield();
  const auto ticket = retire_procedures(std::array{&a});
  ASSERT_TRUE(ticket);
  EXPECT_FALSE(reclaimed(*ticket));
  EXPECT_EQ(in_child([&] { return reclaimed(*ticket) ? 0 : 1; }), 0);
  EXPECT_FALSE(reclaimed(*ticket));
  let_go = true;
  holder.join();
  EXPECT_TRUE(reclaimed(*ticket));
}

// Forks at random moments of threads that register, cancel, retire and look up.
TEST(Fork, Stress) {
  static std::array<unw_dyn_info_t, 32> stay;
  for (std::size_t i = 0; i < stay.size(); ++i) {
    stay[i] = procedure(k_forked_code + 128 * i, 64);
    ASSERT_TRUE(register_procedure(&stay[i]));
  }
  std::atomic<bool> stop{false};
  const auto churn = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::array<unw_dyn_info_t, 8> mine;
    std::array<unw_dyn_info_t*, 8> batch;
    while (!stop) {
      for (std::size_t i = 0; i < mine.size(); ++i) {
        mine[i] = procedure(k_forked_code + 128 * (random() % 32) + 64, 32);
        batch[i] = &mine[i];
        EXPECT_TRUE(register_procedure(batch[i]));
        (void)lookup(k_forked_code + random() % 4096);
      }
      if (random() % 2 == 0) {
        EXPECT_TRUE(cancel_procedures(batch));
      } else {
        const auto ticket = retire_procedures(batch);
        EXPECT_TRUE(ticket);
        while (!reclaimed(*ticket)) std::this_thread::yield();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 3; ++seed) threads.emplace_back(churn, seed);
  std::mt19937_64 random(5);
  int forks = 0;
  for (; forks < 150; ++forks) {
    const int wrong = in_child([&] {
      for (std::size_t i = 0; i < stay.size(); ++i) {
        if (lookup(stay[i].start_ip) != &stay[i]) return 1;
      }
      if (listed().size() > 32 + 3 * 8) return 2;
      if (procedure_list()->generation % 2 != 0) return 3;
      unw_dyn_info_t more = procedure(k_forked_code + 64, 64);
      for (int n = 0; n < 100; ++n) {
        if (!register_procedure(&more) || lookup(k_forked_code + 70) != &more || !cancel_procedure(&more)) return 4;
      }
      std::array<unw_dyn_info_t*, 32> all;
      for (std::size_t i = 0; i < stay.size(); ++i) all[i] = &stay[i];
      if (!cancel_procedures(all) || lookup(stay[0].start_ip) != nullptr) return 5;
      // The remaining procedures of the list were registered by other threads; none is dead.
      for (const unw_dyn_info_t* info : listed()) {
        if (lookup(info->start_ip) == nullptr) return 6;
      }
      return 0;
    });
    ASSERT_EQ(wrong, 0) << "fork " << forks;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  for (auto& info : stay) ASSERT_TRUE(cancel_procedure(&info));
  EXPECT_TRUE(listed().empty());
  std::printf("%d forks beside 3 threads that write\n", forks);
}

}  // namespace
