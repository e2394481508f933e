// Writes targets and their stacks, as text or as JSON: docs/jitstack.md.
#pragma once

#include <memory>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/stacks_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"

namespace jitunwind::jitstack {

/// Receives each target, followed by its stacks.
class Output {
 public:
  virtual ~Output() = default;
  /// `core` is the core file's path, "" for a process.
  virtual void begin_target(const std::string& core, pid_t process, std::size_t threads) = 0;
  virtual void stack(const SeenStack& stack) = 0;
  /// The stacks that follow are the samples of a file.
  virtual void begin_samples(const std::string& file, std::size_t samples) = 0;
  /// Reports that a target is missing, or a part of it.
  virtual void failed(const std::string& core, pid_t process, const TargetError& error) = 0;
  /// Returns false if not everything could be written.
  virtual bool end() = 0;
};

std::unique_ptr<Output> text_output(const Options& options, const Colours& colours);
std::unique_ptr<Output> json_output();

/// Returns the reason's name, such as "zombie".
const char* reason_name(TargetError::Reason reason) noexcept;

}  // namespace jitunwind::jitstack
