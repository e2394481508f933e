// Exceptions that land in code made at run time, thrown by the C++ run-time with the system's unwinder.
#include <gtest/gtest.h>

#include <pthread.h>
#include <unwind.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/exceptions/handlers/landing_code.h"

namespace jitunwind::test {
namespace {

using x86_64::Builder;

struct Caught {
  void* object;
  int selector;
  bool right;  // the registers of the frame
};
std::vector<Caught> g_caught;
int g_cleaned;
bool g_right_when_cleaned;
int g_constructed;
int g_destroyed;

struct Counted {
  Counted() { ++g_constructed; }
  ~Counted() { ++g_destroyed; }
};

/// Puts a different value into every preserved register, and has a destructor to run.
template <class Thrown>
[[gnu::noinline]] void throw_with(Thrown thrown) {
  const Counted counted;
  asm volatile("xor %%ebx,%%ebx; mov $77,%%r12; mov $78,%%r13; mov $79,%%r14; mov $80,%%r15" ::
                   : "rbx", "r12", "r13", "r14", "r15");
  throw thrown;
}
void throw_runtime_error() { throw_with(std::runtime_error("from below")); }
void throw_range_error() { throw_with(std::range_error("derived")); }
void throw_logic_error() { throw_with(std::logic_error("another")); }
void throw_int() { throw_with(42); }

class Landing : public testing::Test {
 protected:
  Landing() {
    g_caught.clear();
    g_cleaned = g_constructed = g_destroyed = 0;
    LandingFrame::caught = [](void* object, int selector, const AtPad& at) {
      g_caught.push_back({object, selector, at.is_as_in_call()});
    };
    LandingFrame::cleaned = [](const AtPad& at) {
      ++g_cleaned;
      g_right_when_cleaned = at.is_as_in_call();
    };
  }
};

/// Calls with six live values, which are unchanged whether the call returns or throws.
template <class Body>
[[gnu::noinline]] long keeping_registers(Body body, std::string& thrown) {
  long a = 0x1111, b = 0x2222, c = 0x3333, d = 0x4444, e = 0x5555, f = 0x6666;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  long result = -1;
  thrown.clear();
  try {
    const Counted counted;
    result = body();
  } catch (const std::exception& error) {
    thrown = error.what();
  } catch (int number) {
    thrown = std::to_string(number);
  }
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  const std::array<long, 6> kept{a, b, c, d, e, f};
  EXPECT_EQ(kept, (std::array<long, 6>{0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666}));
  EXPECT_EQ(g_constructed, g_destroyed);
  return result;
}

long run(const LandingFrame& frame, void (*callee)(), std::string& thrown) {
  return keeping_registers([&] { return frame(callee); }, thrown);
}

LandingFrame catching(const std::function<void(Builder&)>& reasons) {
  return LandingFrame([&](Builder& b, const LandingOffsets& at) { reasons(b.call_site(at.call, at.catching)); });
}

// covers: DY21
TEST_F(Landing, CatchesByType) {
  const LandingFrame frame = catching([](Builder& b) { b.catches(typeid(std::runtime_error)).catches(typeid(int)); });
  std::string thrown;
  EXPECT_EQ(run(
                frame, [] {}, thrown),
            0);
  LandingFrame::caught = [](void* object, int selector, const AtPad& at) {
    g_caught.push_back({object, selector, at.is_as_in_call()});
    if (selector == 1) {
      EXPECT_STREQ(static_cast<std::runtime_error*>(object)->what(), "from below");
    }
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(frame, throw_runtime_error, thrown), 101);
  ASSERT_EQ(g_caught.size(), 3u);
  EXPECT_EQ(g_caught[0].selector, 1);
  EXPECT_TRUE(g_caught[0].right);
  EXPECT_EQ(run(frame, throw_int, thrown), 102);
  EXPECT_EQ(thrown, "");
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(Landing, CatchesDerivedTypesThroughTheirBases) {
  const LandingFrame frame = catching([](Builder& b) { b.catches(typeid(std::exception)); });
  std::string thrown;
  EXPECT_EQ(run(frame, throw_range_error, thrown), 101);
  const LandingFrame pointers = catching([](Builder& b) { b.catches(typeid(const std::exception*)); });
  static std::range_error error("pointed to");
  LandingFrame::caught = [](void* object, int, const AtPad&) {
    EXPECT_STREQ(static_cast<const std::exception*>(object)->what(), "pointed to");
  };
  EXPECT_EQ(run(
                pointers, [] { throw &error; }, thrown),
            101);
}

TEST_F(Landing, PassesWhatIsNotCaught) {
  const LandingFrame frame = catching([](Builder& b) { b.catches(typeid(std::runtime_error)); });
  std::string thrown;
  EXPECT_EQ(run(frame, throw_logic_error, thrown), -1);
  EXPECT_EQ(thrown, "another");
  EXPECT_TRUE(g_caught.empty());
}

TEST_F(Landing, PassesCallsThatAreInNoSite) {
  const LandingFrame frame([](Builder& b, const LandingOffsets& at) { b.call_site(at.call_caught, at.leaving); });
  std::string thrown;
  EXPECT_EQ(run(frame, throw_logic_error, thrown), -1);
  EXPECT_EQ(thrown, "another");
}

TEST_F(Landing, CatchesEverything) {
  const LandingFrame frame = catching([](Builder& b) { b.catches(typeid(int)).catches_all(); });
  std::string thrown;
  EXPECT_EQ(run(frame, throw_int, thrown), 101);
  EXPECT_EQ(run(frame, throw_logic_error, thrown), 102);
  EXPECT_EQ(thrown, "");
}

TEST_F(Landing, CatchesExceptionsOfOtherLanguages) {
  static _Unwind_Exception foreign;
  static int deleted;
  std::memcpy(&foreign.exception_class, "NONECXX", 8);
  foreign.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception*) { ++deleted; };
  const LandingFrame by_type = catching([](Builder& b) { b.catches(typeid(std::exception)); });
  const LandingFrame all = catching([](Builder& b) { b.catches_all(); });
  static const LandingFrame* inner = &by_type;
  std::string thrown;
  EXPECT_EQ(run(
                all, [] { (*inner)([] { (void)_Unwind_RaiseException(&foreign); }); }, thrown),
            101);
  EXPECT_EQ(deleted, 1);
}

// covers: EX03
TEST_F(Landing, CleansUpAndGoesOn) {
  const LandingFrame frame([](Builder& b, const LandingOffsets& at) { b.call_site(at.call, at.cleaning); });
  std::string thrown;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(run(frame, throw_runtime_error, thrown), -1);
    EXPECT_EQ(thrown, "from below");
    EXPECT_EQ(g_cleaned, i);
    EXPECT_TRUE(g_right_when_cleaned);
  }
}

TEST_F(Landing, CatchesOrCleansUpAtOnePad) {
  const LandingFrame frame([](Builder& b, const LandingOffsets& at) {
    b.call_site(at.call, at.cleaning).catches(typeid(std::logic_error)).cleans_up();
  });
  std::string thrown;
  EXPECT_EQ(run(frame, throw_runtime_error, thrown), -1);
  EXPECT_EQ(g_cleaned, 1);
}

LandingFrame catching_and_leaving() {
  return LandingFrame([](Builder& b, const LandingOffsets& at) {
    b.call_site(at.call_caught, at.leaving).call_site(at.call, at.catching).catches_all();
  });
}

TEST_F(Landing, ThrowsAgainWhatItCaught) {
  const LandingFrame frame = catching_and_leaving();
  LandingFrame::caught = [](void*, int, const AtPad&) { throw; };
  std::string thrown;
  EXPECT_EQ(run(frame, throw_runtime_error, thrown), -1);
  EXPECT_EQ(thrown, "from below");
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_FALSE(std::current_exception());
}

TEST_F(Landing, ThrowsAnotherOneFromItsCatch) {
  const LandingFrame frame = catching_and_leaving();
  LandingFrame::caught = [](void*, int, const AtPad&) { throw std::logic_error("in its place"); };
  std::string thrown;
  EXPECT_EQ(run(frame, throw_runtime_error, thrown), -1);
  EXPECT_EQ(thrown, "in its place");
  EXPECT_FALSE(std::current_exception());
}

/// A frame that catches, below a frame that cleans up, below one that catches the exception that the first throws
/// again; and an exception that is thrown and caught while another is being handled.
TEST_F(Landing, NestsWithOtherFrames) {
  static const LandingFrame inner = catching_and_leaving();
  static const LandingFrame middle([](Builder& b, const LandingOffsets& at) { b.call_site(at.call, at.cleaning); });
  static const LandingFrame outer = catching_and_leaving();
  static int depth;
  depth = 0;
  LandingFrame::caught = [](void* object, int selector, const AtPad& at) {
    g_caught.push_back({object, selector, at.is_as_in_call()});
    if (++depth != 1) return;
    std::string unused;
    EXPECT_EQ(outer(throw_int), 101) << "while another exception is being handled";
    throw;
  };
  std::string thrown;
  const auto body = [] { middle([] { inner(throw_runtime_error); }); };
  EXPECT_EQ(run(outer, body, thrown), 101);
  EXPECT_EQ(g_caught.size(), 3u);
  EXPECT_EQ(g_caught[0].object, g_caught[2].object) << "the same exception";
  EXPECT_EQ(g_cleaned, 1);
  EXPECT_FALSE(std::current_exception());
}

TEST_F(Landing, KeepsExceptionSpecifications) {
  const LandingFrame frame = catching([](Builder& b) { b.allows({&typeid(std::runtime_error), &typeid(long)}); });
  std::string thrown;
  EXPECT_EQ(run(frame, throw_range_error, thrown), -1) << "allowed through a base";
  EXPECT_EQ(thrown, "derived");
  EXPECT_EQ(run(frame, throw_int, thrown), 99) << "lands with selector -1";
  EXPECT_EQ(thrown, "");

  const LandingFrame none = catching([](Builder& b) { b.allows({}); });
  EXPECT_EQ(run(none, throw_range_error, thrown), 99);
}

TEST(LandingDeathTest, TerminatesWhereItMustNotThrow) {
  const LandingFrame frame([](Builder& b, const LandingOffsets& at) { b.terminates(at.call); });
  EXPECT_EQ(frame([] {}), 0);
  EXPECT_DEATH(frame(throw_runtime_error), "terminate called after throwing.*runtime_error");
}

TEST_F(Landing, CleansUpWhenItsThreadEnds) {
  static const LandingFrame frame(
      [](Builder& b, const LandingOffsets& at) { b.call_site(at.call, at.cleaning).catches(typeid(int)).cleans_up(); });
  std::thread([] { frame([] { pthread_exit(nullptr); }); }).join();
  EXPECT_EQ(g_cleaned, 1);
  EXPECT_TRUE(g_right_when_cleaned);
}

}  // namespace
}  // namespace jitunwind::test
