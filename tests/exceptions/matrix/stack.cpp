#include "tests/exceptions/matrix/stack.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "tests/exceptions/matrix/asm_frames.h"
#include "tests/exceptions/matrix/scenarios.h"

using namespace std::literals;

namespace jitunwind::test {

Noted noted;
Stack stack;

namespace {

const char* kind_of_run;
std::atomic<int> failed;
AtPads at_pads;

constexpr std::uint32_t k_mxcsr_control = 0xffc0;  // the rest are flags

// The frames that are compiled.

[[gnu::noinline]] long passing(void (*callee)()) {
  callee();
  return 0;
}
[[gnu::noinline]] long cleaning(void (*callee)()) {
  struct Cleanup {
    ~Cleanup() { at_pads.cleaned(nullptr); }
  };
  const Cleanup cleanup;
  return passing(callee);
}
[[gnu::noinline]] long catching_thrown(void (*callee)()) {
  try {
    return passing(callee);
  } catch (Thrown& thrown) {
    at_pads.caught(&thrown, 1, nullptr);
    return 101;
  }
}
[[gnu::noinline]] long catching_everything(void (*callee)()) {
  try {
    return passing(callee);
  } catch (...) {
    at_pads.caught(nullptr, 1, nullptr);
    return 101;
  }
}

[[gnu::noinline]] void below() {
  const Counted<k_below> counted;
  stack.innermost();
}
[[gnu::noinline]] void between() {
  const Counted<k_between> counted;
  (void)call(stack.inner, below);
}

long returned;
Arrival enter_catching_frame() {
  Arrival arrival{};
  noted.caught_outside = 0;
  returned = -1;
  const ControlWords before = control_words();
  load(k_own_control_words);
  catching_frame([](void*) { returned = above(); }, nullptr, &arrival);
  expect(control_words() == k_own_control_words, "control words behind the stack");
  load(before);
  expect(preserved_are_magic(arrival), "preserved registers outside");
  return arrival;
}

}  // namespace

void expect(bool right, const char* what) {
  if (right) return;
  ++failed;
  std::printf("wrong: %s\n", what);
  std::fflush(stdout);
}

void end_program() {
  if (failed == 0) std::puts("ok");
  std::fflush(stdout);
  ::_exit(failed == 0 ? 0 : 1);
}

ControlWords control_words() {
  ControlWords now{};
  asm volatile("stmxcsr %0; fnstcw %1" : "=m"(now.mxcsr), "=m"(now.x87));
  now.mxcsr &= k_mxcsr_control;
  return now;
}
void load(const ControlWords& words) { asm volatile("ldmxcsr %0; fldcw %1" ::"m"(words.mxcsr), "m"(words.x87)); }

Frame make_frame(const char* role, Catches what) {
  const std::type_info* const type = what == Catches::thrown ? &typeid(Thrown) : nullptr;
  return {role, type != nullptr, kind_of_run == nullptr ? nullptr : matrix_frame(kind_of_run, role, type, nullptr)};
}

[[gnu::noinline]] long call(const Frame& frame, void (*callee)()) {
  if (frame.made != nullptr) return matrix_call(frame.made, callee);
  if (frame.role == "catches"sv) return frame.typed ? catching_thrown(callee) : catching_everything(callee);
  return frame.role == "cleans"sv ? cleaning(callee) : passing(callee);
}

void set_at_pads(const AtPads& pads) {
  at_pads = pads;
  matrix_at_pads(pads.caught, pads.cleaned);
}

[[gnu::noinline]] long above() {
  const Counted<k_above> counted;
  return call(stack.outer, between);
}

void expect_caught_outside() {
  const Arrival arrival = enter_catching_frame();
  expect(arrival.at_landing == 1 && noted.caught_outside == 1, "caught outside");
}

long expect_returned() {
  const Arrival arrival = enter_catching_frame();
  expect(arrival.at_landing == 0 && noted.caught_outside == 0, "nothing came out");
  return returned;
}

void expect_destroyed(int times) {
  for (int place = 0; place < k_places; ++place) {
    expect(noted.constructed[place] == times, "objects constructed");
    expect(noted.destroyed[place] == times, "objects destroyed");
  }
}

void expect_values(std::initializer_list<int> values) {
  expect(noted.value_count == static_cast<int>(values.size()) &&
             std::equal(values.begin(), values.end(), std::begin(noted.values)),
         "values of what was caught");
}

void run_scenario(const Scenario& scenario, const char* kind) {
  kind_of_run = kind == "compiled"sv ? nullptr : kind;
  scenario.run();
  expect(noted.thrown_alive == 0, "exception objects are gone");
  end_program();
}

void expect_right_at_pad(const AtPad* at, const ControlWords& expected) {
  if (at == nullptr) return;
  expect(at->is_as_in_call(), "registers at a landing pad");
  expect(ControlWords{at->mxcsr & k_mxcsr_control, at->x87_control} == expected, "control words at a landing pad");
}

}  // namespace jitunwind::test
