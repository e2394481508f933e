#include "bench/stack.h"

#include <array>
#include <utility>

namespace bench {

namespace {

struct Nothing {
  explicit Nothing(Context*) {}
};
/// Has a destructor that runs when an exception leaves the frame.
struct Guard {
  explicit Guard(Context* c) : context(c) {}
  Guard(const Guard&) = delete;
  ~Guard() { asm volatile("" : : "r"(context)); }
  Context* context;
};

/// A function on the stack. The last statement prevents the call before it from becoming a jump, and prevents equal
/// functions from being merged.
template <std::size_t Index, class Local>
[[gnu::noinline]] void frame(Context* context) {
  [[maybe_unused]] const Local local(context);
  std::size_t locals[1 + Index % 5];
  asm volatile("" : "=m"(locals));
  if constexpr (Index % 2 == 1) asm volatile("" ::: "rbx");
  if constexpr (Index % 3 == 1) asm volatile("" ::: "r12", "r13");
  (*context->next++)(context);
  asm volatile("" : : "m"(locals), "i"(Index));
}

template <class Local, std::size_t... Index>
constexpr std::array<StackFunction, sizeof...(Index)> frames(std::index_sequence<Index...>) {
  return {frame<Index, Local>...};
}

constexpr auto k_frames = frames<Nothing>(std::make_index_sequence<k_max_depth>());
constexpr auto k_frames_with_destructors = frames<Guard>(std::make_index_sequence<k_max_depth>());

}  // namespace

StackFunction static_function(std::size_t index) { return k_frames[index]; }
StackFunction static_function_with_destructor(std::size_t index) { return k_frames_with_destructors[index]; }

void run_stack(const std::vector<StackFunction>& functions, Context& context) {
  context.next = functions.data() + 1;
  functions.front()(&context);
}

}  // namespace bench
