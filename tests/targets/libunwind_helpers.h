// Walks by libunwind's interface: unw_init_remote with the arguments that libunwind-ptrace.h and libunwind-coredump.h
// provide.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/targets/target_programs.h"

#include <libunwind.h>

namespace jitunwind::test {

/// An address space, as long as the object lives.
class AccessorSpace {
 public:
  explicit AccessorSpace(unw_accessors_t& accessors) : space_(unw_create_addr_space(&accessors, 0)) {}
  ~AccessorSpace() { unw_destroy_addr_space(space_); }
  AccessorSpace(const AccessorSpace&) = delete;
  AccessorSpace& operator=(const AccessorSpace&) = delete;
  unw_addr_space_t get() const { return space_; }

 private:
  unw_addr_space_t space_;
};

/// The name, pc and SP of every frame; the last element of `results` is the last result of unw_step.
struct RemoteStack {
  std::vector<SeenFrame> frames{};  ///< without origin
  int end = 0;
};

inline RemoteStack remote_stack(const AccessorSpace& space, void* target) {
  RemoteStack stack;
  unw_cursor_t cursor;
  stack.end = unw_init_remote(&cursor, space.get(), target);
  if (stack.end < 0) return stack;
  do {
    SeenFrame frame;
    unw_get_reg(&cursor, UNW_REG_IP, &frame.pc);
    unw_get_reg(&cursor, UNW_REG_SP, &frame.sp);
    std::array<char, 256> name{};
    if (unw_get_proc_name(&cursor, name.data(), name.size(), nullptr) == 0) frame.name = name.data();
    stack.frames.push_back(frame);
  } while (stack.frames.size() < 100 && (stack.end = unw_step(&cursor)) > 0);
  return stack;
}

/// Returns pc and SP of frames, because names are mangled in one of the two and not in the other.
inline std::vector<std::pair<Addr, Addr>> places(const std::vector<SeenFrame>& frames) {
  std::vector<std::pair<Addr, Addr>> places;
  for (const SeenFrame& frame : frames) places.emplace_back(frame.pc, frame.sp);
  return places;
}

/// The frames from the caller of stand_still() on, as the program itself has seen them.
inline void expect_as_the_program_saw(const RemoteStack& stack, const SeenStack& own) {
  EXPECT_EQ(stack.end, 0) << unw_strerror(stack.end);
  SeenStack seen;
  seen.frames = stack.frames;
  const auto callers = callers_of_stand_still(seen);
  EXPECT_EQ(places(callers), places(own.frames));
  EXPECT_EQ(std::ranges::count(callers, "jit_frame", &SeenFrame::name), 2);
}

}  // namespace jitunwind::test
