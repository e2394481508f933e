// What is told of targets, as text and as JSON: docs/jitstack.md.
#pragma once

#include <memory>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/stacks_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"

namespace jitunwind::jitstack {

/// Is told of target after target, stack after stack.
class Output {
 public:
  virtual ~Output() = default;
  /// `core`: its file; "" of a process.
  virtual void begin_target(const std::string& core, pid_t process, std::size_t threads) = 0;
  virtual void stack(const SeenStack& stack) = 0;
  /// What follows are the samples of a file.
  virtual void begin_samples(const std::string& file, std::size_t samples) = 0;
  /// There is no target, or not all of it.
  virtual void failed(const std::string& core, pid_t process, const TargetError& error) = 0;
  /// False: not everything could be written.
  virtual bool end() = 0;
};

std::unique_ptr<Output> text_output(const Options& options, const Colours& colours);
std::unique_ptr<Output> json_output();

/// "zombie".
const char* reason_name(TargetError::Reason reason) noexcept;

}  // namespace jitunwind::jitstack
