// Observers of the registry: the reports, their times, and several threads. Runs under ThreadSanitizer as well.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "jitunwind/dyn_info/registry/observers.h"
#include "tests/registry/threads.h"

namespace {

using namespace jitunwind;
using namespace registry_test;
using namespace std::chrono_literals;

constexpr std::uint64_t k_observed_code = 0x50000000;

/// Keeps the reports as any adapter would, and reads each descriptor under a hold.
class Mirror final : public RegistryObserver {
 public:
  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    const Alone alone(*this);
    for (const RegisteredProcedure& procedure : procedures) {
      const ProcedureHold hold(procedure.key);
      if (hold.info() == nullptr) continue;
      if (hold.info() != procedure.info) ++wrong;
      told_[procedure.info] = {procedure.key, hold.info()->gp};
      order.push_back(hold.info()->gp);
    }
  }
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override {
    const Alone alone(*this);
    for (unw_dyn_info_t* info : procedures) {
      const auto found = told_.find(info);
      if (found != told_.end() && !still_registered(found->second.first)) told_.erase(found);
    }
  }
  void retired() noexcept override {
    const Alone alone(*this);
    std::erase_if(told_, [](const auto& known) { return !still_registered(known.second.first); });
  }

  std::size_t size() const { return told_.size(); }
  bool has(const unw_dyn_info_t& info) const { return told_.count(const_cast<unw_dyn_info_t*>(&info)) != 0; }

  std::vector<std::uint64_t> order;  // gp of those told of
  std::atomic<unsigned> wrong{0};    // calls at one time, descriptors of others

 private:
  class Alone {
   public:
    explicit Alone(Mirror& mirror) : mirror_(mirror) {
      if (mirror_.calls_.fetch_add(1) != 0) ++mirror_.wrong;
    }
    ~Alone() { mirror_.calls_.fetch_sub(1); }

   private:
    Mirror& mirror_;
  };

  std::map<unw_dyn_info_t*, std::pair<RegistrationKey, std::uint64_t>> told_;
  std::atomic<unsigned> calls_{0};
};

unw_dyn_info_t numbered(std::uint64_t number) {
  unw_dyn_info_t info = procedure(k_observed_code + 64 * number, 64);
  info.gp = number;
  return info;
}

TEST(Observers, ToldOfEachChangeBeforeItReturns) {
  Mirror mirror;
  ASSERT_TRUE(attach_observer(mirror));
  unw_dyn_info_t a = numbered(1), b = numbered(2), c = numbered(3);
  ASSERT_TRUE(register_procedure(&a));
  EXPECT_TRUE(mirror.has(a));
  std::vector<unw_dyn_info_t*> batch{&b, &c};
  ASSERT_TRUE(register_procedures(batch));
  EXPECT_EQ(mirror.size(), 3u);
  ASSERT_TRUE(cancel_procedure(&a));
  EXPECT_FALSE(mirror.has(a));
  ASSERT_TRUE(cancel_procedures(batch));
  EXPECT_EQ(mirror.size(), 0u);
  ASSERT_TRUE(detach_observer(mirror));
  ASSERT_TRUE(register_procedure(&a));
  EXPECT_EQ(mirror.size(), 0u);
  ASSERT_TRUE(cancel_procedure(&a));
}

TEST(Observers, AttachTellsWhatIsRegisteredOldestFirst) {
  constexpr std::size_t k_many = 500;
  std::vector<unw_dyn_info_t> all;
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < k_many; ++i) all.push_back(numbered(i)), numbers.push_back(i);
  for (unw_dyn_info_t& info : all) ASSERT_TRUE(register_procedure(&info));
  Mirror mirror, other;
  ASSERT_TRUE(attach_observer(mirror));
  EXPECT_EQ(mirror.order, numbers);
  EXPECT_EQ(error_of(attach_observer(mirror)), "already_registered");
  ASSERT_TRUE(attach_observer(other));
  ASSERT_TRUE(detach_observer(mirror));
  EXPECT_EQ(error_of(detach_observer(mirror)), "not_registered");
  for (unw_dyn_info_t& info : all) ASSERT_TRUE(cancel_procedure(&info));
  EXPECT_EQ(mirror.size(), k_many);
  EXPECT_EQ(other.size(), 0u);
  ASSERT_TRUE(detach_observer(other));
}

TEST(Observers, RetiredIsToldBeforeTheNextRegistration) {
  Mirror mirror;
  ASSERT_TRUE(attach_observer(mirror));
  unw_dyn_info_t old = numbered(1), fresh = numbered(1);
  ASSERT_TRUE(register_procedure(&old));
  unw_dyn_info_t* const batch[] = {&old};
  const auto ticket = retire_procedures(batch);
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(reclaimed(*ticket));
  ASSERT_TRUE(register_procedure(&fresh));
  EXPECT_TRUE(mirror.has(fresh));
  EXPECT_EQ(mirror.size(), 1u);
  ASSERT_TRUE(cancel_procedure(&fresh));
  ASSERT_TRUE(detach_observer(mirror));
}

TEST(Observers, CallbacksAreRefusedAsWriters) {
  class Writer final : public RegistryObserver {
   public:
    void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
      errors.push_back(error_of(cancel_procedure(procedures.front().info)));
      errors.push_back(error_of(register_procedure(procedures.front().info)));
      errors.push_back(error_of(detach_observer(*this)));
      errors.push_back(error_of(attach_observer(*this)));
    }
    void cancelled(std::span<unw_dyn_info_t* const>) noexcept override {}
    void retired() noexcept override {}
    std::vector<std::string> errors;
  } writer;
  ASSERT_TRUE(attach_observer(writer));
  unw_dyn_info_t info = numbered(1);
  ASSERT_TRUE(register_procedure(&info));
  EXPECT_EQ(writer.errors, std::vector<std::string>(4, "in_signal_handler"));
  ASSERT_TRUE(cancel_procedure(&info));
  ASSERT_TRUE(detach_observer(writer));
}

// Holds one registration, not whatever covers the address now.
TEST(Observers, HoldByKey) {
  unw_dyn_info_t below = numbered(1), above = numbered(1);
  Mirror mirror;
  ASSERT_TRUE(register_procedure(&below));
  RegistrationKey key;
  {
    const ProcedureHold hold(below.start_ip);
    key = hold.key();
  }
  ASSERT_TRUE(register_procedure(&above));
  {
    const ProcedureHold newest(below.start_ip), hold(key);
    EXPECT_EQ(newest.info(), &above);
    EXPECT_EQ(hold.info(), &below);
    EXPECT_EQ(hold.key().registration, key.registration);
    EXPECT_EQ(error_of(cancel_procedure(&below)), "in_signal_handler");
  }
  ASSERT_TRUE(cancel_procedure(&below));
  const ProcedureHold gone(key), never(RegistrationKey{});
  EXPECT_EQ(gone.info(), nullptr);
  EXPECT_FALSE(gone.failed());
  EXPECT_EQ(never.info(), nullptr);
  ASSERT_TRUE(cancel_procedure(&above));
}

TEST(Observers, ChildOfForkGoesOn) {
  Mirror mirror;
  ASSERT_TRUE(attach_observer(mirror));
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    unw_dyn_info_t info = numbered(7);
    while (!stop) {
      if (!register_procedure(&info) || !cancel_procedure(&info)) std::abort();
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      unw_dyn_info_t info = numbered(8);
      const bool right = register_procedure(&info) && mirror.has(info) && cancel_procedure(&info) &&
                         !mirror.has(info) && detach_observer(mirror);
      _exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
  ASSERT_TRUE(detach_observer(mirror));
}

/// Registers, cancels and retires heap descriptors, which are overwritten and freed as soon as possible.
void churn(std::uint64_t thread, const std::atomic<bool>& stop) {
  for (std::uint64_t i = 0; !stop; ++i) {
    std::vector<std::unique_ptr<unw_dyn_info_t>> owned;
    std::vector<unw_dyn_info_t*> batch;
    for (std::uint64_t k = 0; k < 1 + i % 3; ++k) {
      owned.push_back(std::make_unique<unw_dyn_info_t>(numbered(1000 * thread + 4 * (i % 200) + k)));
      batch.push_back(owned.back().get());
    }
    if (!register_procedures(batch)) std::abort();
    if (i % 5 == 0) {
      const auto ticket = retire_procedures(batch);
      if (!ticket) std::abort();
      while (!reclaimed(*ticket)) std::this_thread::yield();
    } else if (!cancel_procedures(batch)) {
      std::abort();
    }
    for (auto& info : owned) std::memset(static_cast<void*>(info.get()), 0xdd, sizeof *info);
  }
}

// Observers come and go while others register, cancel and retire. Each ends with exactly the registered procedures, is
// never called by two threads at once, and never reads an unregistered descriptor.
TEST(Observers, ComeAndGoAmongThreads) {
  constexpr std::uint64_t k_threads = 3;
  unw_dyn_info_t stays = numbered(0);
  ASSERT_TRUE(register_procedure(&stays));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < k_threads; ++t) threads.emplace_back(churn, t + 1, std::cref(stop));
  Mirror throughout;
  ASSERT_TRUE(attach_observer(throughout));
  unsigned wrong = 0;
  for (const auto end = std::chrono::steady_clock::now() + 1s; std::chrono::steady_clock::now() < end;) {
    Mirror mirror;
    ASSERT_TRUE(attach_observer(mirror));
    std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(detach_observer(mirror));
    if (!mirror.has(stays)) ++wrong;
    wrong += mirror.wrong;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(cancel_procedure(&stays));  // and tells of what was retired
  EXPECT_EQ(throughout.size(), 0u);
  EXPECT_EQ(throughout.wrong + wrong, 0u);
  EXPECT_GT(throughout.order.size(), 1000u);
  ASSERT_TRUE(detach_observer(throughout));
}

}  // namespace
