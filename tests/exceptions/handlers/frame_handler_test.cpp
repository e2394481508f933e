// A C++ function that decides what exceptions do to a frame made at run time.
#include <gtest/gtest.h>

#include <pthread.h>
#include <unwind.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/builders/frame_handler.h"
#include "tests/exceptions/handlers/landing_code.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;
using Phase = PassedFrame::Phase;

void throw_runtime_error() { throw std::runtime_error("from below"); }
void throw_int() { throw 42; }

LandingFrame handled_by(const FrameHandler& handler) {
  return LandingFrame([&](Builder& b, const LandingOffsets&) { b.handled_by(handler); });
}

class Handler : public testing::Test {
 protected:
  Handler() {
    LandingFrame::caught = [this](void* object, int selector, const AtPad& at) {
      caught_object = object;
      caught_selector = selector;
      at_catch = at;
      sp_at_catch = at.sp();
    };
    LandingFrame::cleaned = [this](const AtPad& at) {
      ++cleaned;
      at_cleanup = at;
    };
  }
  /// The pads of a frame that LandingFrame has made.
  static Addr catching(const PassedFrame& frame) { return frame.start() + static_cast<Addr>(at().catching); }
  static Addr cleaning(const PassedFrame& frame) { return frame.start() + static_cast<Addr>(at().cleaning); }
  /// Otherwise the frame is at the end of the cleanup.
  static bool is_at_callee(const PassedFrame& frame) {
    return static_cast<std::int64_t>(frame.call_offset()) < at().call.end;
  }
  static const LandingOffsets& at() {
    static const LandingFrame any = handled_by([](const PassedFrame&) { return FrameDecision::pass(); });
    return any.offsets();
  }

  void* caught_object = nullptr;
  int caught_selector = -1;
  AtPad at_catch{};
  Addr sp_at_catch = 0;
  int cleaned = 0;
  AtPad at_cleanup{};
};

TEST_F(Handler, CatchesWhereItSays) {
  const LandingFrame frame =
      handled_by([](const PassedFrame& f) { return FrameDecision::catch_at(catching(f)).with(rdx, 7); });
  EXPECT_EQ(frame([] {}), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(frame(throw_runtime_error), 107);
  LandingFrame::caught = [](void* object, int, const AtPad&) {
    ASSERT_NE(object, nullptr);
    EXPECT_STREQ(static_cast<std::runtime_error*>(object)->what(), "from below");
  };
  EXPECT_EQ(frame(throw_runtime_error), 107);
  EXPECT_EQ(frame([] { std::rethrow_exception(std::make_exception_ptr(std::runtime_error("from below"))); }), 107);
  LandingFrame::caught = [this](void*, int, const AtPad& at) { at_catch = at; };
  EXPECT_EQ(frame(throw_runtime_error), 107);
  EXPECT_TRUE(at_catch.has_values());
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(Handler, IsAskedInBothPhasesAndSeesTheFrame) {
  struct Question {
    Phase phase;
    Addr start, pc, sp;
    std::uint64_t offset, rbx, rbp;
    const std::type_info* type;
    int value;
  };
  std::vector<Question> questions;
  const LandingFrame frame = handled_by([&](const PassedFrame& f) {
    questions.push_back({f.phase(), f.start(), f.pc(), f.sp(), f.call_offset(), f.reg(x86_64::rbx), f.reg(x86_64::rbp),
                         f.thrown_type(), *static_cast<int*>(f.thrown_object())});
    EXPECT_FALSE(f.forced());
    return FrameDecision::catch_at(catching(f));
  });
  EXPECT_EQ(frame(throw_int), 100);
  ASSERT_EQ(questions.size(), 2u);
  EXPECT_EQ(questions[0].phase, Phase::search);
  EXPECT_EQ(questions[1].phase, Phase::cleanup);
  for (const Question& q : questions) {
    EXPECT_EQ(q.start, frame.begin());
    EXPECT_EQ(q.pc, frame.begin() + static_cast<Addr>(at().call.end));
    EXPECT_GE(q.offset, static_cast<std::uint64_t>(at().call.begin));
    EXPECT_LT(q.offset, static_cast<std::uint64_t>(at().call.end));
    EXPECT_EQ(q.rbx, preserved_value(3));
    EXPECT_EQ(q.rbp, q.sp + 5 * 8 + k_room);
    ASSERT_NE(q.type, nullptr);
    EXPECT_EQ(*q.type, typeid(int));
    EXPECT_EQ(q.value, 42);
  }
}

TEST_F(Handler, SeesWhatIsThrownAgain) {
  std::vector<const std::type_info*> types;
  std::vector<std::string> texts;
  const LandingFrame frame = handled_by([&](const PassedFrame& f) {
    types.push_back(f.thrown_type());
    texts.push_back(static_cast<std::runtime_error*>(f.thrown_object())->what());
    return FrameDecision::pass();
  });
  static std::exception_ptr kept;
  kept = std::make_exception_ptr(std::runtime_error("kept"));
  EXPECT_THROW(frame([] { std::rethrow_exception(kept); }), std::runtime_error);
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(*types[0], typeid(std::runtime_error));
  EXPECT_EQ(texts[1], "kept");
}

TEST_F(Handler, PassesAndCleansUp) {
  const LandingFrame passing = handled_by([](const PassedFrame&) { return FrameDecision::pass(); });
  EXPECT_THROW(passing(throw_runtime_error), std::runtime_error);
  const LandingFrame cleaning_up = handled_by([](const PassedFrame& f) {
    if (!is_at_callee(f)) return FrameDecision::pass();
    return FrameDecision::clean_up_at(cleaning(f)).with(x86_64::r13, 1000);
  });
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THROW(cleaning_up(throw_runtime_error), std::runtime_error);
    EXPECT_EQ(cleaned, i);
  }
  EXPECT_EQ(at_cleanup.r13, 1000u);
  EXPECT_EQ(at_cleanup.r12, preserved_value(12));
}

/// The arguments that were pushed for the call are removed; the epilogue finds its SP through rbp.
TEST_F(Handler, LandsWithAnotherSp) {
  Addr sp_of_call = 0;
  const LandingFrame frame = handled_by([&](const PassedFrame& f) {
    sp_of_call = f.sp();
    return FrameDecision::catch_at(catching(f)).with_sp(f.sp() + 32).with(rdx, 9).with(x86_64::rbx, 3);
  });
  EXPECT_EQ(frame(throw_runtime_error), 109);
  EXPECT_EQ(sp_at_catch, sp_of_call + 32);
  EXPECT_EQ(at_catch.rbx, 3u);
  EXPECT_EQ(at_catch.r15, preserved_value(15));
  EXPECT_FALSE(std::current_exception());
}

TEST_F(Handler, LeavesExceptionsOfOtherLanguagesWithoutType) {
  static _Unwind_Exception foreign;
  std::memcpy(&foreign.exception_class, "NONECXX", 8);
  static int deleted;
  foreign.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception*) { ++deleted; };
  _Unwind_Exception* seen = nullptr;
  const LandingFrame frame = handled_by([&](const PassedFrame& f) {
    EXPECT_EQ(f.thrown_type(), nullptr);
    EXPECT_EQ(f.thrown_object(), nullptr);
    seen = f.exception();
    return FrameDecision::catch_at(catching(f));
  });
  EXPECT_EQ(frame([] { (void)_Unwind_RaiseException(&foreign); }), 100);
  EXPECT_EQ(seen, &foreign);
  EXPECT_EQ(deleted, 1);
}

/// The handler itself throws and catches; the exception that it was asked about goes on.
TEST_F(Handler, MayThrowAndCatchInside) {
  static const LandingFrame inner =
      handled_by([](const PassedFrame& f) { return FrameDecision::catch_at(catching(f)); });
  const LandingFrame frame = handled_by([](const PassedFrame& f) {
    EXPECT_EQ(inner(throw_int), 100);
    return FrameDecision::catch_at(catching(f));
  });
  EXPECT_EQ(frame(throw_runtime_error), 100);
}

TEST_F(Handler, IsToldWhenAThreadEnds) {
  static int forced;
  forced = 0;
  static const LandingFrame frame = handled_by([](const PassedFrame& f) {
    forced += f.forced();
    return is_at_callee(f) ? FrameDecision::clean_up_at(cleaning(f)) : FrameDecision::pass();
  });
  std::thread([] { frame([] { pthread_exit(nullptr); }); }).join();
  EXPECT_EQ(forced, 2);
  EXPECT_EQ(cleaned, 1);
}

// Impossible decisions end the program with a message that names the frame.

class HandlerDeathTest : public Handler {
 protected:
  static void expect_death(const FrameHandler& handler, const std::string& text, void (*callee)() = throw_int) {
    EXPECT_DEATH(
        {
          const LandingFrame frame =
              LandingFrame([&](Builder& b, const LandingOffsets&) { b.handled_by(handler); }, "guilty");
          frame(callee);
        },
        "jitunwind: frame handler of guilty\\+0x[0-9a-f]+ \\(pc 0x[0-9a-f]+\\): " + text);
  }
};

TEST_F(HandlerDeathTest, LetsAnExceptionOut) {
  expect_death([](const PassedFrame&) -> FrameDecision { throw std::logic_error("oops"); }, "threw oops");
  expect_death([](const PassedFrame&) -> FrameDecision { throw 1; }, "threw\n");
}

TEST_F(HandlerDeathTest, GoesOnOutsideOfTheProcedure) {
  expect_death([](const PassedFrame& f) { return FrameDecision::catch_at(f.start() - 1); }, "goes on at 0x.*no instr");
  expect_death([](const PassedFrame&) { return FrameDecision::catch_at(0); },
               "goes on at 0x0, which is no instruction");
  expect_death([](const PassedFrame& f) { return FrameDecision::clean_up_at(f.start() + 10'000); }, "goes on at 0x");
}

TEST_F(HandlerDeathTest, GoesOnWithAnImpossibleSp) {
  const auto with_sp = [](std::int64_t above_call) {
    return [above_call](const PassedFrame& f) {
      return FrameDecision::catch_at(catching(f)).with_sp(f.sp() + static_cast<Addr>(above_call));
    };
  };
  expect_death(with_sp(-8), "goes on with SP 0x.*, which is not in the frame");
  expect_death(with_sp(4), "goes on with SP 0x.*, or not aligned");
  // The saved registers, of which rbp is the last, and the return address are there.
  expect_death(with_sp(k_room + 6 * 8 + 8), "goes on with SP 0x.*, which is not in the frame");
}

TEST_F(HandlerDeathTest, SetsOrReadsRegistersThatAreNotKept) {
  expect_death([](const PassedFrame& f) { return FrameDecision::catch_at(catching(f)).with(rdi, 1); },
               "sets register 5, which calls do not preserve");
  expect_death([](const PassedFrame& f) { return FrameDecision::catch_at(f.reg(r11)); },
               "asks for register 11, which calls do not preserve");
}

TEST_F(HandlerDeathTest, ChangesItsMind) {
  expect_death(
      [](const PassedFrame& f) {
        return f.phase() == Phase::search ? FrameDecision::catch_at(catching(f)) : FrameDecision::pass();
      },
      "passes what it caught in the search");
  expect_death(
      [](const PassedFrame& f) {
        return f.phase() == Phase::search ? FrameDecision::pass() : FrameDecision::catch_at(catching(f));
      },
      "catches what it passed in the search",
      [] {
        static const LandingFrame outer =
            handled_by([](const PassedFrame& f) { return FrameDecision::catch_at(catching(f)); });
        throw_int();
      });
  expect_death([](const PassedFrame& f) { return FrameDecision::catch_at(catching(f)); }, "catches what is forced",
               [] { pthread_exit(nullptr); });
}

TEST_F(HandlerDeathTest, CleansUpForEver) {
  static const LandingFrame outer =
      handled_by([](const PassedFrame& f) { return FrameDecision::catch_at(catching(f)); });
  const FrameHandler handler = [](const PassedFrame& f) { return FrameDecision::clean_up_at(cleaning(f)); };
  static const LandingFrame* inner;
  EXPECT_DEATH(
      {
        const LandingFrame frame([&](Builder& b, const LandingOffsets&) { b.handled_by(handler); }, "guilty");
        inner = &frame;
        outer([] { (*inner)(throw_int); });
      },
      "frame handler of guilty.*: cleans up again at the call of _Unwind_Resume");
}

TEST(FrameHandler, IsRefusedBesideOtherHandlers) {
  const FrameHandler handler = [](const PassedFrame&) { return FrameDecision::pass(); };
  const auto text = [](const Builder& b) {
    const auto built = b.build();
    return built ? "built" : built.error().text();
  };
  const Builder b = describe("f").size(64).handled_by(handler);
  EXPECT_EQ(text(b), "built");
  EXPECT_EQ(text(Builder(b).call_site({4, 6}, 30)),
            "handled_by(): INVALID_ARGUMENT: beside call_site(): one or the other decides\n");
  EXPECT_EQ(text(Builder(b).personality(0x1000)),
            "handled_by(): INVALID_ARGUMENT: beside a personality() of the caller's\n");
  EXPECT_EQ(text(Builder(b).lsda(0x1000)),
            "procedure: INVALID_ARGUMENT: handlers, and language-specific data of the caller's by lsda()\n");
  EXPECT_EQ(text(describe("f").size(64).handled_by(nullptr)), "handled_by(): INVALID_ARGUMENT: no function\n");
  const auto live = register_code(*b.build(), Code{.start = 0x7b00'0000'0000, .size = 64, .lsda = 0x1000});
  ASSERT_FALSE(live);
  EXPECT_EQ(live.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace jitunwind::test
