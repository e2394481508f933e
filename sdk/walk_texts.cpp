// Names and reasons of walks as strings, which the core does without.
#include <array>
#include <cinttypes>
#include <cstdio>

#include "jitunwind/sdk/demangled_p.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/sdk/walk_thread.h"

namespace jitunwind {

std::string Frame::name() const {
  return whole_name([this](std::span<char> into) { return raw_name(into); });
}

std::string Walk::why() const {
  switch (stop_reason()) {
    case StopReason::none:
      return "not at its end";
    case StopReason::outermost:
      return "complete";
    default:
      break;
  }
  const Error& error = stop_error();
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(), "stopped at pc 0x%" PRIx64 " (%s): %s: %s, at 0x%" PRIx64, frame_.pc(),
                stop_reason_name(stop_reason()), error_text(error.code), error.what, error.at);
  const std::string name = frame_.name();
  return name.empty() ? text.data() : std::string(text.data()) + ", in " + name;
}

namespace {

using Answer = ThreadWalk::Answer;

const char* text_of(Answer answer) noexcept {
  switch (answer) {
    case Answer::given:
      return "";
    case Answer::no_thread:
      return "this process has no such thread";
    case Answer::blocked:
      return "the thread blocks the signal that it is asked by";
    case Answer::none:
      return "the thread does not answer: it is stopped, or in an uninterruptible wait";
    case Answer::no_signal:
      return "there is no real-time signal to ask by";
    case Answer::busy:
      return "too many threads are being asked";
  }
  return "";
}

}  // namespace

std::string ThreadFrame::name() const {
  return whole_name([this](std::span<char> into) { return raw_name(into); });
}

std::string ThreadWalk::why() const {
  if (answer_ != Answer::given) return text_of(answer_);
  if (stop_ == StopReason::outermost) return "complete";
  return "stopped (" + std::string(stop_reason_name(stop_)) + "): " + error_.text();
}

}  // namespace jitunwind
