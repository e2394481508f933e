// Random programs on the machine in C, full of exceptions of the language and of C++ that cross scripts and C++: the
// output equals that of an evaluation of the program's tree.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

extern "C" {
#include "examples/c_toy_vm/toy.h"
}
#include "tests/toy_vm/random_script.h"

namespace {

std::string g_out;
int g_ticks = 0;

value of_number(std::int64_t number) {
  value made{};
  made.as.number = number;
  return made;
}
void say(const std::string& line) { g_out += line + "\n"; }
value call(machine* m, const value* arguments) { return toy_call(m, arguments[0], &arguments[1], 1); }

value print(machine* m, const value* arguments) {
  say(toy_to_text(m, arguments[0])->bytes);
  return of_number(0);
}
value tick(machine* m, const value*) {
  if (++g_ticks > toy_test::k_ticks) toy_fail(m, "out of time");
  return of_number(0);
}
value fail(machine* m, const value* arguments) {
  value thrown{};
  thrown.as.text = toy_to_text(m, arguments[0]);
  thrown.kind = kind_error;
  toy_throw(&thrown);
}
value odd(machine*, const value*) { throw 5; }
value each(machine* m, const value* arguments) {
  for (std::int64_t i = 0; i < arguments[0].as.number; ++i) {
    const value turn = of_number(i);
    toy_call(m, arguments[1], &turn, 1);
  }
  return of_number(0);
}
value guarded(machine* m, const value* arguments) {
  struct Guard {
    Guard() { say("enter"); }
    ~Guard() { say("leave"); }
  };
  const Guard guard;
  return call(m, arguments);
}
value attempt(machine* m, const value* arguments) {
  protected_call made{m, &call, arguments, {}, nullptr, 0};
  toy_run_protected(&made);
  return made.exception ? toy_caught(made.exception) : made.result;
}
value catch_odd(machine* m, const value* arguments) {
  try {
    return call(m, arguments);
  } catch (int number) {
    return of_number(number);
  }
}
value rethrow(machine* m, const value* arguments) {
  try {
    return call(m, arguments);
  } catch (...) {
    say("rethrown");
    throw;
  }
}

constexpr native k_natives[] = {{"print", 1, &print},     {"tick", 0, &tick},       {"fail", 1, &fail},
                                {"odd", 0, &odd},         {"apply", 2, &call},      {"each", 2, &each},
                                {"guarded", 2, &guarded}, {"attempt", 2, &attempt}, {"catch_odd", 2, &catch_odd},
                                {"rethrow", 2, &rethrow}};

void run_main(machine* m) {
  char here = 0;
  m->stack_limit = &here - (1 << 20);
  protected_call made{m, m->functions[m->function_count - 1]->code, nullptr, {}, nullptr, 1};
  try {
    toy_run_protected(&made);
    const value result = made.exception ? toy_caught(made.exception) : made.result;
    say((made.exception ? "uncaught: " : "returned: ") + std::string(toy_to_text(m, result)->bytes));
  } catch (int) {
    say("odd");
  }
}

std::string run(const std::string& script) {
  const auto m = std::make_unique<machine>();
  g_out.clear();
  g_ticks = 0;
  if (toy_load(m.get(), k_natives, std::size(k_natives), script.data(), script.size()))
    run_main(m.get());
  else
    say(std::to_string(m->refused_line) + ": " + m->message);
  toy_free(m.get());
  return g_out;
}

// covers: EX14
TEST(ToyInC, TheMachineDoesWhatTheProgramSays) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const toy_test::RandomScript script = toy_test::random_script(seed);
    ASSERT_EQ(run(printed(script)), toy_test::evaluated(script)) << "seed " << seed << "\n" << printed(script);
  }
}

}  // namespace
