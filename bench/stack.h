// Stacks of a given depth on which every frame belongs to another function.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/jit_arena.h"

namespace bench {

inline constexpr std::size_t k_max_depth = 1000;

/// C++ functions, at most k_max_depth. Their frames differ in size and in the registers that they save.
StackFunction static_function(std::size_t index);

/// Functions like these with a destructor that runs when an exception leaves.
StackFunction static_function_with_destructor(std::size_t index);

/// Calls `functions` in order. The stack is deepest in the last one.
void run_stack(const std::vector<StackFunction>& functions, Context& context);

}  // namespace bench
