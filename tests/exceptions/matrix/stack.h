// The stack that every scenario builds: C++ frames with destructors above, between and below two frames made at run
// time. It records what happens while an exception passes.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <typeinfo>

#include "tests/exceptions/matrix/frames.h"

namespace jitunwind::test {

/// Prints a failed check.
void expect(bool right, const char* what);
/// Prints "ok" if no check failed.
[[noreturn]] void end_program();

enum Place { k_above, k_between, k_below, k_places };

struct Noted {
  // Objects on the stack, by place.
  std::atomic<int> constructed[k_places];
  std::atomic<int> destroyed[k_places];
  std::atomic<int> thrown_alive;  // exception objects
  int caught_in_frame;            // times
  int cleaned_in_frame;
  int caught_outside;
  int values[8];  // of exceptions, in the order in which they were caught
  int value_count;
};
extern Noted noted;

struct Thrown {
  explicit Thrown(int n) : value(n) { ++noted.thrown_alive; }
  Thrown(const Thrown& other) : value(other.value) { ++noted.thrown_alive; }
  ~Thrown() { --noted.thrown_alive; }
  int value;
};

template <Place Where>
struct Counted {
  Counted() { ++noted.constructed[Where]; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { ++noted.destroyed[Where]; }
};

/// A frame of the kind of the run, with a role of matrix_frame().
struct Frame {
  const char* role;
  bool typed;               // "catches" Thrown alone
  const MatrixFrame* made;  // null: compiled, of the same role
};
enum class Catches { thrown, everything };
Frame make_frame(const char* role, Catches what = Catches::thrown);
long call(const Frame& frame, void (*callee)());

/// The functions that handlers and cleanups of the frames call; `at` is null in compiled ones.
struct AtPads {
  void (*caught)(void* object, int selector, const AtPad* at);
  void (*cleaned)(const AtPad* at);
};
void set_at_pads(const AtPads& pads);

struct Stack {
  Frame outer, inner;
  void (*innermost)();
};
extern Stack stack;
/// Begins the stack; returns the outer frame's result.
long above();

/// Throws with a different value in each preserved register.
template <int Value>
[[noreturn]] void throw_it() {
  asm volatile("mov $1,%%ebx; mov $2,%%r12d; mov $3,%%r13d; mov $4,%%r14d; mov $5,%%r15d" ::
                   : "rbx", "r12", "r13", "r14", "r15");
  throw Thrown(Value);
}

/// Calls above() in a frame that catches everything; expects an exception, and checks the frame's registers.
void expect_caught_outside();
/// Calls it, expects it to return, and returns the result of above().
long expect_returned();
/// Checks that all objects of the stack were destroyed once each.
void expect_destroyed(int times = 1);
void expect_values(std::initializer_list<int> values);

/// Control bits of MXCSR and x87 (AMD64 ABI, 3.2.1: preserved across calls).
struct ControlWords {
  std::uint32_t mxcsr;
  std::uint16_t x87;
  bool operator==(const ControlWords&) const = default;
};
ControlWords control_words();
void load(const ControlWords& words);
/// The control words of this code alone: towards zero; double precision.
inline constexpr ControlWords k_own_control_words{0x7f80, 0x027f};

/// Checks that all registers are the frame's. Checks nothing for null.
void expect_right_at_pad(const AtPad* at, const ControlWords& expected);

}  // namespace jitunwind::test
