// Calls by which the program maps, unmaps and protects memory, and the moments in which it must not: while a file is
// mapped over its code, an engine that makes the code writable, writes to it, and makes it executable again would lose
// what it writes. The library defines these calls (mapping_calls.cpp), and holds them up for these moments.
#pragma once

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The program's calls reach this library. False: another definition comes first, as with late loading.
bool are_mapping_calls_heard() noexcept;

/// One moment; one thread at a time. Calls that other threads make wait until it ends, those of this thread do not.
class MappingMoment {
 public:
  MappingMoment() noexcept;
  ~MappingMoment();
  MappingMoment(const MappingMoment&) = delete;
  MappingMoment& operator=(const MappingMoment&) = delete;

  /// False: another thread was in such a call, which nobody waits for, since it may be in a signal handler. The calls
  /// are not held up.
  bool is_closed() const noexcept { return is_closed_; }

 private:
  bool is_closed_ = false;
};

/// A call of the program's, of any thread. Signal-safe.
class MappingCall {
 public:
  MappingCall() noexcept;
  ~MappingCall();
  MappingCall(const MappingCall&) = delete;
  MappingCall& operator=(const MappingCall&) = delete;

  /// False: this thread has closed them, to map a file over code.
  bool is_of_program() const noexcept { return is_of_program_; }

 private:
  const bool is_of_program_;
};

/// The first and the last part of a call, for handlers of forks, which are functions of their own.
void enter_mapping_gate() noexcept;
void leave_mapping_gate() noexcept;
/// A child of a fork: it has no other threads.
void forget_mapping_calls_in_child() noexcept;

}  // namespace jitunwind
