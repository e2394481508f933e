// perf's files: files made by hand, cut and changed; and a file that perf makes, compared with perf's own output.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "jitunwind/sdk/jitstack/perf/perf_data_p.h"
#include "tests/jitstack/jitstack_runs.h"
#include "tests/jitstack/perf_file.h"
#include "tests/support/cpu_seconds.h"
#include "tests/support/texts.h"

namespace jitunwind::jitstack {
namespace {

using test::Groups, test::Pattern;

Result<PerfData, TargetError> parsed(const std::string& file) {
  return PerfData::parse(std::as_bytes(std::span(file)), "FILE");
}

/// perf's order: ax bx cx dx si di bp sp ip flags cs ss r8...r15.
std::vector<std::uint64_t> registers(std::uint64_t sp, std::uint64_t ip) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < 20; ++i) all.push_back(0x1000 + i);
  all[7] = sp, all[8] = ip;
  return all;
}

TEST(PerfData, RegistersAndStackOfASampleAreThoseThatPerfKept) {
  test::PerfFile made;
  made.event(7);
  made.sample(7, 10, 11, 5, registers(0x7000, 0x4000), {1, 2, 3});
  const std::string file = made.bytes();
  const auto data = parsed(file);
  ASSERT_TRUE(data) << data.error().text();
  ASSERT_EQ(data->size(), 1u);
  const auto event = data->event(0);
  ASSERT_TRUE(event) << event.error().text();
  const auto& sample = std::get<PerfSample>(*event);
  EXPECT_EQ(sample.process, 10);
  EXPECT_EQ(sample.thread, 11);
  EXPECT_EQ(sample.time, 5u);
  ASSERT_TRUE(sample.has_registers);
  const auto value = [&](const char* name) { return sample.registers.get(data->arch().by_name(name)->column); };
  const std::map<std::string, std::uint64_t> expected{
      {"rax", 0x1000}, {"rbx", 0x1001}, {"rcx", 0x1002}, {"rdx", 0x1003}, {"rsi", 0x1004}, {"rdi", 0x1005},
      {"rbp", 0x1006}, {"rsp", 0x7000}, {"rip", 0x4000}, {"r8", 0x100c},  {"r9", 0x100d},  {"r10", 0x100e},
      {"r11", 0x100f}, {"r12", 0x1010}, {"r13", 0x1011}, {"r14", 0x1012}, {"r15", 0x1013}};
  for (const auto& [name, number] : expected) EXPECT_EQ(value(name.c_str()), number) << name;
  ASSERT_EQ(sample.stack.size(), 24u);
  EXPECT_EQ(std::to_integer<int>(sample.stack[16]), 3);
}

TEST(PerfData, MappingsHaveTheBuildIdsThatTheFileLists) {
  test::PerfFile made;
  made.event(7);
  made.machine("x86_64");
  const std::string id = "0123456789abcdefghij";
  made.build_id("/bin/short", id, 8);
  made.build_id("[vdso]", id);
  made.build_id("/bin/lie", id, 21);
  for (const char* path : {"/bin/short", "[vdso]", "/bin/lie", "/bin/other"})
    made.mapped(10, 0x4000, 0x1000, 0, path, 1);
  const std::string file = made.bytes();
  const auto ids_of = [](const std::string& bytes) {
    std::vector<std::string> ids;
    const auto data = parsed(bytes);
    for (std::size_t i = 0; data && i < data->size(); ++i)
      ids.push_back(std::get<PerfMapped>(*data->event(i)).mapping.build_id);
    return ids;
  };
  EXPECT_EQ(ids_of(file), (std::vector<std::string>{id.substr(0, 8), id, "", ""}));
  for (std::size_t cut = 1; cut < 300; ++cut) {
    std::string part = file;
    part.resize(file.size() - cut);
    (void)ids_of(part);
  }
}

/// The file's machine determines its registers: perf's numbers of SP and of the pc (asm/perf_regs.h).
// covers: XP04
TEST(PerfData, RegistersAreThoseOfTheMachineThatItWasRecordedOn) {
  struct Machine {
    const char *called, *cpu;
    unsigned sp, pc;
  };
  constexpr Machine k_machines[] = {{"x86_64", "x86-64", 7, 8},   {"aarch64", "aarch64", 31, 32},
                                    {"i686", "x86", 7, 8},        {"armv7l", "arm", 13, 15},
                                    {"riscv64", "riscv64", 2, 0}, {"ppc64le", "ppc64", 1, 32},
                                    {"mips64", "mips64", 29, 0}};
  for (const Machine& machine : k_machines) {
    test::PerfFile made;
    made.event(7);
    made.machine(machine.called);
    made.registers(std::uint64_t{1} << machine.sp | std::uint64_t{1} << machine.pc);
    const bool is_sp_first = machine.sp < machine.pc;
    const bool is_32 = std::string(machine.cpu) == "x86" || std::string(machine.cpu) == "arm";
    made.sample(7, 10, 11, 5, {is_sp_first ? 0x7000u : 0x4000u, is_sp_first ? 0x4000u : 0x7000u}, {1}, {},
                is_32 ? PERF_SAMPLE_REGS_ABI_32 : PERF_SAMPLE_REGS_ABI_64);
    const std::string file = made.bytes();
    const auto data = parsed(file);
    ASSERT_TRUE(data) << machine.called << ": " << data.error().text();
    const Arch& arch = data->arch();
    EXPECT_STREQ(arch.name, machine.cpu);
    EXPECT_FALSE(arch.big_endian);
    const auto event = data->event(0);
    ASSERT_TRUE(event) << event.error().text();
    const auto& sample = std::get<PerfSample>(*event);
    ASSERT_TRUE(sample.has_registers) << machine.called;
    EXPECT_EQ(sample.registers.get(arch.column(arch.sp)), 0x7000u) << machine.called;
    EXPECT_EQ(sample.registers.get(arch.column(arch.pc)), 0x4000u) << machine.called;
  }
}

TEST(PerfData, OfAMachineThatIsNotKnownSaysWhich) {
  for (const char* machine : {"loongarch64", "s390x", "sparc64"}) {  // of s390x there is no such byte order
    test::PerfFile made;
    made.event(1);
    made.machine(machine);
    const std::string file = made.bytes();
    const auto data = parsed(file);
    ASSERT_FALSE(data) << machine;
    EXPECT_EQ(data.error().what, "'FILE' is of a CPU that is not known here: " + std::string(machine) + ".");
  }
  test::PerfFile made;
  made.event(1);
  made.machine("\x1b[2J");
  const std::string file = made.bytes();
  const auto data = parsed(file);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().what.find('\x1b'), std::string::npos);
}

TEST(PerfData, RecordsAreInTheOrderOfTheirTimes) {
  test::PerfFile made;
  made.event(1);
  made.sample(1, 10, 10, 30, registers(0, 0), {});
  made.named(10, 10, "late", false, 40);
  made.named(10, 10, "early", false, 20);
  made.mapped(10, 0x1000, 0x1000, 0, "/bin/a", 10);
  const std::string file = made.bytes();
  const auto data = parsed(file);
  ASSERT_TRUE(data) << data.error().text();
  ASSERT_EQ(data->size(), 4u);
  EXPECT_EQ(std::get<PerfMapped>(*data->event(0)).mapping.path, "/bin/a");
  EXPECT_EQ(std::get<PerfNamed>(*data->event(1)).name, "early");
  EXPECT_EQ(std::get<PerfSample>(*data->event(2)).time, 30u);
  EXPECT_EQ(std::get<PerfNamed>(*data->event(3)).name, "late");
  EXPECT_EQ(data->samples(), 1u);
}

/// Each event has its own fields; the id tells the event of a sample.
TEST(PerfData, SamplesOfSeveralEventsAreToldApart) {
  test::PerfFile made;
  made.event(1);
  made.event(2, PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ADDR);
  made.sample(2, 10, 10, 1, registers(0x7002, 0x4002), {5}, {0xadd, 77, 2, 0x4002, 0x4003});
  made.sample(1, 10, 10, 2, registers(0x7001, 0x4001), {6, 7});
  made.sample(3, 10, 10, 3, registers(0x7003, 0x4003), {8});  // of an event that nobody declares
  const std::string file = made.bytes();
  const auto data = parsed(file);
  ASSERT_TRUE(data) << data.error().text();
  ASSERT_EQ(data->size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto event = data->event(i);
    ASSERT_TRUE(event) << event.error().text();
    const auto& sample = std::get<PerfSample>(*event);
    EXPECT_EQ(sample.registers.get(data->arch().column(data->arch().sp)), i == 0 ? 0x7002u : 0x7001u);
    EXPECT_EQ(sample.stack.size(), i == 0 ? 8u : 16u);
  }
}

TEST(PerfData, SaysWhatItCannotRead) {
  const auto said = [](const std::string& file) {
    const auto data = parsed(file);
    return data ? "" : data.error().what;
  };
  test::PerfFile made;
  made.event(1);
  std::string file = made.bytes();
  EXPECT_EQ(said(""), "'FILE' is no file of perf's.");
  EXPECT_EQ(said("PERFILE2"), "'FILE' is no file of perf's.");
  EXPECT_EQ(said("2ELIFREP" + file.substr(8)), "'FILE' was recorded on a machine of another byte order.");
  EXPECT_EQ(said(std::string("PERFILE2\x10\0\0\0\0\0\0\0", 16)), "'FILE' was recorded into a pipe.");
  EXPECT_EQ(said(test::PerfFile().bytes()), "'FILE' has no events that can be read.");
  made.raw(81, "zstd");
  EXPECT_EQ(said(made.bytes()), "'FILE' is compressed.");
  file[112 + 24 + 1] = 0;  // sample_type without registers and stack
  EXPECT_EQ(said(file), "'FILE' has samples without registers and stacks.");
}

TEST(PerfData, WhatIsCutOffOrBrokenEndsIt) {
  test::PerfFile made;
  made.event(1);
  for (std::uint64_t i = 0; i < 3; ++i) made.sample(1, 10, 10, i, registers(0, 0), {1, 2});
  const std::string whole = made.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const auto data = parsed(cut);
    if (!data) continue;
    EXPECT_LT(data->size(), 3u);
    EXPECT_NE(data->end_reason(), nullptr) << size;
    for (std::size_t i = 0; i < data->size(); ++i) EXPECT_TRUE(data->event(i)) << size;
  }
  // The sample claims a larger stack than it has.
  std::string broken = whole;
  const std::size_t last_stack = broken.size() - 32;
  broken[last_stack + 1] = 1;
  const auto data = parsed(broken);
  ASSERT_TRUE(data);
  EXPECT_TRUE(data->event(1));
  const auto event = data->event(2);
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, ErrorCode::truncated);
  EXPECT_EQ(event.error().at, last_stack + 8);
}

/// Shows the mappings at a sample, by the sample's own target.
class Mapped : public testing::Test {
 protected:
  std::vector<Mapping> of(pid_t process) {
    PerfSample sample{.process = process, .thread = process, .has_registers = true};
    const auto target = processes.target_of(sample);
    return target ? (*target)->mappings().all() : std::vector<Mapping>();
  }
  std::string told(pid_t process) {
    std::ostringstream text;
    for (const Mapping& mapping : of(process))
      text << std::hex << mapping.range.begin << "-" << mapping.range.end << "@" << mapping.offset << mapping.path
           << " ";
    return text.str();
  }
  void map(pid_t process, AddrRange range, Addr offset, const std::string& path) {
    processes.take(PerfMapped{process, {.range = range, .offset = offset, .path = path, .executable = true}});
  }
  PerfProcesses processes{*host_arch(), {"/nowhere", ""}};
};

TEST_F(Mapped, ANewMappingCutsWhatWasThere) {
  map(1, {0x1000, 0x9000}, 0x100000, "/a");
  map(1, {0x3000, 0x5000}, 0, "/b");
  EXPECT_EQ(told(1), "1000-3000@100000/a 3000-5000@0/b 5000-9000@104000/a ");
  map(1, {0x2000, 0x6000}, 0, "/c");
  EXPECT_EQ(told(1), "1000-2000@100000/a 2000-6000@0/c 6000-9000@105000/a ");
  map(1, {0, 0x10000}, 0, "/d");
  map(1, {0x5000, 0x5000}, 0, "/empty");
  EXPECT_EQ(told(1), "0-10000@0/d ");
}

TEST_F(Mapped, AForkInheritsAnExecForgets) {
  map(1, {0x1000, 0x2000}, 0, "/a");
  processes.take(PerfNamed{1, 1, "parent"});
  processes.take(PerfForked{.process = 2, .parent = 1, .thread = 2, .parent_thread = 1});
  processes.take(PerfForked{.process = 1, .parent = 1, .thread = 3, .parent_thread = 1});
  map(2, {0x5000, 0x6000}, 0, "/b");
  EXPECT_EQ(told(1), "1000-2000@0/a ");
  EXPECT_EQ(told(2), "1000-2000@0/a 5000-6000@0/b ");
  EXPECT_EQ(processes.name_of({.process = 2, .thread = 2}), "parent");
  EXPECT_EQ(processes.name_of({.process = 1, .thread = 3}), "parent");
  processes.take(PerfNamed{2, 2, "child", true});
  EXPECT_EQ(told(2), "");
  EXPECT_EQ(processes.name_of({.process = 2, .thread = 2}), "child");
  processes.take(PerfEnded{1, 1});
  EXPECT_EQ(told(1), "");
}

/// 2^n mappings could come from n records.
TEST_F(Mapped, ForksCannotMultiplyMappingsWithoutEnd) {
  for (Addr i = 0; i < 4096; ++i) map(1, {i << 12, (i + 1) << 12}, 0, "/a");
  for (pid_t child = 2; child < 2000; ++child)
    processes.take(PerfForked{.process = child, .parent = 1, .thread = child, .parent_thread = 1});
  EXPECT_TRUE(processes.has_left_out());
}

/// Mappings are read when they have changed, not for each sample.
TEST_F(Mapped, SamplesTakeAsLongWhateverIsMapped) {
  const auto seconds_for_samples = [this](pid_t process, Addr mappings) {
    for (Addr i = 0; i < mappings; ++i) map(process, {i << 13, (i << 13) + 0x1000}, 0, "/some/library/with/a/path");
    PerfSample sample{.process = process, .thread = process, .has_registers = true};
    EXPECT_TRUE(processes.target_of(sample));
    const double begin = test::cpu_seconds();
    for (int i = 0; i < 2000; ++i) EXPECT_TRUE(processes.target_of(sample));
    return test::cpu_seconds() - begin;
  };
  (void)seconds_for_samples(1, 10);
  EXPECT_LT(seconds_for_samples(2, 16'000), 10 * seconds_for_samples(3, 10));
}

TEST_F(Mapped, WhatIsMappedBetweenSamplesIsSeen) {
  map(1, {0x1000, 0x2000}, 0, "/a");
  EXPECT_EQ(told(1), "1000-2000@0/a ");
  EXPECT_EQ(told(1), "1000-2000@0/a ");
  map(1, {0x3000, 0x4000}, 0, "/b");
  EXPECT_EQ(told(1), "1000-2000@0/a 3000-4000@0/b ");
}

#ifdef PERF_PROGRAM
using test::jitstack;
using Json = nlohmann::json;

/// Two programs that know nothing of each other: thread, time in microseconds, and pcs of user code within their pages,
/// which is what perf's addresses in files and ours in memory have in common.
using Stacks = std::map<std::pair<pid_t, std::uint64_t>, std::vector<Addr>>;

Stacks by_perf(const std::string& file) {
  Stacks stacks;
  const Pattern head(" *(\\d+) +(\\d+)\\.(\\d{6}): *"), frame("\\s+([0-9a-f]+) *");
  Groups found;
  std::vector<Addr>* stack = nullptr;
  for (const std::string& line : test::lines_of(
           test::output_of(PERF_PROGRAM " script --no-inline -F tid,time,ip -i '" + file + "' 2>/dev/null"))) {
    if (matches(line, found, head))
      stack = &stacks[{std::stoi(found[1]), std::stoull(found[2]) * 1'000'000 + std::stoull(found[3])}];
    else if (stack && matches(line, found, frame))
      if (const Addr pc = std::stoull(found[1], nullptr, 16); pc >> 47 == 0) stack->push_back(pc % 4096);
  }
  return stacks;
}

TEST(JitstackPerf, HasTheFramesThatPerfHas) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "perf.data";
  test::output_of(PERF_PROGRAM " record -e cpu-clock -F 499 --call-graph dwarf,16384 -o '" + file +
                  "' " BUSY_PROGRAM " 2>&1");
  const auto printed = jitstack("--json --perf '" + file + "'");
  EXPECT_EQ(printed.err, "");
  const Json target = Json::parse(printed.out)["targets"][0];
  EXPECT_EQ(target["perf"], file);
  const Stacks theirs = by_perf(file);
  std::size_t same = 0, deep = 0;
  for (const Json& thread : target["threads"]) {
    const auto of = theirs.find({thread["id"].get<pid_t>(), thread["time"].get<std::uint64_t>() / 1000});
    ASSERT_NE(of, theirs.end());
    std::vector<Addr> ours;
    bool is_recursive = false;
    for (const Json& frame : thread["frames"]) {
      // perf prints the address of the call, not the return address.
      ours.push_back(std::stoull(frame["pc"].get<std::string>(), nullptr, 16) - (frame["number"] != 0));
      ours.back() %= 4096;
      is_recursive = is_recursive || frame["name"] == "burn_deeper";
    }
    if (!is_recursive) continue;  // of the dynamic linker, whose beginning has frames that perf ends at
    EXPECT_EQ(ours, of->second);
    EXPECT_TRUE(thread["whole"].get<bool>()) << thread["why"];
    EXPECT_EQ(thread["name"], "busy_program");
    same += ours == of->second;
    deep += ours.size() >= 20;
  }
  EXPECT_GE(same, 20u);
  EXPECT_EQ(deep, same);

  const std::string output = folder / "seen";
  const auto profile = jitstack("--perf '" + file + "' --output '" + output + "'");
  EXPECT_LE(profile.status, 1) << profile.err;
  EXPECT_NE(test::text_of_file(output + ".folded").find("busy_program;_start;"), std::string::npos);
  EXPECT_NE(test::text_of_file(output + ".folded").find(";burn_deeper"), std::string::npos);
  const auto text = jitstack("--perf '" + file + "'");
  test::expect_lines(text.out, {"file .*/perf.data, \\d+ samples", "thread \\d+ busy_program of process \\d+, at .* s",
                                "  #\\d+ .*burn_deeper\\+0x.*"});
}
#endif

TEST(JitstackPerf, SaysWhatIsNoFileOfPerfs) {
  const auto printed = test::jitstack("--perf " JITUNWIND_SOURCE_DIR "/README.md");
  EXPECT_EQ(printed.status, 3);
  EXPECT_EQ(printed.err, "jitstack: '" JITUNWIND_SOURCE_DIR
                         "/README.md' is no file of perf's. perf record --call-graph dwarf -o FILE makes one.\n");
  EXPECT_EQ(test::jitstack("--perf /nowhere").status, 3);
  for (const char* arguments : {"--perf x 1", "--perf x --core y", "--perf x --watch 1", "--perf x --output y --json"})
    EXPECT_EQ(test::jitstack(arguments).status, 2) << arguments;
}

}  // namespace
}  // namespace jitunwind::jitstack
