// The stack as the author of a program sees it.
#pragma once

#include <string>
#include <vector>

namespace calc {

/// Frames of the program and of natives, innermost first, up to main(): name, and author of the code.
std::vector<std::string> stack_trace();

}  // namespace calc
