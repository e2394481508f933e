#include "bench/stack.h"

#include <array>
#include <utility>

namespace bench {

namespace {

/// What keeps the call below from becoming a jump, and the functions from being merged.
template <std::size_t Index>
[[gnu::noinline]] void frame(Context* context) {
  std::size_t locals[1 + Index % 5];
  asm volatile("" : "=m"(locals));
  if constexpr (Index % 2 == 1) asm volatile("" ::: "rbx");
  if constexpr (Index % 3 == 1) asm volatile("" ::: "r12", "r13");
  (*context->next++)(context);
  asm volatile("" : : "m"(locals), "i"(Index));
}

template <std::size_t... Index>
constexpr std::array<StackFunction, sizeof...(Index)> frames(std::index_sequence<Index...>) {
  return {frame<Index>...};
}

constexpr auto k_frames = frames(std::make_index_sequence<k_max_depth>());

}  // namespace

StackFunction static_function(std::size_t index) { return k_frames[index]; }

void run_stack(const std::vector<StackFunction>& functions, Context& context) {
  context.next = functions.data() + 1;
  functions.front()(&context);
}

}  // namespace bench
