// The options and reports of the adapter.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "jitunwind/adapters/code_segments/code_segments.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Functions of one object without call frame information from LLVM: functions that cannot throw and do not have the
/// attribute uwtable. They have names in every walk, but a walk leaves them by a heuristic or not at all.
struct OrcUndescribed {
  std::string object;
  std::vector<std::string> functions;

  /// One line.
  std::string text() const;
};

/// Options for the code that LLVM links.
struct OrcOptions {
  /// Called once for an object with such functions, before any of its code can run, on the thread that links it.
  /// Several threads may call it at once. It must not throw.
  std::function<void(const OrcUndescribed&)> on_undescribed{};
  /// Code lies in these, so that tools see it which were never told of this library; null: where LLVM places it. It
  /// stays there, too, if the object's data lies further than 2 GiB away, and status() says so. They must outlive the
  /// code.
  CodeSegments* segments = CodeSegments::of_environment();
};

}  // namespace jitunwind
#pragma GCC visibility pop
