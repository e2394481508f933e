// The program jitstack: its output for processes whose stacks are known, and for processes that are no targets.
#include <jitunwind/version.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "jitunwind/sdk/jitstack/stacks_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"
#include "tests/jitstack/jitstack_runs.h"
#include "tests/jitstack/json_keys.h"
#include "tests/support/failing_memory.h"
#include "tests/support/texts.h"
#include "tests/targets/recorded_cores.h"

namespace jitunwind::test {
namespace {

using Json = nlohmann::json;

TEST(Jitstack, PrintsAllThreadsWithTheirFrames) {
  const TargetProgram program(TARGET_PROGRAM);
  const Printed printed = jitstack(id_of(program));
  EXPECT_EQ(printed.status, 0);
  EXPECT_EQ(printed.err, "");
  EXPECT_EQ(lines_of(printed.out).at(0), "process " + id_of(program) + ", 3 threads");
  expect_lines(printed.out, {"thread " + id_of(program) + " target_program", "  #[0-9]   0x[0-9a-f]{16}  .*pause.*",
                             R"(  #\d+   0x[0-9a-f]{16}  eh_frame        target_program  stand_still\+0x[0-9a-f]+)",
                             R"(  #\d+   0x[0-9a-f]{16}  dyn_directives  JIT             jit_frame\+0x[0-9a-f]+)",
                             R"(  #\d+   0x[0-9a-f]{16}  eh_frame        target_program  middle\+0x[0-9a-f]+)",
                             R"(  #\d+   0x[0-9a-f]{16}  dyn_directives  JIT             jit_frame\+0x[0-9a-f]+)",
                             R"(  #\d+   0x[0-9a-f]{16}  eh_frame        target_program  main\+0x[0-9a-f]+)", "",
                             R"(thread \d+ worker 0)", R"(  #0   .*)", R"(thread \d+ worker 1)"});
  // A pipe gets no colours, and whole stacks get no remark.
  EXPECT_EQ(printed.out.find('\033'), std::string::npos);
  EXPECT_EQ(printed.out.find("cut short"), std::string::npos);
  EXPECT_EQ(printed.out.find("cfa="), std::string::npos);
}

TEST(Jitstack, LeavesTheProcessAsItWas) {
  const TargetProgram program(TARGET_PROGRAM);
  for (const char* option : {"", "--hold "}) {
    EXPECT_EQ(jitstack(option + id_of(program)).status, 0);
    const std::string text = text_of_file("/proc/" + id_of(program) + "/status");
    EXPECT_NE(text.find("TracerPid:\t0\n"), std::string::npos);
    EXPECT_EQ(text.find("State:\tT"), std::string::npos) << text;
  }
}

TEST(Jitstack, ShowsChosenThreadsRowsAndReasons) {
  const TargetProgram program(TARGET_PROGRAM);
  const pid_t other = program.stacks().rbegin()->first;
  const Printed printed = jitstack("--rows --why --threads " + std::to_string(other) + " " + id_of(program));
  EXPECT_EQ(printed.status, 0);
  expect_lines(printed.out, {"thread " + std::to_string(other) + " worker [01]", R"(  #\d .*jit_frame\+0x.*)",
                             R"(       cfa=rsp\+\d+ rbx=\[cfa-\d+\] .*ra=\[cfa-8\])", "  complete"});
  EXPECT_EQ(printed.out.find("thread " + id_of(program) + " "), std::string::npos);

  const Printed missing = jitstack("--threads 1," + std::to_string(other) + " " + id_of(program));
  EXPECT_EQ(missing.status, 3);
  EXPECT_EQ(missing.err, "jitstack: No target has a thread 1.\n");
  expect_lines(missing.out, {"thread " + std::to_string(other) + " worker [01]"});
}

TEST(Jitstack, GoesOnBoldlyThroughUnknownCodeWhereItIsAskedTo) {
  const TargetProgram program(UNKNOWN_CODE_PROGRAM);
  const Printed careful = jitstack(id_of(program));
  EXPECT_EQ(careful.status, 1);
  EXPECT_NE(careful.out.find("cut short (no_info), --why tells more, --bold goes on by frame pointers\n"),
            std::string::npos)
      << careful.out;
  const Printed why = jitstack("--why " + id_of(program));
  EXPECT_NE(why.out.find(", --bold goes on by frame pointers\n"), std::string::npos) << why.out;
  EXPECT_EQ(careful.out.find("calls_unknown_code"), std::string::npos) << careful.out;
  const Printed bold = jitstack("--bold " + id_of(program));
  EXPECT_EQ(bold.status, 0);
  expect_lines(bold.out, {"  #[0-9]+ .*stand_still.*", R"(  #\d+ +0x[0-9a-f]{16}  frame_pointer guess  \? +\?.*)",
                          R"(  #\d+ .*calls_unknown_code\+0x.*)", R"(  #\d+ .*main\+0x.*)"});
}

TEST(Jitstack, NamesTheFileOfTextThatIsCopiedToMemoryOfNoFile) {
  const TargetProgram program(COPIED_TEXT_PROGRAM);
  const Printed printed = jitstack(id_of(program));
  EXPECT_EQ(printed.status, 0);
  expect_lines(printed.out, {R"(  #\d+ .* eh_frame  copied_text_\w+ +.*stand_still.*\+0x.*)",
                             R"(  #\d+ .* eh_frame  copied_text_\w+ +main\+0x.*)"});
}

std::vector<SeenFrame> frames_of(const Json& thread) {
  std::vector<SeenFrame> frames;
  for (const Json& frame : thread["frames"])
    frames.push_back({std::stoull(frame["pc"].get<std::string>(), nullptr, 16),
                      std::stoull(frame["sp"].get<std::string>(), nullptr, 16), frame["origin"].get<std::string>(),
                      frame["name"].is_null() ? "" : frame["name"].get<std::string>()});
  return frames;
}

TEST(Jitstack, JsonHasTheFramesThatTheProgramSaw) {
  const TargetProgram program(TARGET_PROGRAM);
  const Printed printed = jitstack("--json --rows " + id_of(program));
  EXPECT_EQ(printed.status, 0);
  const Json json = Json::parse(printed.out);
  expect_keys(json, {"format", "jitstack", "targets"});
  EXPECT_EQ(json["format"], 1);
  const Json& target = json["targets"].at(0);
  expect_keys(target, {"core", "process", "error", "threads"});
  EXPECT_EQ(target["process"], program.process());
  EXPECT_TRUE(target["error"].is_null());
  ASSERT_EQ(target["threads"].size(), program.stacks().size());
  for (const Json& thread : target["threads"]) {
    expect_keys(thread, {"id", "name", "signal", "fault_address", "whole", "stop", "why", "frames"});
    const SeenStack& own = program.stacks().at(thread["id"].get<pid_t>());
    EXPECT_EQ(callers_of_stand_still({frames_of(thread), ""}), own.frames);
    EXPECT_EQ(thread["why"], own.why);
    EXPECT_EQ(thread["whole"], true);
    EXPECT_EQ(thread["stop"], "outermost");
    std::size_t jit = 0;
    for (const Json& frame : thread["frames"]) {
      expect_keys(frame, {"number", "pc", "sp", "name", "offset", "source", "module", "jit", "origin", "guess",
                          "signal_frame", "row"});
      jit += frame["jit"].get<bool>();
      EXPECT_EQ(frame["jit"].get<bool>(), frame["origin"] == "dyn_directives");
      EXPECT_EQ(frame["module"].is_null(), frame["jit"].get<bool>());
    }
    EXPECT_EQ(jit, 2u);
  }
}

TEST(Jitstack, MarksGuessesAndStacksThatAreCutShort) {
  const TargetProgram program(HOSTILE_PROGRAM, {});
  const Printed printed = jitstack(id_of(program));
  EXPECT_EQ(printed.status, 1);
  expect_lines(printed.out, {R"(thread \d+ \\x1b\[31m<red>\\x0a)", R"(  #\d+ .*stand_in_unknown_code\+0x[0-9a-f]+)",
                             R"(  #\d+   0x[0-9a-f]{16}  followed_code guess +\? +\?)",
                             R"(  cut short \(no_info\), --why tells more.*)"});
  const Printed why = jitstack("--why " + id_of(program));
  expect_lines(why.out, {R"(  stopped at pc 0x[0-9a-f]+ \(no_info\): .*)"});
  const Json thread = Json::parse(jitstack("--json " + id_of(program)).out)["targets"][0]["threads"][0];
  EXPECT_EQ(thread["name"], "\033[31m<red>\n");
  EXPECT_EQ(thread["whole"], false);
  EXPECT_EQ(thread["stop"], "no_info");
  EXPECT_TRUE(std::ranges::any_of(thread["frames"], [](const Json& frame) { return frame["guess"].get<bool>(); }));
}

/// The perf map names code that is in no file.
TEST(Jitstack, PrintsNamesThatTerminalsObeyInNoOutput) {
  const TargetProgram program(HOSTILE_PROGRAM, {});
  const auto frames = [&](const std::string& json) { return Json::parse(json)["targets"][0]["threads"][0]["frames"]; };
  const std::string name = "\xc2\x9b\x33\x31m \x7f \xe2\x80\xae \033[31m \\\"; '",
                    map = "/tmp/perf-" + id_of(program) + ".map";
  const Json without = frames(jitstack("--json " + id_of(program)).out);
  const auto guessed = std::ranges::find_if(without, [](const Json& frame) { return frame["guess"].get<bool>(); });
  ASSERT_NE(guessed, without.end());
  const auto pc = std::stoull(std::string((*guessed)["pc"]).substr(2), nullptr, 16);
  std::ofstream(map) << std::hex << pc - 8 << " 10 " << name << "\xff\n";
  const TemporaryFolder folder;
  for (const std::string options : {"", "--rows --why ", "--json ", "--json --rows --why "}) {
    const std::string out = jitstack(options + id_of(program)).out;
    for (const std::string obeyed : {"\033", "\x7f", "\xc2\x9b", "\xe2\x80\xae", "\xff"})
      EXPECT_EQ(out.find(obeyed), out.npos) << options;
    EXPECT_NE(out.find("31m"), out.npos) << options;
    if (options.empty() || options[2] != 'j') continue;
    const Json named = frames(out);
    EXPECT_TRUE(std::ranges::any_of(named, [&](const Json& frame) { return frame["name"] == name + "\xef\xbf\xbd"; }))
        << out;
    std::ofstream(folder / "json") << out;
    (void)output_of("python3 -c 'import json, sys; json.loads(open(sys.argv[1], \"rb\").read().decode(\"ascii\"))' '" +
                    (folder / "json") + "'");
  }
  std::filesystem::remove(map);
}

/// The most memory that it had, in KiB; it is run by a process of its own, which the kernel counts it for.
long peak_of(const std::string& arguments) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    rusage used{};
    const bool is_done = jitstack(arguments).status == 0 && ::getrusage(RUSAGE_CHILDREN, &used) == 0;
    ::_exit(is_done && ::write(ends[1], &used.ru_maxrss, sizeof used.ru_maxrss) > 0 ? 0 : 1);
  }
  ::close(ends[1]);
  long peak = 0;
  EXPECT_EQ(::read(ends[0], &peak, sizeof peak), static_cast<ssize_t>(sizeof peak));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return peak;
}

/// Beyond what it reads of the stack, which has some 32 bytes a frame.
TEST(Jitstack, NeedsNoMoreMemoryForDeepStacks) {
  constexpr long k_more = 6 << 10;
  constexpr std::size_t k_deep = k_is_sanitized ? 3000 : 40'000;
  const TargetProgram shallow(DEEP_PROGRAM, {"1000"}), deep(DEEP_PROGRAM, {std::to_string(k_deep)});
  if (!k_is_sanitized) {  // a sanitizer keeps memory that is given back
    for (const std::string option : {"", "--json ", "--rows --why "})
      EXPECT_LT(peak_of(option + id_of(deep)), peak_of(option + id_of(shallow)) + k_more) << option;
  }
  const Json frames = Json::parse(jitstack("--json " + id_of(deep)).out)["targets"][0]["threads"][0]["frames"];
  ASSERT_GT(frames.size(), k_deep);
  for (std::size_t i = 0; i < frames.size(); ++i) ASSERT_EQ(frames[i]["number"], i);
  const auto lines = lines_of(jitstack(id_of(deep)).out);
  EXPECT_EQ(lines.size(), frames.size() + 3) << "process, a line without text, thread";
}

TEST(Jitstack, SaysWhatIsNoTarget) {
  const TemporaryFolder folder;
  std::ofstream(folder / "text") << "no core";
  const pid_t zombie = ::fork();
  if (zombie == 0) ::_exit(0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(zombie), &info, WEXITED | WNOWAIT), 0);
  const struct {
    std::string arguments, reason, said;
  } cases[] = {
      {"4194304", "no_process", "jitstack: No process has the number 4194304.*"},
      {std::to_string(zombie), "zombie", "jitstack: .*" + std::to_string(zombie) + ".* ended.*"},
      {"--core '" + (folder / "none") + "'", "no_such_file", "jitstack: .*/none' cannot be read: No such file.*"},
      {"--core '" + (folder / "text") + "'", "no_core", "jitstack: .*/text' is no ELF file.*"},
  };
  for (const auto& each : cases) {
    const Printed printed = jitstack(each.arguments);
    EXPECT_EQ(printed.status, 3) << each.arguments;
    EXPECT_EQ(printed.out, "");
    EXPECT_TRUE(matches(printed.err, Pattern(each.said + "\n"))) << printed.err;
    const Json target = Json::parse(jitstack("--json " + each.arguments).out)["targets"][0];
    expect_keys(target["error"], {"reason", "text"});
    EXPECT_EQ(target["error"]["reason"], each.reason);
    EXPECT_EQ("jitstack: " + target["error"]["text"].get<std::string>() + "\n", printed.err);
  }
  ::waitpid(zombie, nullptr, 0);
}

TEST(Jitstack, OneMissingTargetDoesNotHideAnother) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  const Printed printed = jitstack("4194304 " + id_of(program));
  EXPECT_EQ(printed.status, 3);
  expect_lines(printed.out, {"process " + id_of(program) + ", 1 thread", R"(  #\d+ .*main\+.*)"});
  EXPECT_EQ(lines_of(printed.err).size(), 1u);
}

TEST(Jitstack, RefusesWrongCommandLines) {
  for (const char* arguments : {"", "x", "0", "-1", "12x", "--nothing 1", "--threads x 1", "--threads 0 1",
                                "--root / 1", "--core a b c", "--core a --hold", "99999999999"}) {
    const Printed printed = jitstack(arguments);
    EXPECT_EQ(printed.status, 2) << arguments;
    EXPECT_EQ(printed.out, "") << arguments;
    EXPECT_TRUE(matches(printed.err, Pattern("jitstack: .+\nTry: jitstack --help\n")))
        << arguments << ": " << printed.err;
  }
  EXPECT_NE(jitstack(TARGET_PROGRAM).err.find("a core file follows --core"), std::string::npos);
}

TEST(Jitstack, SaysThatItCannotWrite) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  for (const char* option : {"", "--json "}) {
    const Ended ended = run(JITSTACK " " + std::string(option) + id_of(program) + " >/dev/full");
    EXPECT_EQ(ended.status, 4);
    EXPECT_EQ(ended.text, "jitstack: cannot write: No space left on device\n");
  }
}

TEST(Jitstack, HelpManualAndPageHaveTheSameOptions) {
  const std::string page = text_of_file(JITUNWIND_SOURCE_DIR "/docs/jitstack.md");
  const std::string manual =
      replaced(text_of_file(JITUNWIND_SOURCE_DIR "/sdk/jitstack/jitstack.1"), Pattern(R"(\\-)"), "-");
  const Printed help = jitstack("--help");
  EXPECT_EQ(help.status, 0);
  const auto options_of = [](const std::string& text) {
    const Pattern option("--[a-z]+(?![-a-z])");  // not perf's --call-graph
    std::set<std::string> options;
    for (const Groups& found : all_in(text, option)) options.insert(found[0]);
    return options;
  };
  EXPECT_GE(options_of(help.out).size(), 8u);
  EXPECT_EQ(options_of(help.out), options_of(manual));
  EXPECT_EQ(options_of(help.out), options_of(page));
  EXPECT_EQ(jitstack("--version").out, "jitstack " JITUNWIND_VERSION_TEXT "\n");
}

#ifdef SCRIPT_PROGRAM
TEST(Jitstack, ColoursAreForTerminalsThatWantThem) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  const auto on_terminal = [&](const std::string& environment) {
    return output_of(environment + " " SCRIPT_PROGRAM " -qec '" JITSTACK " " + id_of(program) + "' /dev/null");
  };
  EXPECT_NE(on_terminal("env -u NO_COLOR TERM=xterm").find("\033[32mjit_frame"), std::string::npos);
  for (const char* environment : {"NO_COLOR=1 TERM=xterm", "env -u NO_COLOR TERM=dumb"}) {
    const std::string text = on_terminal(environment);
    EXPECT_EQ(text.find('\033'), std::string::npos) << text;
    EXPECT_NE(text.find("jit_frame"), std::string::npos);
  }
}
#endif

#ifdef GCORE_PROGRAM
TEST(Jitstack, ACoreFileHasTheStacksThatTheProgramSaw) {
  const TemporaryFolder folder;
  const TargetProgram program(TARGET_PROGRAM);
  output_of(GCORE_PROGRAM " -o '" + (folder / "core") + "' " + id_of(program) + " 2>&1");
  const std::string core = folder / ("core." + id_of(program));
  const Printed printed = jitstack("--core '" + core + "'");
  EXPECT_EQ(printed.status, 0);
  expect_lines(printed.out, {"core file " + core + " of process " + id_of(program) + ", 3 threads",
                             "thread " + id_of(program) + " target_program.*", R"(  #\d+ .*JIT +jit_frame\+0x.*)"});
  const Json target = Json::parse(jitstack("--json --core '" + core + "' " TARGET_PROGRAM).out)["targets"][0];
  EXPECT_EQ(target["core"], core);
  for (const Json& thread : target["threads"])
    EXPECT_EQ(callers_of_stand_still({frames_of(thread), ""}), program.stacks().at(thread["id"].get<pid_t>()).frames);

  const Printed other = jitstack("--core '" + core + "' /bin/sh");
  EXPECT_EQ(other.status, 3);
  EXPECT_TRUE(matches(other.err, Pattern("jitstack: .*/bin/sh.*\n"))) << other.err;
  EXPECT_EQ(Json::parse(jitstack("--json --core '" + core + "' /bin/sh").out)["targets"][0]["error"]["reason"],
            "core_of_other_program");
}
#endif

/// A core file of MIPS, which numbers signals in a way of its own, changed to say that another one ended the process:
/// si_signo and pr_cursig of struct elf_prstatus (linux/elfcore.h).
std::string core_ended_by(const Unpacked& recorded, char signal) {
  std::string core = text_of_file(recorded.core);
  const std::string head("\0\0\0\5\0\0\1\xe0\0\0\0\1CORE", 16);  // of NT_PRSTATUS
  const std::size_t status = core.find(head) + head.size() + 4;
  EXPECT_EQ(core.at(status + 13), SIGABRT);
  core.at(status + 3) = core.at(status + 13) = signal;
  const std::string path = recorded.core + "." + std::to_string(signal);
  std::ofstream(path, std::ios::binary) << core;
  return path;
}

TEST(Jitstack, NamesSignalsAsTheCpuOfTheCoreNumbersThem) {
  const Unpacked recorded("mips64");
  std::vector<std::string> names;
  std::string shown_to_gdb;
  for (char signal = 1; signal < 32; ++signal) {
    const std::string core = core_ended_by(recorded, signal);
    const auto target = Target::open_core(core, {.root = "", .program = recorded.program});
    ASSERT_TRUE(target) << target.error().text();
    names.push_back(jitstack::signal_name(target->threads().at(0).signal, target->arch()));
    shown_to_gdb += " -ex 'core-file " + core + "'";
  }
  EXPECT_EQ(names.at(9), "SIGBUS");
  EXPECT_EQ(jitstack::signal_name(10, *host_arch()), "SIGUSR1");
  EXPECT_EQ(jitstack::signal_name(SIGRTMIN + 2, *host_arch()), "SIGRTMIN+2");
  const std::string arguments = "--core " + recorded.core + ".10 " + recorded.program;
  expect_lines(jitstack(arguments).out, {"thread .*, SIGBUS"});
  EXPECT_EQ(Json::parse(jitstack("--json " + arguments).out)["targets"][0]["threads"][0]["signal"], "SIGBUS");
#ifdef GDB_MULTIARCH_PROGRAM
  std::vector<std::string> of_gdb;
  for (const std::string& line : lines_of(output_of(GDB_MULTIARCH_PROGRAM " -nx -batch" + shown_to_gdb + " 2>&1"))) {
    Groups found;
    if (has_match(line, found, Pattern("terminated with signal (\\w+)"))) of_gdb.push_back(found[1]);
  }
  names.at(21) = "SIGIO";  // SIGPOLL is another name of it
  EXPECT_EQ(names, of_gdb);
#endif
}

/// The registers are at the begin of what the kernel writes, the stack at the end.
TEST(Jitstack, SaysThatACoreFileIsCutOff) {
  const Unpacked recorded("mips64");
  std::filesystem::resize_file(recorded.core, std::filesystem::file_size(recorded.core) - 1);
  for (const std::string option : {"", "--check "}) {
    const Printed printed = jitstack(option + "--core " + recorded.core + " " + recorded.program);
    EXPECT_TRUE(matches(printed.err, Pattern("jitstack: .* is cut off: it has \\d+ bytes of \\d+\\. .*\n")))
        << printed.err;
  }
}

#ifdef EU_STACK_PROGRAM
/// elfutils sees the same frames of static code, up to the first frame that was made at run time.
TEST(Jitstack, ElfutilsAgrees) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  const auto ours = frames_of(Json::parse(jitstack("--json " + id_of(program)).out)["targets"][0]["threads"][0]);
  std::vector<Addr> theirs;
  const Pattern frame("#\\d+ +0x([0-9a-f]+).*");
  Groups found;
  for (const std::string& line : lines_of(output_of(EU_STACK_PROGRAM " -p " + id_of(program) + " 2>/dev/null; true")))
    if (matches(line, found, frame)) theirs.push_back(std::stoull(found[1], nullptr, 16));
  const auto first_jit = std::ranges::find(ours, "dyn_directives", &SeenFrame::origin);
  ASSERT_NE(first_jit, ours.end());
  ASSERT_GE(theirs.size(), static_cast<std::size_t>(first_jit - ours.begin()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(first_jit - ours.begin()); ++i)
    EXPECT_EQ(ours[i].pc, theirs[i]) << i;
}
#endif

TEST(JitstackNames, WhatATerminalObeysIsEscaped) {
  using jitstack::escaped;
  EXPECT_EQ(escaped("std::vector<int>::f(char const*)"), "std::vector<int>::f(char const*)");
  EXPECT_EQ(escaped("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9e"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9e");
  EXPECT_EQ(escaped("\033]0;x\007\r\n\t\x7f"), R"(\x1b]0;x\x07\x0d\x0a\x09\x7f)");
  EXPECT_EQ(escaped("\xc2\x9b"
                    "31m"),
            R"(\xc2\x9b31m)");  // CSI in one character
  EXPECT_EQ(escaped("a\xe2\x80\xae"
                    "b"),
            R"(a\xe2\x80\xaeb)");                                         // right-to-left override
  EXPECT_EQ(escaped("\xff\xc3"), R"(\xff\xc3)");                          // no UTF-8
  EXPECT_EQ(escaped("\xc0\xaf\xe0\x80\xaf"), R"(\xc0\xaf\xe0\x80\xaf)");  // longer than need be
  EXPECT_EQ(escaped("\xed\xa0\x80\xf4\x90\x80\x80"), R"(\xed\xa0\x80\xf4\x90\x80\x80)");
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), R"(a\x00b)");
}

}  // namespace
}  // namespace jitunwind::test
