// A debugger that never stops the process.
#pragma once

#include <functional>

namespace debuggers_test {

/// Runs it in a child that is traced by a debugger of this name, which has what GoogleTest says of it as its exit
/// status.
void traced_by(const char* name, const std::function<void()>& run);

}  // namespace debuggers_test
