// A function made at run time with landing pads, in a frame of any kind that jit_frames.h has:
//
//   long frame(void (*callee)(), long bytes)
//     saves all preserved registers, sets them to their preserved_value(), calls callee, and returns 0. Its landing
//     pads:
//   catching: calls __cxa_begin_catch, then caught(object, selector, AtPad), then __cxa_end_catch, and returns
//     100 + selector
//   cleaning: calls cleaned(AtPad), then _Unwind_Resume
//   leaving a catch, when caught() throws: calls __cxa_end_catch, then _Unwind_Resume
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "tests/exceptions/jit_frames.h"

namespace jitunwind::test {

/// The size of the room below the saved registers.
inline constexpr int k_room = 136;

struct LandingOffsets {
  Instruction call{0, 0};         ///< of callee
  Instruction call_caught{0, 0};  ///< of caught()
  std::int64_t catching = 0;
  std::int64_t cleaning = 0;
  std::int64_t leaving = 0;
};

class LandingFrame {
 public:
  /// `declare` declares the call sites to the builder.
  explicit LandingFrame(const std::function<void(x86_64::Builder&, const LandingOffsets&)>& declare,
                        std::string_view name = {}, FrameKind kind = FrameKind::frame_pointer,
                        const Place* place = nullptr);

  long operator()(void (*callee)()) const {
    return reinterpret_cast<long (*)(void (*)(), long)>(code_->begin())(callee, k_variable_bytes);
  }
  Addr begin() const { return reinterpret_cast<std::uintptr_t>(code_->begin()); }
  std::size_t size() const { return code_->size(); }
  const LandingOffsets& offsets() const { return offsets_; }

  /// The landing pads call these functions. The test sets them; both may throw.
  static inline std::function<void(void* object, int selector, const AtPad& at)> caught;
  static inline std::function<void(const AtPad& at)> cleaned;

 private:
  LandingOffsets offsets_;
  std::unique_ptr<ExecutableCopy> code_;
  Registration registration_;
};

}  // namespace jitunwind::test
