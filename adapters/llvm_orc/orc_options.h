// What users of the adapter say, and what it says to them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Functions of one object for which LLVM wrote no call frame information: those that cannot throw and do not have the
/// attribute uwtable. They have names in every walk, but a walk leaves them by a guess or not at all.
struct OrcUndescribed {
  std::string object;
  std::vector<std::string> functions;

  /// One line.
  std::string text() const;
};

/// What is told of code that LLVM links.
struct OrcOptions {
  /// Called once an object that has such functions, before any of its code can run, on the thread that links it;
  /// several may. Must not throw.
  std::function<void(const OrcUndescribed&)> on_undescribed{};
};

}  // namespace jitunwind
#pragma GCC visibility pop
