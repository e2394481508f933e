// Exceptions between scripts and C++ within one process: types, objects, destructors, registers of the caller, traces.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/toy_vm/machine.h"
#include "examples/toy_vm/natives.h"

namespace {

std::size_t g_most_memory = SIZE_MAX;  // for one object

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return size > g_most_memory ? nullptr : std::malloc(size);
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  return memory ? memory : throw std::bad_alloc();
}
// The functions are not inlined: gcc takes free() for a delete of another kind than the new that it sees.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using toy::Machine;
using toy::Value;

int g_alive = 0, g_destroyed = 0;

struct Counted {
  Counted() { ++g_alive; }
  ~Counted() { --g_alive, ++g_destroyed; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

/// An exception type that scripts know nothing of, whose std::exception is not at its beginning.
struct Tag {
  virtual ~Tag() = default;
  int id = 7;
};
struct FarError : Tag, std::out_of_range {
  FarError() : std::out_of_range("far away") {}
  Counted lives{};
  FarError(const FarError& other) : Tag(other), std::out_of_range(other) {}
};

// Natives.

Value counted(Machine& machine, const Value* arguments) {
  const Counted counts;
  return machine.call(arguments[0], {});
}
Value throw_far(Machine&, const Value*) {
  const Counted counts;
  throw FarError();
}
/// There is no memory for a copy of its message.
struct LongError : std::exception {
  static constexpr std::size_t size = 1 << 20;
  const char* what() const noexcept override {
    static const std::string message(size, '.');
    g_most_memory = size / 2;
    return message.c_str();
  }
  Counted lives{};
};
Value throw_long(Machine&, const Value*) { throw LongError(); }
Value throw_poor(Machine&, const Value*) {
  g_most_memory = 0;
  throw 5;
}
Value throw_number(Machine&, const Value*) { throw 5; }
/// Catches anything and rethrows it.
Value rethrows(Machine& machine, const Value* arguments) {
  try {
    return machine.call(arguments[0], {});
  } catch (...) {
    machine.out() << "passed on\n";
    throw;
  }
}
Value catches_number(Machine& machine, const Value* arguments) {
  try {
    return machine.call(arguments[0], {});
  } catch (int number) {
    return Value::of(std::int64_t{number});
  }
}
/// Destructors that call scripts while an exception passes.
Value calls_at_end(Machine& machine, const Value* arguments) {
  struct AtEnd {
    ~AtEnd() { machine.call(function, {}); }
    Machine& machine;
    Value function;
  };
  const AtEnd at_end{machine, arguments[1]};
  return machine.call(arguments[0], {});
}

std::vector<toy::Native> natives() {
  const auto standard = toy::standard_natives();
  std::vector<toy::Native> all(standard.begin(), standard.end());
  all.insert(all.end(), {{"counted", 1, &counted},
                         {"throw_far", 0, &throw_far},
                         {"throw_long", 0, &throw_long},
                         {"throw_poor", 0, &throw_poor},
                         {"throw_number", 0, &throw_number},
                         {"rethrows", 1, &rethrows},
                         {"catches_number", 1, &catches_number},
                         {"calls_at_end", 2, &calls_at_end}});
  return all;
}

class ToyMachine : public testing::Test {
 protected:
  ToyMachine() : machine_(natives(), out_) { g_alive = g_destroyed = 0; }

  /// Returns the output of the script's main().
  std::string printed(const std::string& script) {
    load(script);
    machine_.run({});
    return out_.str();
  }
  void load(const std::string& script) { machine_.load(script, "test.toy"); }
  /// Returns the first frames of the escaped exception: "name place", a line each.
  std::string trace(std::size_t frames) const {
    std::string lines;
    for (const toy::TracedFrame& frame : machine_.uncaught())
      if (frames > 0) --frames, lines += frame.name + " " + frame.place + "\n";
    return lines;
  }

  std::ostringstream out_;
  Machine machine_;
};

TEST_F(ToyMachine, ArithmeticWrapsAround) {
  EXPECT_EQ(printed(R"(fn main() {
    let most = 9223372036854775807;
    let least = -most - 1;
    print(most + 1 == least); print(least - 1 == most); print(most * 2); print(least / -1 == least); print(least % -1);
    print(-7 / 2); print(-7 % 2); print(7 / -2); print(7 % -2); print(2 + 3 * 4 - 6 / 2); print(-(2 + 3));
  })"),
            "1\n1\n-2\n1\n0\n-3\n-1\n-3\n1\n11\n-5\n");
}

TEST_F(ToyMachine, ComparesAndDecides) {
  EXPECT_EQ(printed(R"(
    fn say(what) { print(what); return what; }
    fn main() {
      print((1 < 2) + (2 <= 2) + (3 > 2) + (2 >= 3)); print("b" > "a"); print("a" + 1 == "a1"); print(1 == "1");
      print(print != main); print(not 0); print(not "");
      say(0) and say(1); say(2) or say(3); print(4 and 5); print(0 or 0); print(1 and 0 or 6); print(not 1 == 2);
    })"),
            "3\n1\n1\n0\n1\n1\n0\n0\n2\n1\n0\n1\n1\n");
}

TEST_F(ToyMachine, MeaninglessOperationsAreExceptions) {
  EXPECT_EQ(printed(R"(
    fn add() { return main + 1; }
    fn compare() { return 1 < "2"; }
    fn divide() { return "a" / "b"; }
    fn remainder() { return 5 % 0; }
    fn call() { return apply(5, 1); }
    fn arity() { return apply(add, 1); }
    fn endless() { let t = "long"; while 1 { t = t + t; } }
    fn try_it(f) { try { attempt(f, throw_it); } catch e { print(e); } }
    fn throw_it(e) { throw e; }
    fn main() {
      try_it(add); try_it(compare); try_it(divide); try_it(remainder); try_it(call); try_it(arity); try_it(endless);
    })"),
            "cannot add a function and a number\ncannot compare a number and a text\ncannot divide a text and a text\n"
            "division by zero\n'5' is no function\n'add' takes 0 arguments, not 1\ntext too long\n");
}

TEST_F(ToyMachine, ScriptErrorsDestroyWhatCxxFramesHold) {
  EXPECT_EQ(printed(R"(
    fn main() { try { counted(one); } catch e { print(e); } }
    fn one() { counted(two); }
    fn two() { try { counted(three); } finally { print("two"); } }
    fn three() { throw 3; })"),
            "two\n3\n");
  EXPECT_EQ(g_alive, 0);
  EXPECT_EQ(g_destroyed, 3);
}

TEST_F(ToyMachine, CxxSeesWhatScriptsThrow) {
  load("fn main() { counted(thrower); } fn thrower() { throw \"a value\"; }");
  try {
    machine_.run({});
    FAIL();
  } catch (const toy::ScriptError& error) {
    EXPECT_STREQ(error.what(), "a value");
    EXPECT_EQ(toy::to_text(error.value()), "a value");
  }
  EXPECT_EQ(g_destroyed, 1);
}

TEST_F(ToyMachine, CxxExceptionsStayWhatTheyAre) {
  load(R"(
    fn main() { try { again(); } finally { print("finally"); } }
    fn again() { try { throw_far(); } catch e { print(text(e)); throw e; } })");
  try {
    machine_.run({});
    FAIL();
  } catch (const FarError& error) {
    EXPECT_EQ(error.id, 7);
    EXPECT_STREQ(error.what(), "far away");
  }
  EXPECT_EQ(out_.str(), "far away\nfinally\n");
}

TEST_F(ToyMachine, WhatIsNoStdExceptionPassesCatchAndRunsFinally) {
  EXPECT_EQ(printed(R"(
    fn main() { print(catches_number(outer)); }
    fn outer() {
      try {
        try { inner(); } catch e { print("never"); } finally { print("finally"); }
        print("never");
      } catch e { print("never"); }
    }
    fn inner() { try { throw_number(); } catch e { print("never"); } })"),
            "finally\n5\n");
}

TEST_F(ToyMachine, RethrownByCxx) {
  EXPECT_EQ(printed(R"(
    fn main() { try { rethrows(one); } catch e { print(text(e)); } }
    fn one() { try { rethrows(throw_far); } finally { print("one"); } })"),
            "passed on\none\npassed on\nfar away\n");
}

TEST_F(ToyMachine, DestructorsMayThrowAndCatchInScriptsOnTheWay) {
  EXPECT_EQ(printed(R"(
    fn main() { try { calls_at_end(thrower, at_end); } catch e { print("caught " + e); } }
    fn thrower() { throw "first"; }
    fn at_end() { try { throw "second"; } catch e { print("at end " + e); } })"),
            "at end second\ncaught first\n");
}

TEST_F(ToyMachine, DiscardedExceptionsAreDestroyed) {
  EXPECT_EQ(printed(R"(
    fn returns() { try { throw_far(); } finally { return 1; } }
    fn breaks() { while 1 { try { throw_far(); } finally { break; } } return 2; }
    fn continues() { let n = 0; while n < 2 { n = n + 1; try { throw_far(); } finally { continue; } } return n + 1; }
    fn throws() { try { try { throw_far(); } finally { throw 4; } } catch e { return e; } }
    fn in_turn() {
      try {
        try { throw_far(); } finally { try { throw_far(); } finally { throw 5; } }
      } catch e { return e; }
    }
    fn main() { print(returns()); print(breaks()); print(continues()); print(throws()); print(in_turn()); })"),
            "1\n2\n3\n4\n5\n");
  // The thrown objects are gone, and one in each frame that threw; none was copied for a script.
  EXPECT_EQ(g_alive, 0);
  EXPECT_EQ(g_destroyed, 2 * 7);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(ToyMachine, CatchThatHasNoMemoryThrowsOutward) {
  const std::string output = printed(R"(
    fn main() {
      try {
        try { throw_long(); } catch e { print("never"); } finally { print("finally"); }
      } catch e { print(text(e)); }
    })");
  g_most_memory = SIZE_MAX;
  EXPECT_EQ(output, "finally\nstd::bad_alloc\n");
  EXPECT_EQ(g_alive, 0);
}

TEST_F(ToyMachine, TracesShowWhereItWasThrown) {
  load(R"(fn main() {
  each(1, one);
}
fn one(i) {
  try {
    rethrows(two);
  } finally {
    print("finally");
  }
}
fn two() {
  scoped("s",
         throw_far);
})");
  EXPECT_THROW(machine_.run({}), FarError);
  // C++ rethrows the exception, and its trace begins there.
  EXPECT_EQ(trace(5),
            "(anonymous namespace)::rethrows C++\none test.toy:6\ntoy::natives::each C++\nmain test.toy:2\n"
            "(anonymous namespace)::ToyMachine_TracesShowWhereItWasThrown_Test::TestBody C++\n");
}

TEST_F(ToyMachine, TraceOfNativeBelowScriptBelowNative) {
  load("fn main() { scoped(\"outer\", f); }\nfn f() {\n  fail(\"no\");\n}");
  EXPECT_THROW(machine_.run({}), std::runtime_error);
  EXPECT_EQ(out_.str(), "enter outer\nleave outer\n");
  EXPECT_EQ(trace(4), "toy::natives::fail C++\nf test.toy:3\ntoy::natives::scoped C++\nmain test.toy:1\n");
  EXPECT_EQ(machine_.uncaught().back().name, "main");
}

TEST_F(ToyMachine, NoTraceOfWhatIsCaught) {
  printed("fn main() { try { throw 1; } catch e { } attempt(f, print); } fn f() { throw 2; }");
  EXPECT_TRUE(machine_.uncaught().empty());
}

TEST_F(ToyMachine, NoTraceWithoutMemory) {
  load("fn main() { throw_poor(); }");
  EXPECT_THROW(machine_.run({}), int);
  g_most_memory = SIZE_MAX;
  EXPECT_TRUE(machine_.uncaught().empty());
}

TEST_F(ToyMachine, RunsAgainAfterAnException) {
  load("fn main(n) { if n == 0 { return main(n); } return n / (n - 1); }");
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_THROW(machine_.run(std::array{Value::of(std::int64_t{0})}), toy::ScriptError);
    EXPECT_THROW(machine_.run(std::array{Value::of(std::int64_t{1})}), toy::ScriptError);
    EXPECT_EQ(machine_.run(std::array{Value::of(std::int64_t{2})}).number, 2);
  }
}

}  // namespace
