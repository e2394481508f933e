// A library that is loaded and unloaded, and code made at run time in its place.
#pragma once

#include <atomic>

#include "tests/prove/storm_code.h"

namespace jitunwind::storm {

struct Thread;

/// While the gate is open, `call` is a function of the library, or a procedure in its place.
class Library {
 public:
  Gate& gate() { return gate_; }
  Through call() const { return call_; }
  /// Returns whether callees push the frame of call() themselves, as they do for a library's function.
  bool is_loaded() const { return is_loaded_; }
  /// The address where it was loaded last; 0: it was not loaded yet.
  Addr last_begin() const { return last_begin_; }

  /// Loads, unloads, puts code in its place, and begins again.
  void come_and_go(Thread& self);

 private:
  void be_loaded(Thread& self);
  void be_code(Thread& self);

  Gate gate_;
  Through call_ = nullptr;
  bool is_loaded_ = false;
  Addr begin_ = 0, end_ = 0;  // of the one that was loaded last
  Addr code_at_ = 0;          // where there was code last
  Slot slot_;
  std::atomic<Addr> last_begin_{0};
};

}  // namespace jitunwind::storm
