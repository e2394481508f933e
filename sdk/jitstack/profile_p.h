// A profile: stacks that recur, counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/stacks_p.h"

namespace jitunwind::jitstack {

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
