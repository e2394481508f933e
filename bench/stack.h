// Stacks of a given depth on which every frame belongs to another function.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/jit_arena.h"

namespace bench {

inline constexpr std::size_t k_max_depth = 1000;

/// C++ functions, at most k_max_depth; frames differ in size and in the registers they save.
StackFunction static_function(std::size_t index);

/// The same with a destructor to run when an exception leaves.
StackFunction static_function_with_destructor(std::size_t index);

/// Calls its way through `functions`; the last one is where the stack is as deep as it gets.
void run_stack(const std::vector<StackFunction>& functions, Context& context);

}  // namespace bench
