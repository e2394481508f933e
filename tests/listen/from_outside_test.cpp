// Engines that report their code to GDB are walked from outside, live and in a core file. GDB reads the same lists.
#include <gtest/gtest.h>
#include <jitunwind/c.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/sdk/target.h"
#include "tests/listen/written_for_perf.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

/// A process that works in code which it made at run time. It ends with the object.
class Engine {
 public:
  /// `command` replaces the shell that runs it. The process has printed its first word when this returns.
  explicit Engine(const std::string& command) {
    int out[2];
    if (::pipe(out) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]), ::close(out[1]);
      ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    char letter = 0;
    EXPECT_EQ(::read(out[0], &letter, 1), 1) << command;
    out_ = out[0];
  }
  ~Engine() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(out_);
    remove_written_for_perf(process_);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  pid_t process() const { return process_; }
  void stop() const {
    ::kill(process_, SIGSTOP);
    ::waitpid(process_, nullptr, WUNTRACED);
  }
  void run_on() const { ::kill(process_, SIGCONT); }

 private:
  pid_t process_ = 0;
  int out_ = -1;
};

struct Seen {
  std::vector<Addr> pcs{};
  std::vector<std::string> names{};
  std::vector<std::uint32_t> lines{};  ///< 0: not known
  std::string why{};
};

Seen walk_of(const Target& target) {
  Seen seen;
  Walk walk = target.walk(target.threads().front());
  for (const Frame& frame : walk) {
    EXPECT_FALSE(frame.is_guess()) << frame.name();
    seen.pcs.push_back(frame.pc());
    seen.names.push_back(frame.name());
    const auto line = target.source_line(frame);
    seen.lines.push_back(line ? line->line : 0);
  }
  seen.why = walk.why();
  return seen;
}

bool has(const Seen& seen, const std::string& name) {
  return std::ranges::any_of(seen.names, [&](const std::string& n) { return n.find(name) != n.npos; });
}

/// Returns the process's stack at a moment when it contains the function.
Seen stopped_in(const Engine& engine, const std::string& function, Target& target) {
  for (int i = 0; i < 100; ++i) {
    engine.stop();
    EXPECT_TRUE(target.renew());
    Seen seen = walk_of(target);
    if (has(seen, function)) return seen;
    target.let_go();
    engine.run_on();
    ::usleep(10'000);
  }
  ADD_FAILURE() << function << " is not found";
  return {};
}

struct Case {
  const char* name;
  const char* command;
  const char* function;
  int lines;  ///< so many frames at least have one
};

class FromOutside : public testing::TestWithParam<Case> {};

// covers: LS08 LS09
TEST_P(FromOutside, IsSeenAsByGdbLiveAndInItsCore) {
  const Engine engine(GetParam().command);
  auto target = Target::attach(engine.process());
  ASSERT_TRUE(target) << target.error().text();
  target->let_go();
  const Seen live = stopped_in(engine, GetParam().function, *target);
  EXPECT_EQ(live.why, "complete");
  target->let_go();
  EXPECT_EQ(walk_of(*target).pcs, live.pcs) << "what was copied";

  const TemporaryFolder folder;
  const std::string core = folder / "core";
  const std::string printed =
      output_of("gdb -nx -q -batch -iex 'set debuginfod enabled off' -p " + std::to_string(engine.process()) +
                " -ex 'set backtrace past-main on' -ex 'set backtrace past-entry on'"
                " -ex 'frame apply all -q python f = gdb.selected_frame(); print(\"frame %x %x %d\" % (f.pc(), "
                "f.read_register(\"rsp\"), f.find_sal().line))' -ex 'gcore " +
                core + "' 2>/dev/null");
  std::vector<Addr> by_gdb;
  std::vector<std::uint32_t> lines_by_gdb;
  Addr last_sp = 0;
  for (const std::string& line : lines_of(printed)) {
    Addr pc = 0, sp = 0;
    std::uint32_t number = 0;
    if (std::sscanf(line.c_str(), "frame %lx %lx %u", &pc, &sp, &number) != 3) continue;
    // GDB shows inlined functions as frames.
    if (std::exchange(last_sp, sp) == sp) continue;
    by_gdb.push_back(pc);
    lines_by_gdb.push_back(number);
  }
  EXPECT_EQ(live.pcs, by_gdb) << printed;
  ASSERT_EQ(live.lines.size(), lines_by_gdb.size());
  for (std::size_t i = 0; i < live.lines.size(); ++i)
    if (live.lines[i] != 0) {
      EXPECT_EQ(live.lines[i], lines_by_gdb[i]) << live.names[i];
    }
  EXPECT_GE(std::ranges::count_if(live.lines, [](std::uint32_t line) { return line != 0; }), GetParam().lines);

  auto dead = Target::open_core(core);
  ASSERT_TRUE(dead) << dead.error().text();
  const Seen in_core = walk_of(*dead);
  EXPECT_EQ(in_core.pcs, live.pcs);
  EXPECT_EQ(in_core.names, live.names);
  EXPECT_EQ(in_core.why, "complete");
}

/// The process is looked at twice, whatever it has made and forgotten meanwhile.
TEST_P(FromOutside, IsSeenWhileItRuns) {
  const Engine engine(GetParam().command);
  auto target = Target::attach(engine.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  int complete = 0;
  for (int i = 0; i < 20; ++i) {
    ::usleep(2'000);
    ASSERT_TRUE(target->renew());
    target->let_go();
    if (walk_of(*target).why == "complete") ++complete;
  }
  EXPECT_GE(complete, 19);
}

#ifdef PHP
/// The names alone are known: the walk ends in the code, whose name it has.
TEST(FromOutsideNames, AreThoseThatAreWrittenForPerf) {
  for (const bool is_dump : {false, true}) {
    const Engine engine(std::string(PHP " -d opcache.jit_debug=") + (is_dump ? "0x20" : "0x10") +
                        " -r 'echo 1; fflush(STDOUT); include \"" ENGINE_WORK_PHP "\";'");
    const std::string map = "/tmp/perf-" + std::to_string(engine.process()) + ".map";
    auto target = Target::attach(engine.process());
    ASSERT_TRUE(target) << target.error().text();
    target->let_go();
    bool is_named = false;
    for (int i = 0; i < 100 && !is_named; ++i) {
      engine.run_on();
      ::usleep(10'000);
      engine.stop();
      if (is_dump) std::remove(map.c_str());  // PHP writes both, and the dump is what is asked for here
      ASSERT_TRUE(target->renew());
      Walk walk = target->walk(target->threads().front());
      for (const Frame& frame : walk) is_named = is_named || frame.name().find("JIT$work") != std::string::npos;
      target->let_go();
    }
    EXPECT_TRUE(is_named) << is_dump;
  }
}
#endif

#ifdef ERL
/// Names and lines come from entries that are no ELF files. Walks end in code whose caller nothing confirms.
// covers: LS07
TEST(FromOutsideNames, AreThoseThatErlangTellsGdb) {
  const Engine engine("sh -c \"(sleep 0.5; echo) & exec " ERL " 120\"");  // says nothing while it works
  auto target = Target::attach(engine.process());
  ASSERT_TRUE(target) << target.error().text();
  target->let_go();
  bool is_named = false, has_line = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!has_line && std::chrono::steady_clock::now() < deadline) {
    ::usleep(10'000);
    ASSERT_TRUE(target->renew());
    for (const TargetThread& thread : target->threads()) {
      Walk walk = target->walk(thread);
      for (const Frame& frame : walk) {
        if (frame.name().find("engine_work:work_below/1") == std::string::npos) continue;
        is_named = true;
        const auto line = target->source_line(frame);
        has_line = has_line || (line && line->file.ends_with("engine_work.erl") && line->line == 22);
      }
    }
    target->let_go();
  }
  EXPECT_TRUE(is_named);
  EXPECT_TRUE(has_line);
}
#endif

#ifdef OLDEST_LLI
/// Checks the lines by the C interface, for a process that stands still in work_below().
void expect_lines_in_c(pid_t process) {
  ju_target* target = nullptr;
  ju_target* other = nullptr;
  ju_cursor cursor;
  ju_sample sample{};
  sample.struct_size = sizeof sample;
  ASSERT_EQ(ju_target_of_sample(&sample, nullptr, &other, nullptr), JU_OK);
  ASSERT_EQ(ju_target_attach(process, JU_WHILE_ATTACHED, &target, nullptr), JU_OK);
  ASSERT_EQ(ju_target_cursor(target, 0, &cursor, nullptr), JU_OK);
  unsigned seen = 0, untold = 0;
  do {
    std::array<char, 200> name{}, file{};
    std::uint32_t line = 0;
    const ju_status told = ju_target_source_line(target, &cursor, file.data(), file.size(), &line, nullptr);
    (void)ju_frame_name(&cursor, name.data(), name.size(), nullptr);
    if (told == JU_NO_INFO) ++untold;
    if (std::string(name.data()).find("work_below") == std::string::npos) continue;
    ++seen;
    EXPECT_EQ(told, JU_OK);
    EXPECT_TRUE(std::string(file.data()).ends_with("engine_work.cpp")) << file.data();
    EXPECT_GE(line, 23u);
    EXPECT_LE(line, 28u);
    EXPECT_EQ(ju_target_source_line(target, &cursor, nullptr, 0, nullptr, nullptr), JU_OK);
    EXPECT_EQ(ju_target_source_line(target, &cursor, nullptr, 1, nullptr, nullptr), JU_NULL_POINTER);
    EXPECT_EQ(ju_target_source_line(other, &cursor, nullptr, 0, nullptr, nullptr), JU_INVALID_ARGUMENT);
  } while (ju_cursor_step(&cursor, nullptr) == JU_OK);
  EXPECT_GE(seen, 5u);
  EXPECT_GE(untold, 1u) << "main() of the compiler";
  EXPECT_EQ(ju_target_free(target), JU_OK);
  EXPECT_EQ(ju_target_free(other), JU_OK);
}

/// MCJIT always writes jitdumps.
TEST(FromOutsideLines, AreThoseOfJitdumps) {
  const TemporaryFolder folder;
  const Engine engine("env JITDUMPDIR=" + folder / "" + " " OLDEST_LLI " --jit-kind=mcjit " ENGINE_WORK);
  auto target = Target::attach(engine.process());
  ASSERT_TRUE(target) << target.error().text();
  target->let_go();
  (void)stopped_in(engine, "work_below", *target);
  target->let_go();
  expect_lines_in_c(engine.process());
  ASSERT_TRUE(target->renew());
  unsigned seen = 0;
  Walk walk = target->walk(target->threads().front());
  for (const Frame& frame : walk) {
    const auto source = target->source_line(frame);
    const bool below = frame.name().find("work_below") != std::string::npos;
    EXPECT_TRUE(source || !below) << frame.name();
    if (!source) continue;
    EXPECT_TRUE(source->file.ends_with("engine_work.cpp")) << source->file;
    if (!below) continue;
    ++seen;
    EXPECT_GE(source->line, 23u);
    EXPECT_LE(source->line, 28u);
  }
  EXPECT_GE(seen, 5u);
}
#endif

std::vector<Case> cases() {
  std::vector<Case> all;
#ifdef OLDEST_LLI
  all.push_back({"oldest_lli", OLDEST_LLI " --jit-kind=mcjit " ENGINE_WORK, "work_below", 12});
#endif
#ifdef NEWEST_LLI
  all.push_back({"newest_lli", NEWEST_LLI " --jit-kind=orc " ENGINE_WORK, "work_below", 12});
#endif
#ifdef PHP
  all.push_back({"php", PHP " -d opcache.jit_debug=0x100 -r 'echo 1; fflush(STDOUT); include \"" ENGINE_WORK_PHP "\";'",
                 "JIT$work", PHP_LINES});
#endif
  return all;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FromOutside);
INSTANTIATE_TEST_SUITE_P(Engines, FromOutside, testing::ValuesIn(cases()),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace jitunwind::test
