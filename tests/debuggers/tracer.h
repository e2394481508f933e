// A debugger that never stops the process.
#pragma once

#include <functional>

namespace debuggers_test {

/// Runs it in a child that a debugger of this name traces. The child's exit status is GoogleTest's result.
void traced_by(const char* name, const std::function<void()>& run);

}  // namespace debuggers_test
