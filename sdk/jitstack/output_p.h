// Writes targets and their stacks, as text, as JSON, or counted as a profile: docs/jitstack.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

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

/// A profile: stacks that recur, counted.
class Profile {
 public:
  /// Counts a stack by its names; addresses do not matter. A stack that was cut short gets a frame "[cut short]" below
  /// its frames.
  void add(const SeenStack& stack);

  std::uint64_t stacks() const noexcept { return stacks_; }
  std::uint64_t cut_short() const noexcept { return cut_short_; }

  /// Writes a line for each stack, "thread;main;f 12", in the order of the names, as stackcollapse programs do. The
  /// names of code made at run time end with "_[j]". Names are escaped, and ';' in them becomes ':'.
  std::string folded() const;

  /// Writes folded() to NAME.folded, and that name to stdout below the line `said`. Errors go to stderr.
  ExitStatus write(const std::string& name, const std::string& said) const;

 private:
  std::map<std::string, std::uint64_t> counts_;  // by the line without its count
  std::uint64_t stacks_ = 0;
  std::uint64_t cut_short_ = 0;
};

}  // namespace jitunwind::jitstack
