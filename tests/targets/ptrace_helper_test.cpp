// libunwind-ptrace.h: a process that is traced in any way shows the stack that it sees itself. Every callback gives the
// same answer alone as in a walk.
#include <sys/ptrace.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "tests/support/command.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/jit_frame.h"
#include "tests/targets/libunwind_helpers.h"
#include "traced_registers.h"

#include <libunwind-ptrace.h>

#define JITUNWIND_TEXT_OF(name) #name
#define JITUNWIND_NAME_OF(macro) JITUNWIND_TEXT_OF(macro)

namespace jitunwind::test {
namespace {

enum class How { attach, seize };

/// Stops the thread of that number as long as it lives.
class Stopped {
 public:
  Stopped(pid_t thread, How how) : thread_(thread) {
    if (how == How::seize) {
      EXPECT_EQ(::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr), 0);
      EXPECT_EQ(::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr), 0);
    } else {
      EXPECT_EQ(::ptrace(PTRACE_ATTACH, thread, nullptr, nullptr), 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(thread, &status, __WALL), thread);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  ~Stopped() { ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  pid_t thread_;
};

/// The target of _UPT_create, as long as the object lives.
class Traced {
 public:
  explicit Traced(pid_t thread) : target_(_UPT_create(thread)) {}
  ~Traced() { _UPT_destroy(target_); }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  void* get() const { return target_; }

 private:
  void* target_;
};

class PtraceHelper : public testing::TestWithParam<How> {};

// covers: HL01 HL04 HL07
TEST_P(PtraceHelper, ShowsTheStackOfEachThread) {
  const TargetProgram program(TARGET_PROGRAM);
  const AccessorSpace space(_UPT_accessors);
  ASSERT_EQ(program.stacks().size(), 3u);
  for (const auto& [thread, own] : program.stacks()) {
    const Stopped stopped(thread, GetParam());
    const Traced target(thread);
    expect_as_the_program_saw(remote_stack(space, target.get()), own);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, PtraceHelper, testing::Values(How::attach, How::seize));

/// A child that traces itself and stops in a call from code made at run time. Its exit status is the result of that
/// call.
struct TracedChild {
  pid_t process = ::fork();
  /// The child runs this program, so addresses are the same in both.
  static inline volatile unw_word_t word = 1;

  TracedChild() {
    if (process == 0) {
      die_with_the_test();
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      JitFrame frame;
      const void* const returned = frame(
          [](void*) -> void* {
            for (;;) {
              ::raise(SIGSTOP);
              word = word + 1;
            }
          },
          nullptr);
      ::_exit(static_cast<int>(reinterpret_cast<std::intptr_t>(returned)));
    }
    wait();
  }
  ~TracedChild() {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  void wait() const {
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
};

// covers: HL03 HL04
TEST(PtraceHelperOf, ItsOwnChildGoesOnAndIsLookedAtAnew) {
  const TracedChild child;
  const AccessorSpace space(_UPT_accessors);
  const Traced target(child.process);
  for (unw_word_t round = 1; round < 20; ++round) {
    unw_word_t word = 0;
    ASSERT_EQ(
        _UPT_access_mem(space.get(), reinterpret_cast<std::uintptr_t>(&TracedChild::word), &word, 0, target.get()), 0);
    EXPECT_EQ(word, round);
    const RemoteStack stack = remote_stack(space, target.get());
    EXPECT_EQ(stack.end, 0) << unw_strerror(stack.end);
    EXPECT_TRUE(std::ranges::any_of(stack.frames, [](const SeenFrame& frame) { return frame.name == "jit_frame"; }));
    unw_cursor_t cursor;
    ASSERT_EQ(unw_init_remote(&cursor, space.get(), target.get()), 0);
    ASSERT_EQ(_UPT_resume(space.get(), &cursor, target.get()), 0);
    child.wait();
  }
  EXPECT_EQ(_UPT_resume(space.get(), nullptr, nullptr), -UNW_EINVAL);
}

/// A thread that runs has no registers that a walk could begin with. Once it stands, it is walked by the same target.
// covers: HL01
TEST(PtraceHelperOf, AThreadThatRunsIsNotWalked) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, program.process(), nullptr, nullptr), 0);
  const AccessorSpace space(_UPT_accessors);
  const Traced target(program.process());
  unw_cursor_t cursor;
  unw_word_t word = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(_UPT_access_reg(space.get(), UNW_REG_IP, &word, 0, target.get()), -UNW_EUNSPEC);
    EXPECT_EQ(unw_init_remote(&cursor, space.get(), target.get()), -UNW_EUNSPEC);
  }
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, program.process(), nullptr, nullptr), 0);
  int status = 0;
  ASSERT_TRUE(::waitpid(program.process(), &status, __WALL) == program.process() && WIFSTOPPED(status));
  expect_as_the_program_saw(remote_stack(space, target.get()), program.stacks().at(program.process()));
}

/// The child resumes in the frame made at run time, or in that frame's caller. Each continues behind its call, whose
/// result is the first exception register.
// covers: AS13 HL03 RS05
TEST(PtraceHelperOf, ItsOwnChildGoesOnInACallersFrame) {
  for (const int steps_further : {0, 1}) {
    const TracedChild child;
    const AccessorSpace space(_UPT_accessors);
    const Traced target(child.process);
    unw_cursor_t cursor;
    std::array<char, 64> name{};
    ASSERT_EQ(unw_init_remote(&cursor, space.get(), target.get()), 0);
    while (std::string("jit_frame") != name.data()) {
      ASSERT_GT(unw_step(&cursor), 0);
      unw_get_proc_name(&cursor, name.data(), name.size(), nullptr);
    }
    for (int i = 0; i < steps_further; ++i) ASSERT_GT(unw_step(&cursor), 0);
    ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_EH, 42), 0);
    ASSERT_EQ(unw_resume(&cursor), 0);
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.process), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(ended.si_code, CLD_EXITED);
    EXPECT_EQ(ended.si_status, 42) << steps_further;
  }
}

struct Callbacks : testing::Test {
  TracedChild child;
  AccessorSpace space{_UPT_accessors};
  Traced target{child.process};
  unw_word_t here(const volatile void* object) const { return reinterpret_cast<std::uintptr_t>(object); }
};

/// Calls after the end report that nothing can be seen, for a zombie as for a process that no longer exists.
// covers: HL02
TEST_F(Callbacks, EndAWalkOfWhatEndsMeanwhile) {
  unw_cursor_t cursor;
  unw_word_t word = 0;
  const auto expect_nothing = [&](const char* what) {
    EXPECT_EQ(unw_step(&cursor), -UNW_EUNSPEC) << what;
    EXPECT_EQ(_UPT_access_mem(space.get(), here(&TracedChild::word), &word, 0, target.get()), -UNW_EUNSPEC) << what;
    EXPECT_EQ(_UPT_access_reg(space.get(), UNW_REG_SP, &word, 0, target.get()), -UNW_EUNSPEC) << what;
    unw_flush_cache(space.get(), 0, 0);
    EXPECT_EQ(unw_init_remote(&cursor, space.get(), target.get()), -UNW_EUNSPEC) << what;
  };
  const auto begin = [&] {
    ASSERT_EQ(unw_init_remote(&cursor, space.get(), target.get()), 0);
    ASSERT_GT(unw_step(&cursor), 0);
  };
  begin();
  ::kill(child.process, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.process), &ended, WEXITED | WNOWAIT), 0);
  expect_nothing("a zombie");
  ::waitpid(child.process, nullptr, 0);
  expect_nothing("no more");
}

/// The kernel replaces all memory and registers between two calls. No answer is of the program that was there before.
// covers: HL02
TEST(PtraceHelperOf, AProgramThatExecutesAnotherShowsTheOtherOne) {
  const pid_t child = ::fork();
  if (child == 0) {
    die_with_the_test();
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    JitFrame frame;
    frame([](void*) -> void* { return ::raise(SIGSTOP), ::execl("/bin/true", "true", nullptr), nullptr; }, nullptr);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_TRUE(::waitpid(child, &status, 0) == child && WIFSTOPPED(status));
  const AccessorSpace space(_UPT_accessors);
  const Traced target(child);
  unw_cursor_t cursor;
  unw_word_t word = 0;
  std::array<char, 64> name{};
  ASSERT_EQ(unw_init_remote(&cursor, space.get(), target.get()), 0);
  while (std::string("jit_frame") != name.data()) {
    ASSERT_GT(unw_step(&cursor), 0);
    unw_get_proc_name(&cursor, name.data(), name.size(), nullptr);
  }
  ASSERT_EQ(::ptrace(PTRACE_CONT, child, nullptr, nullptr), 0);
  ASSERT_TRUE(::waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
  const auto own = reinterpret_cast<std::uintptr_t>(&TracedChild::word);
  EXPECT_EQ(_UPT_access_mem(space.get(), own, &word, 0, target.get()), -UNW_EINVAL);
  EXPECT_LT(unw_step(&cursor), 0);
  unw_flush_cache(space.get(), 0, 0);
  const RemoteStack stack = remote_stack(space, target.get());
  ASSERT_FALSE(stack.frames.empty());
  // It is in the dynamic linker. Debian 13 strips the symbol _start off that one.
  const std::string maps = text_of_file("/proc/" + std::to_string(child) + "/maps");
  const Mappings mappings = Mappings::parse(maps);
  const Mapping* const linker = mappings.find(stack.frames[0].pc);
  ASSERT_NE(linker, nullptr);
  EXPECT_NE(linker->path.find("/ld-"), std::string::npos) << linker->path;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// covers: HL02
TEST_F(Callbacks, ReadAndWriteMemory) {
  unw_word_t value = 41;
  EXPECT_EQ(_UPT_access_mem(space.get(), here(&TracedChild::word), &value, 1, target.get()), 0);
  value = 0;
  EXPECT_EQ(_UPT_access_mem(space.get(), here(&TracedChild::word), &value, 0, target.get()), 0);
  EXPECT_EQ(value, 41u);
  EXPECT_EQ(TracedChild::word, 1u) << "the child's, not this process's";
  EXPECT_EQ(_UPT_access_mem(space.get(), 0, &value, 0, target.get()), -UNW_EINVAL);
  EXPECT_EQ(_UPT_access_mem(space.get(), 8, &value, 1, target.get()), -UNW_EINVAL);
}

// covers: HL02
TEST_F(Callbacks, ReadAndWriteRegisters) {
  for (const auto& [number, value] : TracedRegisters(child.process).words) {
    unw_word_t read = 0;
    EXPECT_EQ(_UPT_access_reg(space.get(), number, &read, 0, target.get()), 0) << number;
    EXPECT_EQ(read, value) << unw_regname(number);
  }
  unw_word_t value = 0x1234567890abcdef;
  EXPECT_EQ(_UPT_access_reg(space.get(), TracedRegisters::k_any, &value, 1, target.get()), 0);
  const auto written = TracedRegisters(child.process).words;
  EXPECT_EQ(std::ranges::find(written, int{TracedRegisters::k_any}, &std::pair<int, unw_word_t>::first)->second, value);
  for (const int number : {-1, int{UNW_TDEP_LAST_REG} + 1, 1000})
    EXPECT_EQ(_UPT_access_reg(space.get(), number, &value, 0, target.get()), -UNW_EBADREG) << number;
}

// covers: HL02 HL06
TEST_F(Callbacks, ReadAndWriteVectorRegisters) {
  unw_fpreg_t value;
  for (const auto& [number, bytes] : TracedRegisters(child.process).vectors) {
    EXPECT_EQ(_UPT_access_fpreg(space.get(), number, &value, 0, target.get()), 0) << number;
    EXPECT_EQ(std::memcmp(&value, bytes.data(), bytes.size()), 0) << unw_regname(number);
    auto changed = bytes;
    changed[15] ^= std::byte{0x55};
    changed[0] ^= std::byte{0xaa};
    std::memcpy(&value, changed.data(), changed.size());
    EXPECT_EQ(_UPT_access_fpreg(space.get(), number, &value, 1, target.get()), 0) << number;
    EXPECT_TRUE(std::ranges::count(TracedRegisters(child.process).vectors, std::pair(number, changed)) == 1) << number;
  }
  EXPECT_EQ(_UPT_access_fpreg(space.get(), TracedRegisters::k_no_vector, &value, 0, target.get()), -UNW_EBADREG);
}

// covers: HL02
TEST_F(Callbacks, FindProceduresNamesAndFiles) {
  const unw_word_t inside = here(reinterpret_cast<const void*>(&unw_strerror)) + 1;
  unw_proc_info_t info;
  ASSERT_EQ(_UPT_find_proc_info(space.get(), inside, &info, 1, target.get()), 0);
  EXPECT_EQ(info.start_ip, inside - 1);
  EXPECT_GT(info.end_ip, inside);
  EXPECT_NE(info.unwind_info, nullptr);
  _UPT_put_unwind_info(space.get(), &info, target.get());
  ASSERT_EQ(_UPT_find_proc_info(space.get(), inside, &info, 0, target.get()), 0);
  unw_word_t start = 0, end = 0;
  EXPECT_EQ(_UPT_get_proc_ip_range(space.get(), inside, &start, &end, target.get()), 0);
  EXPECT_EQ(start, info.start_ip);
  EXPECT_EQ(end, info.end_ip);
  for (const int need : {0, 1}) EXPECT_EQ(_UPT_find_proc_info(space.get(), 8, &info, need, target.get()), -UNW_ENOINFO);

  std::array<char, 256> text{};
  unw_word_t offset = 0;
  EXPECT_EQ(_UPT_get_proc_name(space.get(), inside, text.data(), text.size(), &offset, target.get()), 0);
  EXPECT_STREQ(text.data(), JITUNWIND_NAME_OF(unw_strerror));
  EXPECT_EQ(offset, 1u);
  EXPECT_EQ(_UPT_get_proc_name(space.get(), inside, text.data(), 4, nullptr, target.get()), -UNW_ENOMEM);
  EXPECT_EQ(std::string(text.data()), std::string(JITUNWIND_NAME_OF(unw_strerror)).substr(0, 3));
  EXPECT_EQ(_UPT_get_proc_name(space.get(), 8, text.data(), text.size(), &offset, target.get()), -UNW_ENOINFO);

  EXPECT_EQ(_UPT_get_elf_filename(space.get(), inside, text.data(), text.size(), &offset, target.get()), 0);
  EXPECT_EQ(std::string(text.data()), output_of("readlink -n /proc/" + std::to_string(::getpid()) + "/exe"));
  EXPECT_EQ(_UPT_get_elf_filename(space.get(), 8, text.data(), text.size(), &offset, target.get()), -UNW_ENOINFO);
}

// covers: HL02
TEST_F(Callbacks, FindTheListOfRegisteredProcedures) {
  unw_word_t head = 0;
  ASSERT_EQ(_UPT_get_dyn_info_list_addr(space.get(), &head, target.get()), 0);
  EXPECT_EQ(head, _U_dyn_info_list_addr()) << "the child is of this program";
  // The mask contains the bits by which the CPU signs code addresses, and may contain more that no address of a process
  // uses.
  const unw_word_t mask = _UPT_ptrauth_insn_mask(space.get(), target.get());
  const unw_word_t is_signed = TracedRegisters::signature_of_code(child.process);
  EXPECT_EQ(mask & is_signed, is_signed);
  EXPECT_EQ(mask == 0, is_signed == 0);
}

/// The result of a walk, which allocates nothing.
struct Walked {
  std::array<unw_word_t, 64> ips{};
  std::size_t frames = 0;
  int end = 0;
};
Walked walk_of(pid_t process, const AccessorSpace& space) {
  const Traced target(process);
  Walked walked;
  unw_cursor_t cursor;
  walked.end = unw_init_remote(&cursor, space.get(), target.get());
  if (walked.end < 0) return walked;
  do unw_get_reg(&cursor, UNW_REG_IP, &walked.ips[walked.frames++]);
  while (walked.frames < walked.ips.size() && (walked.end = unw_step(&cursor)) > 0);
  return walked;
}

/// Any allocation may be the first that fails: a walk ends with an error behind right frames, or is whole. Nothing
/// stays allocated.
// covers: HL01
TEST_F(Callbacks, SayThatThereIsNoMemory) {
  void* made = nullptr;
  {
    const NoMemory here;
    made = _UPT_create(child.process);
  }
  EXPECT_EQ(made, nullptr);
  const std::size_t before = allocations();
  const Walked right = walk_of(child.process, space);
  const std::size_t needed = allocations() - before;
  EXPECT_EQ(right.end, 0);
  EXPECT_GT(needed, 20u);
  std::vector<Walked> walks(needed);
  std::size_t kept = 0;
  for (std::size_t times = 0; times < needed; ++times) {
    const std::size_t held_before = allocations_held();
    const NoMemory here(times);
    walks[times] = walk_of(child.process, space);
    kept += allocations_held() - held_before;
  }
  EXPECT_EQ(kept, 0u);
  EXPECT_EQ(walks[0].frames, 0u);
  for (const Walked& walk : walks) {
    EXPECT_TRUE(walk.end < 0 || (walk.end == 0 && walk.frames == right.frames)) << walk.end << " " << walk.frames;
    EXPECT_TRUE(std::equal(walk.ips.begin(), walk.ips.begin() + walk.frames, right.ips.begin())) << &walk - &walks[0];
  }
}

/// A file that could not be opened for want of memory is opened when a name is asked for again.
TEST_F(Callbacks, HaveNamesWhenThereIsMemoryAgain) {
  std::array<char, 256> name{};
  const auto is_named = [&](unw_cursor_t& cursor, const std::string& as) {
    name[0] = '\0';
    return unw_get_proc_name(&cursor, name.data(), name.size(), nullptr) == 0 && as == name.data();
  };
  const std::vector<SeenFrame> frames = remote_stack(space, target.get()).frames;
  const auto calls = std::ranges::find_if(
      frames, [](const SeenFrame& frame) { return frame.name.find("TracedChild") != std::string::npos; });
  ASSERT_NE(calls, frames.end());
  bool was_named = false;
  for (std::size_t times = 0; !was_named; ++times) {
    const Traced traced(child.process);
    unw_cursor_t cursor;
    ASSERT_EQ(unw_init_remote(&cursor, space.get(), traced.get()), 0);
    for (auto frame = frames.begin(); frame != calls; ++frame) ASSERT_GT(unw_step(&cursor), 0);
    {
      const NoMemory here(times);
      was_named = is_named(cursor, calls->name);
    }
    ASSERT_TRUE(is_named(cursor, calls->name)) << name.data() << ", where " << times << " allocations went well before";
  }
}

// covers: HL01
TEST_F(Callbacks, SayWhatIsWrong) {
  unw_word_t value = 0;
  unw_proc_info_t info;
  EXPECT_EQ(_UPT_create(0), nullptr);
  EXPECT_EQ(_UPT_create(-1), nullptr);
  _UPT_destroy(nullptr);
  EXPECT_EQ(_UPT_access_mem(space.get(), 0, &value, 0, nullptr), -UNW_EINVAL);
  EXPECT_EQ(_UPT_access_reg(space.get(), 0, &value, 0, nullptr), -UNW_EINVAL);
  EXPECT_EQ(_UPT_find_proc_info(space.get(), 0, &info, 0, nullptr), -UNW_EINVAL);
  EXPECT_EQ(_UPT_get_dyn_info_list_addr(space.get(), &value, nullptr), -UNW_EINVAL);
  // These are a process that was never traced, and one that no longer exists.
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const Traced of_gone(gone);
  unw_cursor_t cursor;
  EXPECT_EQ(unw_init_remote(&cursor, space.get(), of_gone.get()), -UNW_EUNSPEC);
  EXPECT_EQ(_UPT_find_proc_info(space.get(), here(&gone), &info, 0, of_gone.get()), -UNW_EUNSPEC);
  EXPECT_EQ(_UPT_resume(space.get(), &cursor, of_gone.get()), -UNW_EUNSPEC);
}

/// The manual's program prints a line for each frame with the procedure that unw_get_proc_info finds. It agrees with nm
/// about static code.
// covers: HL05
TEST(PtraceHelperOf, TheManualsProgramShowsASleepingProcess) {
  const TargetProgram program(TARGET_PROGRAM);
  const std::string printed = output_of("'" TRACED_EXAMPLE "' " + std::to_string(program.process()));
  EXPECT_TRUE(printed.ends_with("complete\n")) << printed;
  for (const SeenFrame& frame : program.stacks().at(program.process()).frames) {
    std::ostringstream line;
    line << "0x" << std::hex << frame.pc << " " << (frame.name.empty() ? "?+0" : frame.name + "+0x");
    EXPECT_NE(printed.find(line.str()), std::string::npos) << line.str() << "\n" << printed;
  }
  Groups found;
  ASSERT_TRUE(has_match(
      printed, found,
      Pattern(R"( main\+0x[0-9a-f]+\n +proc=0x([0-9a-f]+)-0x([0-9a-f]+) handler=0x[0-9a-f]+ lsda=0x[0-9a-f]+\n)")))
      << printed;
  const Addr begin = std::stoull(found[1], nullptr, 16), end = std::stoull(found[2], nullptr, 16);
  std::istringstream symbol(output_of("nm -S '" TARGET_PROGRAM "' | grep ' T main$'"));
  Addr value = 0, size = 0;
  symbol >> std::hex >> value >> size;
  EXPECT_EQ(end - begin, size);
  EXPECT_EQ(begin % 4096, value % 4096);
}

// covers: SF07
TEST(PtraceHelperOf, TwoTargetsIsForTwoThreads) {
  const AccessorSpace space(_UPT_accessors);
  std::array<std::thread, 2> threads;
  for (std::thread& thread : threads)
    thread = std::thread([&] {
      const TargetProgram program(TARGET_PROGRAM);
      const auto& [of_main, own] = *program.stacks().find(program.process());
      for (int i = 0; i < 20; ++i) {
        const Stopped stopped(of_main, How::seize);
        const Traced target(of_main);
        expect_as_the_program_saw(remote_stack(space, target.get()), own);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace jitunwind::test
