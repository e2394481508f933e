// A process that ends, executes another program or unmaps its code while it is a target: frames that were found stay,
// an error names what is missing, and the next walk shows the present state.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/support/jit_frame.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

/// Checks that `part` has the first frames of `whole`, a walk without kept rows.
void expect_beginning_of(const SeenStack& whole, const SeenStack& part) {
  ASSERT_FALSE(part.frames.empty());
  ASSERT_LE(part.frames.size(), whole.frames.size());
  for (std::size_t i = 0; i < part.frames.size(); ++i) {
    EXPECT_EQ(part.frames[i].pc, whole.frames[i].pc) << i;
    EXPECT_EQ(part.frames[i].sp, whole.frames[i].sp) << i;
  }
  if (part.frames.size() < whole.frames.size()) {
    EXPECT_NE(part.why, "complete");
  }
}

SeenStack whole_stack_of(pid_t process) {
  const auto target = Target::attach(process);
  EXPECT_TRUE(target) << target.error().text();
  return target ? seen(target->walk(target->threads().at(0))) : SeenStack{};
}

/// Waits until the process has set that name and stands.
void wait_for_name(pid_t process, const std::string& wanted) {
  std::string name;
  for (int i = 0; i < 60'000 && name != wanted; ++i) {
    ::usleep(1000);
    std::getline(std::ifstream("/proc/" + std::to_string(process) + "/comm"), name);
  }
  EXPECT_EQ(name, wanted);
  EXPECT_TRUE(waits_in(process, {SYS_pause, SYS_read, SYS_clock_nanosleep}));
  ::usleep(50'000);
}

/// Returns the first mapped address of a file.
std::string mapped_at(const Target& target, const std::string& file) {
  for (const Mapping& mapping : target.mappings().all())
    if (mapping.path.ends_with(file)) return std::to_string(mapping.range.begin);
  return "";
}

TEST(VanishingProcess, ThatEndsWhileItIsHeld) {
  for (const bool has_walked : {false, true}) {
    TargetProgram program(TARGET_PROGRAM, {"2"});
    const SeenStack whole = whole_stack_of(program.process());
    auto target = Target::attach(program.process());
    ASSERT_TRUE(target) << target.error().text();
    if (has_walked) {
      EXPECT_EQ(seen(target->walk(target->threads().at(0))).frames, whole.frames);
    }
    const pid_t process = program.process();
    ::kill(process, SIGKILL);
    ::usleep(20'000);
    expect_beginning_of(whole, seen(target->walk(target->threads().at(0))));
    // The kernel notifies the parent only when no thread is traced any more.
    target->let_go();
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT), 0);
    const auto zombie = target->renew();
    ASSERT_FALSE(zombie);
    EXPECT_EQ(zombie.error().reason, TargetError::Reason::zombie) << zombie.error().text();
    (void)program.end();
    const auto gone = target->renew();
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().reason, TargetError::Reason::no_process) << gone.error().text();
    EXPECT_NE(gone.error().what.find(std::to_string(process)), std::string::npos) << gone.error().text();
  }
}

TEST(VanishingProcess, ThatEndsAfterItWasCopied) {
  TargetProgram program(TARGET_PROGRAM, {"0"});
  const SeenStack whole = whole_stack_of(program.process());
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  (void)program.end();
  expect_beginning_of(whole, seen(target->walk(target->threads().at(0))));
}

/// Known modules and lists belong to the earlier program.
TEST(VanishingProcess, ThatExecutesAnotherProgram) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    die_with_the_test();
    JitFrame frame;
    frame(
        [](void* from) -> void* {
          ::prctl(PR_SET_NAME, "waits");
          char byte = 0;
          (void)!::read(*static_cast<int*>(from), &byte, 1);
          ::execl("/bin/sleep", "sleep", "1000", nullptr);
          return nullptr;
        },
        &go[0]);
    ::_exit(1);
  }
  wait_for_name(child, "waits");
  auto target = Target::attach(child);
  ASSERT_TRUE(target) << target.error().text();
  const auto has_jit_frame = [&] {
    for (const SeenFrame& frame : seen(target->walk(target->threads().at(0))).frames)
      if (frame.origin == "dyn_directives") return true;
    return false;
  };
  EXPECT_TRUE(has_jit_frame());
  target->let_go();
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  wait_for_name(child, "sleep");
  ASSERT_TRUE(target->renew());
  const SeenStack stack = seen(target->walk(target->threads().at(0)));
  EXPECT_EQ(stack.why, "complete");
  EXPECT_FALSE(has_jit_frame());
  target->let_go();
  EXPECT_EQ(stack.frames, whole_stack_of(child).frames);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(go[0]), ::close(go[1]);
}

/// The number of the thread that traces a thread of this process.
int tracer_of(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("TracerPid:")) return std::stoi(line.substr(10));
  return 0;
}

/// A process with a thousand threads, the last of which executes another program as soon as the second is traced.
[[noreturn]] void execute_when_traced() {
  static std::atomic<pid_t> second{0};
  std::thread([] {
    second = static_cast<pid_t>(::syscall(SYS_gettid));
    for (;;) ::pause();
  }).detach();
  while (second == 0) ::usleep(100);
  const auto wait = [] {
    for (;;) ::pause();
  };
  for (int i = 0; i < 1000; ++i) std::thread(wait).detach();
  std::thread([] {
    ::prctl(PR_SET_NAME, "executes");
    while (tracer_of(second) == 0) continue;
    ::execl("/bin/sleep", "sleep", "1000", nullptr);
  }).detach();
  ::prctl(PR_SET_NAME, "waits");
  wait();
  std::abort();
}

/// The kernel's execve(2) waits for the tracer, and the tracer's PTRACE_SEIZE for that execve(2).
TEST(VanishingProcess, ThatExecutesWhileItIsAttachedTo) {
  for (int round = 0; round < 2; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      die_with_the_test();
      execute_when_traced();
    }
    wait_for_name(child, "waits");
    std::atomic<bool> is_over{false}, is_stuck{false};
    std::thread guard([&] {
      for (int i = 0; i < 300 && !is_over; ++i) ::usleep(100'000);
      is_stuck = !is_over;
      if (is_stuck) ::kill(child, SIGKILL);
    });
    {
      const auto target = Target::attach(child);
      is_over = true;
      guard.join();
      EXPECT_FALSE(is_stuck);
      EXPECT_TRUE(target) << target.error().text();
    }  // whatever is traced is not reported to its parent
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

/// A program that executes itself when it gets SIGUSR1: at the same addresses, and with as many registered procedures.
class ExecutesItself : public TargetProgram {
 public:
  /// Some containers forbid fixed addresses.
  static bool has_fixed_addresses() {
    static const bool has = std::system("setarch -R true 2>/dev/null") == 0;
    return has;
  }
  ExecutesItself()
      : TargetProgram(has_fixed_addresses() ? "/usr/bin/setarch" : TARGET_PROGRAM,
                      has_fixed_addresses() ? std::vector<std::string>{"-R", TARGET_PROGRAM, "0", "exec"}
                                            : std::vector<std::string>{"0", "exec"}) {}
  void execute() const {
    ::kill(process(), SIGUSR1);
    wait_for_name(process(), "elsewhere");
  }
};

/// The part of the list that was read before belongs to the earlier program.
// covers: HL07
TEST(VanishingProcess, ThatExecutesTheSameProgram) {
  const ExecutesItself program;
  auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_as_the_program_says(*target, program);
  const std::string before = mapped_at(*target, "target_program");
  target->let_go();
  program.execute();
  const SeenStack now = whole_stack_of(program.process());
  ASSERT_TRUE(target->renew());
  EXPECT_EQ(seen(target->walk(target->threads().at(0))).frames, now.frames);
  EXPECT_EQ(now.why, "complete");
  EXPECT_EQ(mapped_at(*target, "target_program") == before, ExecutesItself::has_fixed_addresses());
}

/// The memory at the copied addresses is another program's then. None of it is read, even if it looks the same.
TEST(VanishingProcess, ThatExecutesTheSameProgramAfterItWasCopied) {
  const ExecutesItself program;
  const SeenStack whole = whole_stack_of(program.process());
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  program.execute();
  const SeenStack part = seen(target->walk(target->threads().at(0)));
  expect_beginning_of(whole, part);
  EXPECT_LT(part.frames.size(), whole.frames.size());
  EXPECT_NE(part.why.find("cannot be read"), std::string::npos) << part.why;
  ASSERT_TRUE(target->renew());
  const SeenStack now = seen(target->walk(target->threads().at(0)));
  EXPECT_EQ(now.why, "complete");
  target->let_go();
  EXPECT_EQ(now.frames, whole_stack_of(program.process()).frames);
}

/// Modules that were found while the process ran may have changed when it is stopped.
TEST(VanishingProcess, ThatLoadsAndUnloadsLibrariesAllTheTime) {
  const pid_t child = ::fork();
  if (child == 0) {
    die_with_the_test();
    std::thread([] {
      for (;;)
        for (const char* library : {ROOM_SMALL, ROOM_LARGE})
          if (void* const loaded = ::dlopen(library, RTLD_NOW)) ::dlclose(loaded);
    }).detach();
    JitFrame frame;
    frame(
        [](void*) -> void* {
          ::prctl(PR_SET_NAME, "waits");
          for (;;) ::pause();
        },
        nullptr);
    ::_exit(1);
  }
  wait_for_name(child, "waits");
  const SeenStack whole = whole_stack_of(child);
  EXPECT_EQ(whole.why, "complete");
  bool has_jit_frame = false;
  for (const SeenFrame& frame : whole.frames) has_jit_frame = has_jit_frame || frame.origin == "dyn_directives";
  EXPECT_TRUE(has_jit_frame);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(waits_in(child, {SYS_pause})) << "which one that was let go has before itself once more";
    const auto hold = round % 2 == 0 ? Target::Hold::while_attached : Target::Hold::to_copy;
    const auto target = Target::attach(child, hold);
    ASSERT_TRUE(target) << target.error().text();
    ASSERT_EQ(seen(target->walk(target->threads().at(0))).frames, whole.frames) << round;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// Takes a library's memory from under a thread that has called it, and does not return.
class TakesItsLibrary {
 public:
  void run(int go) {
    void* const library = ::dlopen(ROOM_SMALL, RTLD_NOW);
    const auto call = reinterpret_cast<void (*)(void (*)())>(library ? ::dlsym(library, "room_call") : nullptr);
    Dl_info info{};
    link_map* map = nullptr;
    if (!call || ::dladdr1(reinterpret_cast<void*>(call), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0)
      ::_exit(1);
    static std::atomic<bool> is_in_it{false};
    std::thread([call] {
      call([] {
        is_in_it = true;
        for (;;) ::pause();
      });
    }).detach();
    while (!is_in_it) ::usleep(100);
    ::prctl(PR_SET_NAME, "waits");
    char byte = 0;
    (void)!::read(go, &byte, 1);
    if (::munmap(info.dli_fbase, 5 * k_page) != 0) ::_exit(1);
    ::prctl(PR_SET_NAME, "taken");
    for (;;) ::pause();
  }

 private:
  static constexpr std::size_t k_page = 4096;
};

TEST(VanishingProcess, ThatUnmapsItsCodeAfterItWasCopied) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    die_with_the_test();
    TakesItsLibrary().run(go[0]);
  }
  wait_for_name(child, "waits");
  auto before = Target::attach(child);
  ASSERT_TRUE(before) << before.error().text();
  ASSERT_EQ(before->threads().size(), 2u);
  const SeenStack whole = seen(before->walk(before->threads()[1]));
  EXPECT_EQ(whole.why, "complete");
  before->let_go();
  auto target = Target::attach(child, Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  wait_for_name(child, "taken");
  expect_beginning_of(whole, seen(target->walk(target->threads()[1])));
  // The earlier knowledge of the library is kept; nothing is mapped there now.
  EXPECT_EQ(seen(before->walk(before->threads()[1])).frames, whole.frames);
  ASSERT_TRUE(target->renew());
  const SeenStack now = seen(target->walk(target->threads()[1]));
  expect_beginning_of(whole, now);
  EXPECT_LT(now.frames.size(), whole.frames.size()) << "its library is gone";
  target->let_go();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(go[0]), ::close(go[1]);
}

}  // namespace
}  // namespace jitunwind::test
