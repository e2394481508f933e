// Random programs, full of exceptions that cross scripts and C++: the machine's output equals that of an evaluation of
// the program's tree, which shares nothing with the machine.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>

#include "examples/toy_vm/machine.h"
#include "tests/toy_vm/random_script.h"

namespace {

using toy::Machine;
using toy::Value;

int g_ticks = 0;

Value print(Machine& machine, const Value* arguments) {
  machine.out() << toy::to_text(arguments[0]) << '\n';
  return {};
}
Value tick(Machine& machine, const Value*) {
  if (++g_ticks > toy_test::k_ticks) machine.fail("out of time");
  return {};
}
Value fail(Machine&, const Value* arguments) { throw std::runtime_error(toy::to_text(arguments[0])); }
Value odd(Machine&, const Value*) { throw 5; }
Value apply(Machine& machine, const Value* arguments) { return machine.call(arguments[0], {&arguments[1], 1}); }
Value each(Machine& machine, const Value* arguments) {
  for (std::int64_t i = 0; i < arguments[0].number; ++i) machine.call(arguments[1], std::array{Value::of(i)});
  return {};
}
Value guarded(Machine& machine, const Value* arguments) {
  struct Guard {
    explicit Guard(std::ostream& to) : out(to) { out << "enter\n"; }
    ~Guard() { out << "leave\n"; }
    std::ostream& out;
  };
  const Guard guard(machine.out());
  return apply(machine, arguments);
}
Value attempt(Machine& machine, const Value* arguments) {
  try {
    return apply(machine, arguments);
  } catch (const toy::ScriptError& error) {
    return error.value();
  }
}
Value catch_odd(Machine& machine, const Value* arguments) {
  try {
    return apply(machine, arguments);
  } catch (int number) {
    return Value::of(std::int64_t{number});
  }
}
Value rethrow(Machine& machine, const Value* arguments) {
  try {
    return apply(machine, arguments);
  } catch (...) {
    machine.out() << "rethrown\n";
    throw;
  }
}

constexpr std::array<toy::Native, 10> k_natives{{{"print", 1, &print},
                                                 {"tick", 0, &tick},
                                                 {"fail", 1, &fail},
                                                 {"odd", 0, &odd},
                                                 {"apply", 2, &apply},
                                                 {"each", 2, &each},
                                                 {"guarded", 2, &guarded},
                                                 {"attempt", 2, &attempt},
                                                 {"catch_odd", 2, &catch_odd},
                                                 {"rethrow", 2, &rethrow}}};

std::string run(const std::string& script) {
  std::ostringstream out;
  Machine machine(k_natives, out);
  machine.load(script, "random.toy");
  g_ticks = 0;
  try {
    const Value result = machine.run({});
    out << "returned: " << toy::to_text(result) << '\n';
  } catch (const std::exception& error) {
    out << "uncaught: " << error.what() << '\n';
  } catch (int) {
    out << "odd\n";
  }
  return out.str();
}

// TOY_SEEDS=100000 tries more of them.
TEST(ToyRandom, TheMachineDoesWhatTheProgramSays) {
  const char* const wanted = std::getenv("TOY_SEEDS");
  const std::uint64_t seeds = wanted ? std::strtoull(wanted, nullptr, 10) : 200;
  std::size_t uncaught = 0, finished = 0, long_ones = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const toy_test::RandomScript script = toy_test::random_script(seed);
    const std::string expected = toy_test::evaluated(script);
    ASSERT_EQ(run(printed(script)), expected) << "seed " << seed << "\n" << printed(script);
    ++(expected.find("uncaught: ") == std::string::npos ? finished : uncaught);
    long_ones += expected.size() > 100;
  }
  // The programs are worth running.
  EXPECT_GT(uncaught, seeds / 10);
  EXPECT_GT(finished, seeds / 10);
  EXPECT_GT(long_ones, seeds / 20);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

}  // namespace
