// Threads that throw through the same frames and catch in them, while others come and go, again and again at the same
// places, are thrown through and catch, too.
#include <pthread.h>

#include <atomic>
#include <iterator>

#include "tests/exceptions/matrix/scenarios.h"
#include "tests/exceptions/matrix/stack.h"

namespace jitunwind::test {
namespace {

constexpr int k_throwers = 2;
constexpr int k_throws = 150;  // of each
constexpr int k_changers = 2;
constexpr int k_least_rounds = 5;
constexpr const char* k_kinds[]{"plain", "frame_pointer", "realigned", "sp_slot", "variable"};

std::atomic<int> caught_in_stack, caught_elsewhere, cleaned_in_stack;
std::atomic<int> throwers_left;

void caught(void* object, int, const AtPad* at) {
  ++(static_cast<Thrown*>(object)->value == 42 ? caught_in_stack : caught_elsewhere);
  expect_right_at_pad(at, k_own_control_words);
}
void cleaned(const AtPad* at) {
  ++cleaned_in_stack;
  expect_right_at_pad(at, k_own_control_words);
}

template <class Call>
void expect_thrown(int value, Call call) {
  try {
    call();
    expect(false, "something came out");
  } catch (const Thrown& thrown) {
    expect(thrown.value == value, "value of what came out");
  }
}

Frame passing;

void* throw_often(void*) {
  load(k_own_control_words);
  for (int i = 0; i < k_throws; ++i) {
    expect(above() == 101, "caught in the frame");
    expect_thrown(44, [] { (void)call(passing, throw_it<44>); });
  }
  --throwers_left;
  return nullptr;
}

/// Code of every kind at one place, now with a handler, now without.
void* come_and_go(void*) {
  load(k_own_control_words);
  MatrixPlace* const place = matrix_place();
  for (int round = 0; round < k_least_rounds || throwers_left > 0; ++round) {
    for (const char* kind : k_kinds) {
      const bool catches = (round & 1) != 0;
      MatrixFrame* const frame = matrix_frame(kind, catches ? "catches" : "passes", &typeid(Thrown), place);
      if (catches)
        expect(matrix_call(frame, throw_it<43>) == 101, "caught in a frame that was made meanwhile");
      else
        expect_thrown(43, [&] { (void)matrix_call(frame, throw_it<43>); });
      matrix_cancel(frame);
    }
  }
  matrix_give_back(place);
  return nullptr;
}

}  // namespace

void throw_in_threads() {
  set_at_pads({caught, cleaned});
  stack = {make_frame("catches"), make_frame("cleans"), throw_it<42>};
  passing = make_frame("passes");
  throwers_left = k_throwers;
  pthread_t threads[k_throwers + k_changers];
  for (int i = 0; i < k_throwers + k_changers; ++i)
    ::pthread_create(&threads[i], nullptr, i < k_throwers ? throw_often : come_and_go, nullptr);
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  constexpr int k_all = k_throwers * k_throws;
  expect(caught_in_stack == k_all && cleaned_in_stack == k_all, "caught, and cleaned up, each time");
  expect(caught_elsewhere >= k_changers * (k_least_rounds / 2) * static_cast<int>(std::size(k_kinds)),
         "caught in frames that were made meanwhile");
  expect_destroyed(k_all);
}

}  // namespace jitunwind::test
