// The registry among threads: lookups while others write, waiting, and owners that are gone. Runs under ThreadSanitizer
// as well.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <memory>
#include <random>
#include <thread>

#include "tests/registry/threads.h"
#include "tests/support/emulated.h"

namespace {

using namespace jitunwind;
using namespace registry_test;
using namespace std::chrono_literals;

constexpr std::uint64_t k_threads_code = 0x30000000;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr auto k_churn_time = 1500ms;
#else
constexpr auto k_churn_time = 700ms;
#endif

/// Makes a descriptor on the heap that is overwritten and freed as soon as the registry releases it. `gp` identifies
/// it.
std::unique_ptr<unw_dyn_info_t> make(std::uint64_t start, std::uint64_t size, std::uint64_t number) {
  auto info = std::make_unique<unw_dyn_info_t>(procedure(start, size));
  info->gp = number;
  return info;
}
void scrap(std::unique_ptr<unw_dyn_info_t> info) {
  std::memset(static_cast<void*>(info.get()), 0xdd, sizeof *info);
  info.reset();
}

// One procedure is replaced over and over by one of another size, the new one first, so that one of them always covers
// the address. Every lookup finds one that was the newest at some moment during the lookup.
// covers: DY03 DY14 SF04
TEST(RegistryThreads, ReplacedProcedureIsNeverMissingAndNeverOld) {
  constexpr std::array<std::uint64_t, 5> k_sizes{16, 200, 2000, 16, 16};
  std::atomic<std::uint64_t> published{0};
  std::atomic<bool> stop{false};
  auto current = make(k_threads_code, 16, 0);
  ASSERT_TRUE(register_procedure(current.get()));
  std::atomic<std::uint64_t> lookups{0}, wrong{0};
  const auto read = [&] {
    std::uint64_t n = 0;
    for (; !stop.load(std::memory_order_relaxed); ++n) {
      const std::uint64_t oldest = published.load();
      const ProcedureHold hold(k_threads_code + 3);
      const bool right = hold.info() != nullptr && hold.info()->gp >= oldest &&
                         hold.info()->gp <= published.load() + 1 && hold.info()->start_ip == k_threads_code;
      if (!right) ++wrong;
    }
    lookups += n;
  };
  std::thread reader(read), other_reader(read);
  std::uint64_t number = 0;
  for (const auto end = std::chrono::steady_clock::now() + k_churn_time; std::chrono::steady_clock::now() < end;) {
    for (int i = 0; i < 20; ++i) {
      ++number;
      auto next = make(k_threads_code, k_sizes[static_cast<std::size_t>(number % k_sizes.size())], number);
      ASSERT_TRUE(register_procedure(next.get()));
      published.store(number);
      ASSERT_TRUE(cancel_procedure(current.get()));
      scrap(std::exchange(current, std::move(next)));
    }
  }
  stop = true;
  reader.join(), other_reader.join();
  ASSERT_TRUE(cancel_procedure(current.get()));
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(lookups, 1000u);
  std::printf("%" PRIu64 " replacements, %" PRIu64 " lookups, %" PRIu64 " wrong\n", number, lookups.load(),
              wrong.load());
}

// Procedures that stay are always found while neighbours in the same cells, and procedures over them, come and go.
TEST(RegistryThreads, WhatStaysIsAlwaysFound) {
  std::vector<unw_dyn_info_t> stay;
  for (std::uint64_t i = 0; i < 64; ++i) stay.push_back(procedure(k_threads_code + 256 * i, 64));
  for (auto& info : stay) ASSERT_TRUE(register_procedure(&info));
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0}, lookups{0}, changes{0};
  const auto churn = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!stop.load(std::memory_order_relaxed)) {
      std::vector<std::unique_ptr<unw_dyn_info_t>> mine;
      for (int i = 0; i < 16; ++i) {
        mine.push_back(make(k_threads_code + 256 * (random() % 64) + 64 + random() % 64, 1 + random() % 128, ~0ull));
        ASSERT_TRUE(register_procedure(mine.back().get()));
      }
      std::vector<unw_dyn_info_t*> batch;
      for (auto& info : mine) batch.push_back(info.get());
      if (random() % 2 == 0) {
        ASSERT_TRUE(cancel_procedures(batch));
      } else {
        const auto ticket = retire_procedures(batch);
        ASSERT_TRUE(ticket);
        while (!reclaimed(*ticket)) std::this_thread::yield();
      }
      for (auto& info : mine) scrap(std::move(info));
      changes += 32;
    }
  };
  const auto read = [&] {
    std::mt19937_64 random(99);
    std::uint64_t n = 0;
    for (; !stop.load(std::memory_order_relaxed); ++n) {
      const auto i = static_cast<std::size_t>(random() % 64);
      if (lookup(k_threads_code + 256 * i + random() % 64) != &stay[i]) ++wrong;
      const ProcedureHold other(k_threads_code + 256 * i + 64 + random() % 192);
      if (other.info() != nullptr && other.info()->gp != ~0ull) ++wrong;
    }
    lookups += 2 * n;
  };
  std::thread a(churn, 1), b(churn, 2), c(read);
  std::this_thread::sleep_for(k_churn_time);
  stop = true;
  a.join(), b.join(), c.join();
  for (auto& info : stay) ASSERT_TRUE(cancel_procedure(&info));
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(listed().empty());
  std::printf("%" PRIu64 " changes, %" PRIu64 " lookups, %" PRIu64 " wrong\n", changes.load(), lookups.load(),
              wrong.load());
}

TEST(RegistryThreads, CancelWaitsForHoldersOfItsProcedureAndForNobodyElse) {
  unw_dyn_info_t a = procedure(k_threads_code, 64), b = procedure(k_threads_code + 64, 64),
                 c = procedure(k_threads_code + 128, 64);
  ASSERT_TRUE(register_procedures(std::array{&a, &b, &c}));
  Holder holds_a(k_threads_code), also_a(k_threads_code + 1), holds_b(k_threads_code + 64);
  ASSERT_EQ(holds_a.info(), &a);
  ASSERT_EQ(holds_b.info(), &b);
  ASSERT_TRUE(cancel_procedure(&c)) << "nobody holds it";
  {
    Background cancel_a([&] { EXPECT_TRUE(cancel_procedure(&a)); });
    EXPECT_FALSE(cancel_a.through_within(100ms));
    EXPECT_EQ(lookup(k_threads_code), nullptr) << "gone for new lookups while cancel waits";
    ASSERT_TRUE(register_procedure(&c)) << "writers are not held up by one that waits";
    ASSERT_TRUE(cancel_procedure(&c));
    holds_a.let_go();
    EXPECT_FALSE(cancel_a.through_within(50ms)) << "there is another";
    also_a.let_go();
    EXPECT_TRUE(cancel_a.through_within(10s));
    EXPECT_FALSE(holds_b.done());
  }
  {
    Background cancel_batch([&] { EXPECT_TRUE(cancel_procedures(std::array{&b})); });
    EXPECT_FALSE(cancel_batch.through_within(50ms));
    holds_b.let_go();
    EXPECT_TRUE(cancel_batch.through_within(10s));
  }
}

TEST(RegistryThreads, RetireDoesNotWaitAndReclaimsLater) {
  unw_dyn_info_t a = procedure(k_threads_code, 64), b = procedure(k_threads_code + 64, 64);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  Holder holds_b(k_threads_code + 64);
  std::atomic<int> calls{0};
  const auto count = [](void* n) { ++*static_cast<std::atomic<int>*>(n); };
  const auto free_one = retire_procedures(std::array{&a}, count, &calls);
  const auto held_one = retire_procedures(std::array{&b}, count, &calls);
  ASSERT_TRUE(free_one && held_one);
  EXPECT_FALSE(reclaimed(*held_one));
  EXPECT_TRUE(reclaimed(*free_one)) << "batches do not wait for each other";
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(lookup(k_threads_code + 64), nullptr);
  holds_b.let_go();
  EXPECT_TRUE(reclaimed(*held_one));
  EXPECT_EQ(calls, 2);
}

// Far more threads than the first block of slots has.
TEST(RegistryThreads, MoreThreadsThanSlots) {
  unw_dyn_info_t a = procedure(k_threads_code, 64), b = procedure(k_threads_code + 64, 64);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  std::vector<std::unique_ptr<Holder>> holders;
  for (int i = 0; i < 300; ++i) holders.push_back(std::make_unique<Holder>(k_threads_code));
  for (auto& holder : holders) EXPECT_EQ(holder->info(), &a);
  ASSERT_TRUE(cancel_procedure(&b));
  Background cancel_a([&] { EXPECT_TRUE(cancel_procedure(&a)); });
  EXPECT_FALSE(cancel_a.through_within(50ms));
  for (auto& holder : holders) holder->let_go();
  EXPECT_TRUE(cancel_a.through_within(10s));
}

// Threads that come and go do not use up slots.
TEST(RegistryThreads, SlotsOfExitedThreadsAreUsedAgain) {
  unw_dyn_info_t a = procedure(k_threads_code, 64);
  ASSERT_TRUE(register_procedure(&a));
  for (std::size_t i = 0; i < jitunwind::test::repetitions(3000); ++i) {
    std::thread([&] { EXPECT_EQ(lookup(k_threads_code), &a); }).join();
  }
  ASSERT_TRUE(cancel_procedure(&a));
}

// A signal stops readers inside a lookup; 10k procedures are retired in one batch and their code is unmapped; then the
// readers resume. AddressSanitizer reports every read of freed memory.
std::atomic<int> stopped_readers{0};
std::atomic<bool> resume_readers{false};

void stop_here(int) {
  ++stopped_readers;
  while (!resume_readers) {
    timespec time{0, 200'000};
    nanosleep(&time, nullptr);
  }
  --stopped_readers;
}

TEST(RegistryThreads, RetireOfTenThousandBesideStoppedReaders) {
  constexpr std::size_t k_count = 10'000, k_size = 128;
  struct sigaction action {
  }, before{};
  action.sa_handler = stop_here;
  sigaction(SIGUSR1, &action, &before);
  int stopped_inside = 0, rounds = 0;
  for (; rounds < 12; ++rounds) {
    auto* code = static_cast<std::byte*>(
        mmap(nullptr, k_count * k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(code, MAP_FAILED);
    const auto base = reinterpret_cast<std::uint64_t>(code);
    std::vector<std::unique_ptr<unw_dyn_info_t>> infos;
    std::vector<unw_dyn_info_t*> batch;
    for (std::size_t i = 0; i < k_count; ++i) {
      infos.push_back(make(base + i * k_size, k_size, i));
      batch.push_back(infos.back().get());
    }
    ASSERT_TRUE(register_procedures(batch));
    std::atomic<bool> quit{false};
    std::atomic<int> running{0};
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> readers;
    for (unsigned seed = 0; seed < 3; ++seed) {
      readers.emplace_back([&, seed] {
        std::mt19937_64 random(seed);
        ++running;
        while (!quit) {
          const auto i = static_cast<std::size_t>(random() % k_count);
          const ProcedureHold hold(base + i * k_size + random() % k_size);
          if (hold.info() == nullptr) continue;
          if (hold.info()->gp != i || hold.info()->end_ip != base + (i + 1) * k_size) ++wrong;
        }
        --running;
      });
    }
    while (running != 3) std::this_thread::yield();
    std::this_thread::sleep_for(2ms);
    resume_readers = false;
    for (auto& reader : readers) pthread_kill(reader.native_handle(), SIGUSR1);
    while (stopped_readers != 3) std::this_thread::yield();

    const auto ticket = retire_procedures(batch);  // the world is stopped
    ASSERT_TRUE(ticket);
    munmap(code, k_count * k_size);
    stopped_inside += reclaimed(*ticket) ? 0 : 1;
    std::vector<RegistrationKey> unused;
    for (std::size_t i = 0; i < k_count; i += 97) EXPECT_EQ(lookup(base + i * k_size), nullptr);

    resume_readers = true;
    while (!reclaimed(*ticket)) std::this_thread::yield();
    for (auto& info : infos) scrap(std::move(info));
    quit = true;
    for (auto& reader : readers) reader.join();
    EXPECT_EQ(wrong, 0u);
    while (stopped_readers != 0) std::this_thread::yield();
  }
  sigaction(SIGUSR1, &before, nullptr);
  std::printf("%d batches of %zu retired beside 3 stopped readers, %d of them held by a reader\n", rounds, k_count,
              stopped_inside);
}

// A cancel from another thread waits for exactly the reader that holds the procedure.
TEST(RegistryThreads, CancelBesideAStoppedReader) {
  unw_dyn_info_t a = procedure(k_threads_code, 64), b = procedure(k_threads_code + 64, 64);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  struct sigaction action {
  }, before{};
  action.sa_handler = stop_here;
  sigaction(SIGUSR1, &action, &before);
  resume_readers = false;
  std::thread reader([&] {
    const ProcedureHold hold(k_threads_code);
    raise(SIGUSR1);
    EXPECT_EQ(hold.info()->start_ip, k_threads_code);
  });
  while (stopped_readers != 1) std::this_thread::yield();
  EXPECT_TRUE(cancel_procedure(&b));
  Background cancel([&] { EXPECT_TRUE(cancel_procedure(&a)); });
  EXPECT_FALSE(cancel.through_within(200ms));
  resume_readers = true;
  EXPECT_TRUE(cancel.through_within(10s));
  reader.join();
  sigaction(SIGUSR1, &before, nullptr);
}

// Profiling signals at a high rate, whose handlers look up, beside writers and lookups on the same thread.
std::atomic<std::uint64_t> handler_lookups{0}, handler_wrong{0};
unw_dyn_info_t profiled = procedure(k_threads_code, 64);

void profile(int) {
  ++handler_lookups;
  if (lookup(k_threads_code + 5) != &profiled) ++handler_wrong;
}

TEST(RegistryThreads, HandlersLookUpInTheMidstOfEverything) {
  ASSERT_TRUE(register_procedure(&profiled));
  struct sigaction action {
  }, before{};
  action.sa_handler = profile;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, &before);
  std::atomic<bool> stop{false};
  const auto work = [&](std::uint64_t at) {
    unw_dyn_info_t mine = procedure(at, 64);
    while (!stop) {
      const Status registered = register_procedure(&mine);
      EXPECT_TRUE(registered);
      EXPECT_EQ(lookup(k_threads_code + 1), &profiled);
      EXPECT_TRUE(cancel_procedure(&mine));
    }
  };
  std::thread a(work, k_threads_code + 64), b(work, k_threads_code + 128);
  // A busy machine handles few of the signals, so the test runs until there are enough.
  const auto end = std::chrono::steady_clock::now() + k_churn_time;
  const auto at_last = end + 60s;
  while (std::chrono::steady_clock::now() < (handler_lookups > 1000 ? end : at_last)) {
    pthread_kill(a.native_handle(), SIGUSR1);
    pthread_kill(b.native_handle(), SIGUSR1);
  }
  stop = true;
  a.join(), b.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(handler_wrong, 0u);
  EXPECT_GT(handler_lookups, 1000u);
  ASSERT_TRUE(cancel_procedure(&profiled));
  std::printf("%" PRIu64 " lookups in handlers, %" PRIu64 " wrong\n", handler_lookups.load(), handler_wrong.load());
}

}  // namespace
