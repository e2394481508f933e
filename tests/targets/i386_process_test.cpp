// Live processes with words of 4 bytes on a machine with 8, and their core files: i386_program.c. elfutils and GDB are
// the witnesses.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/command.h"
#include "tests/targets/target_programs.h"
#include "tests/targets/witnesses.h"

#include <libunwind-ptrace.h>

namespace jitunwind::test {
namespace {

using Names = std::vector<std::string>;

/// The main thread stands in a handler with SA_SIGINFO, the other one in a handler without.
void expect_both_stacks(const Target& target) {
  EXPECT_STREQ(target.arch().name, "x86");
  ASSERT_EQ(target.threads().size(), 2u);
  const Names k_asked = {"stand_still",     "handle",  "handle_with_information", "middle",
                         "described_plain", "between", "described_framed",        "outermost",
                         "start",           "_start"};
  for (const TargetThread& thread : target.threads()) {
    Names seen;
    std::size_t signals = 0, listed = 0;
    Walk walk = target.walk(thread);
    for (const Frame& frame : walk) {
      EXPECT_FALSE(frame.is_guess()) << frame.depth();
      EXPECT_LE(frame.sp(), 0xffff'ffffu);
      signals += frame.is_signal_frame();
      listed += frame.origin() == RowOrigin::dyn_directives;
      if (std::ranges::find(k_asked, frame.name()) != k_asked.end()) seen.push_back(frame.name());
    }
    const bool is_main = thread.id == target.process();
    Names expected = {"stand_still", is_main ? "handle_with_information" : "handle",
                      "middle",      "described_plain",
                      "between",     "described_framed",
                      "outermost"};
    if (is_main) expected.insert(expected.end(), {"start", "_start"});
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(signals, 1u);
    EXPECT_EQ(listed, 2u);
    EXPECT_EQ(walk.why(), "complete");
  }
}

/// Returns the frames of a backtrace that GDB prints for people. It has a line for the kernel's frame of a handler,
/// which counts as pc 0 here.
Stacks as_gdb_shows(pid_t process) {
  Stacks stacks;
  pid_t thread = 0;
  const Pattern head("Thread .*LWP (\\d+).*"), frame("#\\d+ +0x([0-9a-f]+) in .*");
  const std::string asked = "gdb -nx -q -batch -iex 'set debuginfod enabled off' -p " + std::to_string(process) +
                            " -ex 'thread apply all bt' 2>/dev/null";
  for (const std::string& line : lines_of(output_of(asked))) {
    Groups found;
    if (matches(line, found, head)) thread = std::stoi(found[1]);
    if (matches(line, found, frame) && thread != 0) stacks[thread].push_back(std::stoull(found[1], nullptr, 16));
    if (line.find("<signal handler called>") != line.npos) stacks[thread].push_back(0);
  }
  return stacks;
}

/// Compares up to the first frame of code made at run time, which the others do not know.
void expect_beginnings(const Stacks& theirs, const Target& target) {
  for (const TargetThread& thread : target.threads()) {
    const auto known = theirs.find(thread.id);
    ASSERT_NE(known, theirs.end()) << thread.id;
    std::size_t number = 0;
    bool is_made_at_run_time = false;
    for (const Frame& frame : target.walk(thread)) {
      ASSERT_LT(number, known->second.size());
      const Addr pc = known->second[number++];
      EXPECT_EQ(pc == 0 && frame.is_signal_frame() ? frame.pc() : pc, frame.pc()) << number;
      is_made_at_run_time = frame.origin() == RowOrigin::dyn_directives;
      if (is_made_at_run_time) break;
    }
    EXPECT_TRUE(is_made_at_run_time) << number;
    EXPECT_GE(number, 10u) << "the C library may have more between pause() and the kernel";
  }
}

// covers: XP04 HL07 DY48
TEST(I386Process, ShowsTheStacksOfItsThreads) {
  const TargetProgram program(I386_PROGRAM, {});
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  expect_both_stacks(*target);
  expect_beginnings(by_eu_stack(program.process()), *target);
  expect_beginnings(as_gdb_shows(program.process()), *target);
  EXPECT_TRUE(target->renew());
  expect_both_stacks(*target);
}

TEST(I386Process, IsShownByJitstack) {
  const TargetProgram program(I386_PROGRAM, {});
  const std::string shown = output_of("'" JITSTACK "' " + std::to_string(program.process()));
  for (const char* name : {"__kernel_rt_sigreturn", "__kernel_sigreturn", "described_plain", "_start+"})
    EXPECT_NE(shown.find(name), shown.npos) << name << "\n" << shown;
}

std::string watched(const TargetProgram& program) {
  const TemporaryFolder folder;
  output_of("'" JITSTACK "' --watch 0.3 --output '" + (folder / "seen") + "' " + std::to_string(program.process()));
  return text_of_file(folder / "seen.folded");
}

TEST(I386Process, IsWatchedByJitstack) {
  const TargetProgram program(I386_PROGRAM, {});
  const std::string folded = watched(program);
  const Pattern main(
      "i386_program;_start;start;outermost;described_framed_\\[j\\];between;described_plain_\\[j\\];"
      "middle;.*handle_with_information;stand_still;.* [1-9][0-9]*"),
      other(
          "i386_program;.*;outermost;described_framed_\\[j\\];between;described_plain_\\[j\\];middle;"
          ".*handle;stand_still;.* [1-9][0-9]*");
  for (const Pattern* const wanted : {&main, &other})
    EXPECT_TRUE(std::ranges::any_of(lines_of(folded), [&](const std::string& line) { return matches(line, *wanted); }))
        << folded;
}

/// GDB, which was told of it as well, sees the same frames.
// covers: XP04
TEST(I386Process, ShowsCodeThatGdbWasToldOf) {
  const TargetProgram program(I386_PROGRAM, {"told"});
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  Names names;
  Pcs pcs;
  Walk walk = target->walk(target->threads().at(0));
  for (const Frame& frame : walk) {
    pcs.push_back(frame.pc());
    names.push_back(frame.name());
    if (frame.name() == "told") {
      EXPECT_EQ(frame.origin(), RowOrigin::eh_frame);
    }
  }
  EXPECT_EQ(walk.why(), "complete");
  const auto told = std::ranges::find(names, "told");
  ASSERT_NE(told, names.end());
  ASSERT_EQ(names.end() - told, 3);
  EXPECT_EQ(Names(told - 1, names.end()), (Names{"middle", "told", "start", "_start"}));
  Pcs theirs = by_gdb(program.process())[program.process()];
  ASSERT_EQ(theirs.size(), pcs.size());
  // An address has 32 bits, which GDB has extended by their sign in some runs.
  for (std::size_t i = 0; i < pcs.size(); ++i)
    EXPECT_EQ(theirs[i] == 0 ? pcs[i] : static_cast<std::uint32_t>(theirs[i]), pcs[i]) << i;
}

/// A thread may be in 64-bit code, whose registers are not the program's.
TEST(I386Process, HasNoRegistersOfAThreadThatIsInCodeOfTheMachines) {
  const TargetProgram program(I386_PROGRAM, {"far"});
  auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  ASSERT_EQ(target->threads().size(), 2u);
  const auto registers = [&](std::size_t thread) { return target->registers(target->threads().at(thread)); };
  for (int i = 0; i < 6000 && registers(1); ++i) {
    target->let_go();
    ::usleep(10'000);
    ASSERT_TRUE(target->renew());
  }
  EXPECT_FALSE(registers(1));
  Walk nowhere = target->walk(target->threads()[1]);
  for (const Frame& frame : nowhere) EXPECT_EQ(frame.depth(), 0u);
  EXPECT_NE(nowhere.why(), "complete");
  Walk walk = target->walk(target->threads()[0]);
  for ([[maybe_unused]] const Frame& frame : walk) {
  }
  EXPECT_EQ(walk.why(), "complete");
}

/// A 32-bit program becomes a 64-bit one with the same process number.
TEST(I386Process, IsAnotherTargetAfterItExecutesAProgramOfThisMachines) {
  const TargetProgram program(I386_PROGRAM, {"exec"});
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  EXPECT_STREQ(target->arch().name, "x86");
  target->let_go();
  ::kill(program.process(), SIGALRM);
  for (int i = 0; i < 6000 && std::string(target->arch().name) == "x86"; ++i) {
    ::usleep(10'000);
    EXPECT_TRUE(target->renew());
    target->let_go();
  }
  EXPECT_STREQ(target->arch().name, "x86-64");
}

/// libunwind's numbers for x86-64's registers do not fit this process.
TEST(I386Process, IsRefusedByLibunwindsInterface) {
  const TargetProgram program(I386_PROGRAM, {});
  ASSERT_EQ(::ptrace(PTRACE_ATTACH, program.process(), nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(program.process(), &status, __WALL), program.process());
  void* const traced = _UPT_create(program.process());
  const unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
  unw_word_t value = 0;
  EXPECT_EQ(_UPT_access_reg(space, UNW_X86_64_RBX, &value, 0, traced), -UNW_EINVAL);
  EXPECT_EQ(_UPT_access_reg(space, UNW_X86_64_RIP, &value, 0, traced), -UNW_EINVAL);
  unw_cursor_t cursor;
  EXPECT_LT(unw_init_remote(&cursor, space, traced), 0);
  unw_destroy_addr_space(space);
  _UPT_destroy(traced);
  ::ptrace(PTRACE_DETACH, program.process(), nullptr, nullptr);
}

#ifdef KERNEL_WRITES_CORES
class KernelsCore {
 public:
  KernelsCore() {
    TargetProgram program(I386_PROGRAM, {"crash"}, folder_.path());
    const int status = program.wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WCOREDUMP(status));
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) path = entry.path();
  }
  std::string path;

 private:
  TemporaryFolder folder_;
};

// covers: HL12 XP04
TEST(I386Core, OfTheKernelShowsTheStacksOfItsThreads) {
  const KernelsCore made;
  const auto core = Target::open_core(made.path);
  ASSERT_TRUE(core) << core.error().text();
  EXPECT_EQ(core->threads()[0].signal, SIGSEGV);
  EXPECT_EQ(core->threads()[0].fault_address, 0x24u) << "where it writes to";
  EXPECT_NE(output_of(JITSTACK " --core '" + made.path + "' 2>&1").find(", SIGSEGV at 0x24\n"), std::string::npos);
  expect_both_stacks(*core);
}

/// The files come from link maps with words of 4 bytes.
// covers: HL12 XP04
TEST(I386Core, WithoutANoteOfFilesShowsTheSame) {
  const KernelsCore made;
  std::string bytes = text_of_file(made.path);
  const std::string note("ELIFCORE");  // NT_FILE and its owner
  const std::size_t at = bytes.find(note);
  ASSERT_NE(at, bytes.npos);
  bytes[at] = 'X';
  std::ofstream(made.path, std::ios::binary) << bytes;
  const auto core = Target::open_core(made.path);
  ASSERT_TRUE(core) << core.error().text();
  expect_both_stacks(*core);
}
#endif

// covers: HL12 XP04
TEST(I386Core, OfGcoreShowsTheStacksOfItsThreads) {
  const TargetProgram program(I386_PROGRAM, {});
  const TemporaryFolder folder;
  const std::string number = std::to_string(program.process());
  output_of("gcore -o '" + (folder / "core") + "' " + number + " >/dev/null 2>&1");
  const auto core = Target::open_core(folder / ("core." + number));
  ASSERT_TRUE(core) << core.error().text();
  expect_both_stacks(*core);
}

}  // namespace
}  // namespace jitunwind::test
