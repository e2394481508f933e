// A thread that runs beside a measurement.
#pragma once

#include <atomic>
#include <thread>

namespace bench {

/// Does one thing again and again until it is destroyed.
class Busy {
 public:
  template <class Action>
  explicit Busy(Action action)
      : thread_([this, action]() mutable {
          while (!done_.load(std::memory_order_relaxed)) action();
        }) {}
  ~Busy() {
    done_ = true;
    thread_.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace bench
