// Threads for the registry's tests: flags between them, one that holds a procedure, one in the background.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/registry/procedures.h"

namespace registry_test {

class Flag {
 public:
  void raise() {
    const std::lock_guard lock(mutex_);
    up_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return up_; });
  }
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return up_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool up_ = false;
};

/// A thread that holds the procedure at `pc` until it may let go.
class Holder {
 public:
  explicit Holder(std::uint64_t pc)
      : thread_([this, pc] {
          const jitunwind::ProcedureHold hold(pc);
          info_ = hold.info();
          held_.raise();
          let_go_.wait();
          done_ = true;
        }) {
    held_.wait();
  }
  ~Holder() { let_go(); }
  void let_go() {
    let_go_.raise();
    if (thread_.joinable()) thread_.join();
  }
  const unw_dyn_info_t* info() const { return info_; }
  bool done() const { return done_; }

 private:
  std::atomic<const unw_dyn_info_t*> info_{nullptr};
  std::atomic<bool> done_{false};
  Flag held_, let_go_;
  std::thread thread_;
};

/// Runs work on its own thread and tells whether it is done.
class Background {
 public:
  explicit Background(std::function<void()> work)
      : thread_([this, work] {
          work();
          through_.raise();
        }) {}
  ~Background() { thread_.join(); }
  bool through_within(std::chrono::milliseconds time) { return through_.wait_for(time); }

 private:
  Flag through_;
  std::thread thread_;
};

}  // namespace registry_test
