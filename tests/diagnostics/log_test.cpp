// The output of JITUNWIND_LOG about walks, rows and the registry. If it is not set there is no output, and no cost.
#include "jitunwind/unwind_core/trace/log.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/diagnostics/captured_log.h"
#include "tests/diagnostics/unknown_frame.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

bool has_line(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

/// A description with a label that no other has: no walk has passed a frame of its shape before.
host::Builder new_shape() {
  static unw_word_t label = 0;
  auto builder = JitFrame::described();
  builder.label_state(++label);
  return builder;
}

/// Walks from a frame that no walk has passed before.
struct ThroughJit {
  JitFrame frame{new_shape()};
  StopReason stop = StopReason::none;
  std::string row;  ///< of the JIT frame

  void walk() {
    frame(
        [](void* self) -> void* {
          auto& test = *static_cast<ThroughJit*>(self);
          Walk walk = walk_here();
          for (const Frame& each : walk) {
            if (each.pc() != test.frame.return_address()) continue;
            FrameRow row;
            if (each.row(row)) test.row = to_text(row, local_space().arch);
          }
          test.stop = walk.stop_reason();
          return nullptr;
        },
        this);
  }
};

TEST(Log, SaysNothingUnlessAsked) {
  const CapturedLog log(0);
  ThroughJit through;
  through.walk();
  EXPECT_EQ(log.read(), "");
  EXPECT_FALSE(logs(LogTopic::walk) || logs(LogTopic::rows) || logs(LogTopic::registry));
}

TEST(Log, NamesAFrameThatIsSlowOnce) {
  ThroughJit through;
  const CapturedLog log(LogTopic::walk);
  through.walk();
  const std::string line = "jitunwind walk: slow at " + hex_of(through.frame.return_address() - 1) +
                           ": row of dyn_directives made, can be kept";
  EXPECT_TRUE(has_line(log.lines(), line)) << line;
  through.walk();
  EXPECT_FALSE(has_line(log.lines(), line)) << "its row is kept";
}

TEST(Log, SaysWhyAWalkEnds) {
  ThroughJit through;
  const CapturedLog log(LogTopic::walk);
  through.walk();
  const std::vector<std::string> lines = log.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(through.stop, StopReason::outermost);
  EXPECT_NE(lines.back().find("frames above the first: outermost"), std::string::npos) << lines.back();
}

/// A frame whose row leads nowhere.
TEST(Log, SaysWhichErrorEndsAWalk) {
  const JitFrame broken("cfa=[rsp+0x7fffffff0000] ra=[cfa-8]");
  const CapturedLog log(LogTopic::walk);
  broken(
      [](void*) -> void* {
        for (const Frame& each : walk_here()) (void)each;
        return nullptr;
      },
      nullptr);
  const std::vector<std::string> lines = log.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.back().find("ended at " + hex_of(broken.return_address())), std::string::npos) << lines.back();
  EXPECT_NE(lines.back().find(": broken ("), std::string::npos) << lines.back();
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("not kept: no compact row says it") != std::string::npos;
  })) << "a CFA that is read from the stack";
}

TEST(Log, HasTheRowsThatWereMade) {
  ThroughJit through;
  const CapturedLog log(LogTopic::rows);
  through.walk();
  const std::vector<std::string> lines = log.lines();
  const std::string begin = "jitunwind rows: " + hex_of(through.frame.return_address() - 1) + " dyn_directives ";
  const auto line =
      std::find_if(lines.begin(), lines.end(), [&](const std::string& l) { return l.rfind(begin, 0) == 0; });
  ASSERT_NE(line, lines.end()) << begin;
  EXPECT_TRUE(line->ends_with(" " + through.row)) << *line << "\n" << through.row;
}

TEST(Log, SaysThatARowIsGuessed) {
  const UnknownFrame unknown;
  const CapturedLog log(LogTopic::walk);
  unknown(
      [](void*) -> void* {
        for (const Frame& each : walk_here(Guesses::bold)) (void)each;
        return nullptr;
      },
      nullptr);
  EXPECT_NE(log.read().find("jitunwind walk: guessed at " + hex_of(unknown.return_address()) + ": "),
            std::string::npos);
}

TEST(Log, HasWhatIsRegistered) {
  const CapturedLog log(LogTopic::registry);
  std::string code;
  {
    const JitFrame frame;
    code = hex_of(frame.start()) + "-" + hex_of(frame.start() + frame.size());
    EXPECT_TRUE(has_line(log.lines(), "jitunwind registry: register " + code + " jit_frame"));
  }
  EXPECT_TRUE(has_line(log.lines(), "jitunwind registry: cancel " + code));
}

/// A forgotten cancellation is silent otherwise: the newest registration counts.
TEST(Log, NamesCodeThatIsRegisteredTwice) {
  const CapturedLog log(LogTopic::registry);
  alignas(16) static std::byte code[64];
  const auto description = host::describe("twice").build();
  ASSERT_TRUE(description);
  const auto at = [&](std::size_t offset, std::size_t size) {
    auto live = register_code(*description, code + offset, size);
    EXPECT_TRUE(live);
    return std::move(*live);
  };
  const auto text = [&](std::size_t offset, std::size_t size) {
    const auto begin = reinterpret_cast<std::uintptr_t>(code) + offset;
    return "jitunwind registry: overlaps " + hex_of(begin) + "-" + hex_of(begin + size) + ", which is still registered";
  };
  Registration old = at(16, 16);
  const Registration beside = at(32, 16);
  EXPECT_FALSE(has_line(log.lines(), text(16, 16)));
  (void)at(0, 32);
  EXPECT_TRUE(has_line(log.lines(), text(16, 16)));
  ASSERT_TRUE(old.cancel());
  (void)at(16, 16);
  EXPECT_EQ(log.read().find("overlaps"), std::string::npos);
}

void ends_every_search() {}

/// This function has a personality routine, since it has something to clean up.
[[gnu::noinline]] void cleans_up(void (*called)()) {
  const std::unique_ptr<int> kept(new int(1));
  called();
}

TEST(Log, NamesCodeWhosePersonalityRoutineIsHidden) {
  const CapturedLog log(LogTopic::registry);
  const auto* const code = reinterpret_cast<const std::byte*>(&cleans_up);
  cleans_up([] {});
  const std::string hidden = "jitunwind registry: hides the personality routine that the unwinder was told for " +
                             hex_of(reinterpret_cast<std::uintptr_t>(code));
  const auto with = host::describe().personality(reinterpret_cast<std::uintptr_t>(&ends_every_search)).build();
  ASSERT_TRUE(with);
  (void)register_code(*with, code, 4);
  EXPECT_FALSE(has_line(log.lines(), hidden));
  (void)register_code(*host::describe().build(), code, 4);
  EXPECT_TRUE(has_line(log.lines(), hidden));
}

TEST(Log, HasWhatTheRegistryRefuses) {
  const CapturedLog log(LogTopic::registry);
  unw_dyn_info_t info{};
  info.start_ip = 0x1000;
  info.end_ip = 0x1000;
  ASSERT_FALSE(register_procedure(&info));
  ASSERT_FALSE(cancel_procedure(&info));
  unw_dyn_info_t* const one[] = {&info};
  ASSERT_FALSE(retire_procedures(one));
  const std::string at = ", at " + hex_of(reinterpret_cast<std::uintptr_t>(&info));
  const std::vector<std::string> lines = log.lines();
  EXPECT_TRUE(has_line(lines, "jitunwind registry: refused to register: e_range, empty or inverted range" + at));
  EXPECT_TRUE(
      has_line(lines, "jitunwind registry: refused to cancel: not_registered, descriptor is not registered" + at));
  EXPECT_TRUE(
      has_line(lines, "jitunwind registry: refused to retire: not_registered, descriptor is not registered" + at));
}

/// The program chooses the name: it may be any bytes, or an unreadable address.
TEST(Log, ReadsNamesWithCare) {
  const CapturedLog log(LogTopic::registry);
  const std::string longer = "\x1b[2J" + std::string(1000, 'n');
  unw_dyn_info_t info{};
  info.start_ip = 0x1000;
  info.end_ip = 0x1010;
  for (const unw_word_t name : {reinterpret_cast<unw_word_t>(longer.c_str()), unw_word_t{1}}) {
    info.u.pi.name_ptr = name;
    ASSERT_TRUE(register_procedure(&info));
    ASSERT_TRUE(cancel_procedure(&info));
  }
  const std::vector<std::string> lines = log.lines();
  EXPECT_TRUE(has_line(lines, "jitunwind registry: register 0x1000-0x1010 ?[2J" + std::string(196, 'n')));
  EXPECT_TRUE(has_line(lines, "jitunwind registry: register 0x1000-0x1010"));
}

TEST(Log, LeavesErrnoAndTheHeapAlone) {
  ThroughJit through;
  set_log(k_all_log_topics, std::numeric_limits<int>::max());  // no file descriptor
  errno = EXDEV;
  const std::size_t before = allocations();
  through.frame(
      [](void*) -> void* {
        for (const Frame& each : walk_here()) (void)each;
        return nullptr;
      },
      nullptr);
  const std::size_t after = allocations();
  set_log(0);
  EXPECT_EQ(errno, EXDEV);
  EXPECT_EQ(after, before);
}

TEST(Log, WorksInSignalHandlers) {
  static StopReason stop;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void*) {
    Walk walk = walk_here();
    for (const Frame& each : walk) (void)each;
    stop = walk.stop_reason();
  };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const JitFrame frame(new_shape());
  const CapturedLog log(k_all_log_topics);
  frame(
      [](void*) -> void* {
        ::raise(SIGUSR1);
        return nullptr;
      },
      nullptr);
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(stop, StopReason::outermost);
  const std::string said = log.read();
  EXPECT_NE(said.find("slow at " + hex_of(frame.return_address() - 1)), std::string::npos);
  EXPECT_NE(said.find(" signal cfa="), std::string::npos) << "the trampoline's row";
}

TEST(Line, IsCutWhereItsRoomEnds) {
  Line line;
  line.text(std::string(1000, 'x')).hex(~std::uint64_t{0});
  EXPECT_EQ(line.view(), std::string(499, 'x'));
  Line numbers;
  numbers.hex(0).text(" ").hex(~std::uint64_t{0}).text(" ").number(~std::uint64_t{0});
  EXPECT_EQ(numbers.view(), "0x0 0xffffffffffffffff 18446744073709551615");
}

}  // namespace
}  // namespace jitunwind::test
