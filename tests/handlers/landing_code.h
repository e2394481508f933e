// A function made at run time with landing pads:
//
//   long frame(void (*callee)())
//     saves all preserved registers, sets them to -1, calls callee, and returns 0. Its landing pads:
//   catching: calls __cxa_begin_catch, then caught(object, selector, sum of the preserved registers), then
//     __cxa_end_catch, and returns 100 + selector
//   cleaning: calls cleaned(sum of the preserved registers), then _Unwind_Resume
//   leaving a catch, when caught() throws: calls __cxa_end_catch, then _Unwind_Resume
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "builders/registers_x86_64.h"
#include "builders/registration.h"
#include "tests/exceptions/jit_frames.h"

namespace jitunwind::test {

/// What all preserved registers but the frame pointer hold during the call, added up.
inline constexpr long k_sum_of_preserved = -5;

/// Below the saved registers.
inline constexpr int k_room = 72;

struct LandingOffsets {
  Instruction call{0, 0};         ///< of callee
  Instruction call_caught{0, 0};  ///< of caught()
  std::int64_t catching = 0;
  std::int64_t cleaning = 0;
  std::int64_t leaving = 0;
};

class LandingFrame {
 public:
  /// `declare` tells the builder of call sites.
  explicit LandingFrame(const std::function<void(x86_64::Builder&, const LandingOffsets&)>& declare,
                        std::string_view name = {});

  long operator()(void (*callee)()) const { return reinterpret_cast<long (*)(void (*)())>(code_->begin())(callee); }
  Addr begin() const { return reinterpret_cast<std::uintptr_t>(code_->begin()); }
  std::size_t size() const { return code_->size(); }
  const LandingOffsets& offsets() const { return offsets_; }

  /// What landing pads call. The test sets them; both may throw.
  static inline std::function<void(void* object, int selector, long sum)> caught;
  static inline std::function<void(long sum)> cleaned;
  /// Of the landing pad that catches.
  static inline Addr sp_at_catch = 0;

 private:
  LandingOffsets offsets_;
  std::unique_ptr<ExecutableCopy> code_;
  Registration registration_;
};

}  // namespace jitunwind::test
