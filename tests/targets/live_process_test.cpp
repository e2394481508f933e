// A live process as a target: walks from outside see what the process reports of its own stacks, for every kind of
// program, and the process continues undisturbed.
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include "jitunwind/unwind_core/memory/process.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"
#include "tests/support/jit_frame.h"
#include "tests/targets/saying_child.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

class EveryProgram : public testing::TestWithParam<const char*> {};

// covers: HL07 DY50
TEST_P(EveryProgram, ShowsTheStacksThatItSeesItself) {
  const TargetProgram program(GetParam());
  auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_as_the_program_says(*target, program);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryProgram, testing::Values(TARGET_PROGRAMS));

/// Each copy of the library in a process has a list. All lists are asked, although neither copy knows of the other.
// covers: DY51
TEST(LiveProcess, WithTwoCopiesOfTheLibrary) {
  const TargetProgram program(TARGET_PROGRAM, {"0", TARGET_PLUGIN});
  auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  const SeenStack stack = seen(target->walk(target->threads().at(0)));
  EXPECT_EQ(stack.why, "complete");
  std::vector<std::string> names;
  // A separate function calls the frame if nothing is inlined.
  for (const SeenFrame& frame : callers_of_stand_still(stack))
    if (frame.name.find("operator()") == std::string::npos) names.push_back(frame.name);
  names.resize(6);
  EXPECT_EQ(names,
            (std::vector<std::string>{"jit_frame", "plugin_inner", "plugin_call", "middle", "jit_frame", "main"}));
}

TEST(LiveProcess, ThreadsHaveNamesAndRegisters) {
  const TargetProgram program(TARGET_PROGRAM);
  auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  ASSERT_EQ(target->threads().size(), 3u);
  EXPECT_EQ(target->threads()[0].id, program.process());
  EXPECT_EQ(target->threads()[0].name, "target_program");
  EXPECT_EQ(target->threads()[1].name, "worker 0");
  EXPECT_EQ(target->threads()[2].name, "worker 1");
  for (const TargetThread& thread : target->threads()) {
    EXPECT_TRUE(thread.is_stopped);
    EXPECT_EQ(thread.signal, 0) << "the stop is nobody's signal";
    const auto registers = target->registers(thread);
    ASSERT_TRUE(registers);
    // The kernel reports the same for a thread that waits in a system call: proc_pid_syscall(5), the last two words.
    std::ifstream file("/proc/" + std::to_string(program.process()) + "/task/" + std::to_string(thread.id) +
                       "/syscall");
    std::string word, sp, pc;
    while (file >> word) sp = std::exchange(pc, word);
    if (pc == "running") continue;
    const Arch& arch = target->arch();
    EXPECT_EQ(registers->value(arch.column(arch.pc)), std::stoull(pc, nullptr, 16));
    EXPECT_EQ(registers->value(arch.column(arch.sp)), std::stoull(sp, nullptr, 16));
  }
}

/// Lists are looked for in the symbols of each process's program while the process is stopped. One object alone must
/// count as the program, although libc can be executed, too.
TEST(LiveProcess, HasOneProgram) {
  const Mappings mappings = Mappings::parse(text_of_file("/proc/self/maps"));
  const ProcessMemory memory(::getpid());
  const TargetFiles files;
  const MappedModules modules(memory, *host_arch(), mappings, files);
  std::vector<std::string> programs;
  std::size_t objects = 0;
  modules.for_each_object([&](MappedObject& object) {
    ++objects;
    if (object.is_program()) programs.push_back(object.first().path.substr(object.first().path.rfind('/') + 1));
  });
  EXPECT_EQ(programs, std::vector<std::string>{"live_process_test"});
  EXPECT_GE(objects, 4u);
}

TEST(LiveProcess, GoesOnWhenItIsLetGo) {
  const TargetProgram program(TARGET_PROGRAM);
  {
    auto target = Target::attach(program.process());
    ASSERT_TRUE(target) << target.error().text();
    EXPECT_EQ(state_of(program.process()), 't');
  }
  EXPECT_EQ(state_soon(program.process(), 'S'), 'S');
  auto again = Target::attach(program.process());
  ASSERT_TRUE(again) << again.error().text();
  expect_as_the_program_says(*again, program);
}

/// A process that counts a signal's arrivals while it is stopped and let go over and over.
TEST(LiveProcess, LosesNoSignal) {
  const SayingChild child([](const SayingChild& self) {
    static volatile int arrived = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { arrived = arrived + 1; };
    ::sigaction(SIGRTMIN, &action, nullptr);
    self.say('r');
    while (arrived != 2000) ::usleep(100);
    self.say('d');
  });
  ASSERT_EQ(child.heard<char>(), 'r');
  std::thread sender([&] {
    for (int i = 0; i < 2000; ++i) {
      while (::sigqueue(child.process(), SIGRTMIN, {}) != 0) ::usleep(100);
      if (i % 16 == 0) ::usleep(100);
    }
  });
  for (int i = 0; i < 200; ++i) {
    auto target = Target::attach(child.process());
    EXPECT_TRUE(target);
  }
  sender.join();
  EXPECT_TRUE(child.has_said_within(30'000)) << "of 2000 signals some have not arrived";
}

/// Returns the kernel's list of threads and their states, without threads that have ended. The kernel lists those until
/// their process notices.
std::map<pid_t, char> states_of_threads(pid_t process) {
  std::map<pid_t, char> states;
  for (const pid_t thread : ProcessFolder(process).threads())
    if (const char state = state_of(thread); state != '?' && state != 'Z' && state != 'X') states[thread] = state;
  return states;
}

/// Threads that begin while others are being stopped are stopped, too; threads that end meanwhile are left out.
TEST(LiveProcess, HasAllThreadsOfOneThatMakesThemAllTheTime) {
  const SayingChild child([](const SayingChild& self) {
    const auto make_threads = [] {
      for (;;) std::thread([] { ::usleep(100); }).join();
    };
    std::vector<std::thread> makers;
    for (int i = 0; i < 4; ++i) makers.emplace_back(make_threads);
    self.say('r');
    for (;;) ::pause();
  });
  ASSERT_EQ(child.heard<char>(), 'r');
  for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
    const auto target = Target::attach(child.process());
    ASSERT_TRUE(target) << target.error().text();
    auto alive = states_of_threads(child.process());
    bool all_stand = true;
    for (const TargetThread& thread : target->threads()) {
      all_stand = all_stand && thread.is_stopped;
      EXPECT_EQ(alive.erase(thread.id), 1u) << "it has ended";
    }
    if (all_stand) {
      EXPECT_EQ(alive.size(), 0u) << "they do not stand still";
    }
  }
}

/// A process that SIGSTOP has stopped remains stopped.
TEST(LiveProcess, StaysStoppedIfItWas) {
  const TargetProgram program(TARGET_PROGRAM);
  ::kill(program.process(), SIGSTOP);
  ASSERT_EQ(state_soon(program.process(), 'T'), 'T');
  {
    auto target = Target::attach(program.process());
    ASSERT_TRUE(target) << target.error().text();
    expect_as_the_program_says(*target, program);
  }
  ::usleep(10'000);
  EXPECT_EQ(state_of(program.process()), 'T');
  ::kill(program.process(), SIGCONT);
  EXPECT_EQ(state_soon(program.process(), 'S'), 'S');
}

TEST(LiveProcess, IsWalkedWhileItRunsAfterItWasCopied) {
  const TargetProgram program(TARGET_PROGRAM);
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  EXPECT_EQ(state_soon(program.process(), 'S'), 'S');
  expect_as_the_program_says(*target, program);
}

/// The caller traces and stops the process itself; the target only reads.
TEST(LiveProcess, OfAnothersTracing) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    JitFrame frame;
    frame([](void*) -> void* { return ::raise(SIGSTOP) == 0 ? nullptr : nullptr; }, nullptr);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  {
    auto target = Target::of_traced(child);
    ASSERT_TRUE(target) << target.error().text();
    const SeenStack stack = seen(target->walk(target->threads().at(0)));
    EXPECT_EQ(stack.why, "complete");
    bool has_jit_frame = false;
    for (const SeenFrame& frame : stack.frames)
      has_jit_frame = has_jit_frame || (frame.name == "jit_frame" && frame.origin == "dyn_directives");
    EXPECT_TRUE(has_jit_frame);
  }
  EXPECT_EQ(state_of(child), 't');
  ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
}

// Processes that cannot be attached to, and the errors.

TEST(Attaching, ToNoProcess) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  for (const pid_t process : {gone, pid_t{-1}, pid_t{0}}) {
    const auto target = Target::attach(process);
    ASSERT_FALSE(target);
    EXPECT_EQ(target.error().reason, TargetError::Reason::no_process) << target.error().text();
  }
}

TEST(Attaching, ToAZombie) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(state_soon(child, 'Z'), 'Z');
  const auto target = Target::attach(child);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().reason, TargetError::Reason::zombie) << target.error().text();
  ::waitpid(child, nullptr, 0);
}

/// The first thread is a zombie then, and the kernel shows no memory for it.
TEST(Attaching, ToOneWhoseFirstThreadHasEnded) {
  const SayingChild made([](const SayingChild& self) {
    std::thread([&] {
      self.say(static_cast<pid_t>(::syscall(SYS_gettid)));
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);
  });
  const pid_t child = made.process(), other = made.heard<pid_t>();
  ASSERT_EQ(state_soon(child, 'Z'), 'Z');
  ASSERT_EQ(state_soon(other, 'S'), 'S') << "it stands in pause()";
  auto target = Target::attach(child);
  ASSERT_TRUE(target) << target.error().text();
  EXPECT_EQ(target->process(), child);
  ASSERT_EQ(target->threads().size(), 1u);
  EXPECT_NE(target->threads()[0].id, child);
  const SeenStack stack = seen(target->walk(target->threads()[0]));
  EXPECT_EQ(stack.why, "complete");
  EXPECT_GE(stack.frames.size(), 4u);
  target->let_go();
  ASSERT_TRUE(target->renew());
  EXPECT_EQ(seen(target->walk(target->threads().at(0))).frames, stack.frames);
}

/// The kernel frees a process's memory, however long that takes, before the process is a zombie.
TEST(Attaching, ToOneThatIsAboutToEnd) {
  constexpr std::size_t k_size = std::size_t{256} << 20;
  const SayingChild made([](const SayingChild& self) {
    void* const much =
        ::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    self.say(much == MAP_FAILED ? 'n' : 'y');
  });
  const pid_t child = made.process();
  ASSERT_EQ(made.heard<char>(), 'y');
  ::kill(child, SIGKILL);
  do {
    const auto target = Target::attach(child);
    ASSERT_FALSE(target);
    ASSERT_EQ(target.error().reason, TargetError::Reason::zombie) << target.error().text();
  } while (state_of(child) != 'Z');
}

TEST(Attaching, ToItself) {
  const auto target = Target::attach(::getpid());
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().reason, TargetError::Reason::this_process) << target.error().text();
}

/// Another process that traces a thread.
class Tracer {
 public:
  explicit Tracer(pid_t thread) {
    int go[2];
    EXPECT_EQ(::pipe(go), 0);
    process_ = ::fork();
    if (process_ == 0) {
      const bool traces = ::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0;
      (void)!::write(go[1], traces ? "y" : "n", 1);
      for (;;) ::pause();
    }
    char traces = 0;
    EXPECT_EQ(::read(go[0], &traces, 1), 1);
    EXPECT_EQ(traces, 'y');
    ::close(go[0]), ::close(go[1]);
  }
  ~Tracer() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
};

/// It suffices that one thread of the process is traced, as while a debugger attaches.
TEST(Attaching, ToOneThatIsTraced) {
  const TargetProgram program(TARGET_PROGRAM);
  ASSERT_GE(program.stacks().size(), 2u);
  for (const auto& [thread, stack] : program.stacks()) {
    const Tracer tracer(thread);
    const auto target = Target::attach(program.process());
    ASSERT_FALSE(target);
    EXPECT_EQ(target.error().reason, TargetError::Reason::traced_by_another) << target.error().text();
    EXPECT_NE(target.error().what.find(std::to_string(tracer.process())), std::string::npos) << target.error().what;
  }
  EXPECT_TRUE(Target::attach(program.process()));
}

/// Threads that were attached before the traced one is met continue at once.
TEST(Attaching, ToOneThatIsTracedLetsItRun) {
  const TargetProgram program(TARGET_PROGRAM);
  auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  target->let_go();
  {
    const Tracer tracer(program.stacks().rbegin()->first);
    const auto renewed = target->renew();
    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error().reason, TargetError::Reason::traced_by_another) << renewed.error().text();
    EXPECT_EQ(state_soon(program.process(), 'S'), 'S');
  }
  EXPECT_TRUE(target->renew());
}

/// The user nobody may not attach to another user's process, and the error names the owner.
TEST(Attaching, ToAnotherUsers) {
  if (::geteuid() != 0) {
    const auto target = Target::attach(1);
    ASSERT_FALSE(target);
    EXPECT_EQ(target.error().reason, TargetError::Reason::no_permission) << target.error().text();
    return;
  }
  const TargetProgram program(TARGET_PROGRAM);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t k_nobody = 65534;
    if (::setresgid(k_nobody, k_nobody, k_nobody) != 0 || ::setresuid(k_nobody, k_nobody, k_nobody) != 0) ::_exit(2);
    const auto target = Target::attach(program.process());
    const bool is_right = !target && target.error().reason == TargetError::Reason::no_permission &&
                          target.error().text().find("sudo") != std::string::npos;
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// Becomes root that may trace nothing: without its capabilities, or in a user namespace of its own.
bool become_powerless_root() {
  const uid_t user = ::geteuid();
  if (user == 0) {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    const std::array<__user_cap_data_struct, 2> none{};
    return ::syscall(SYS_capset, &head, none.data()) == 0;
  }
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1" << std::flush;
  return ::geteuid() == 0;
}

/// The error does not advise root to become root.
TEST(Attaching, ByRootThatMayNot) {
  const SayingChild hidden([](const SayingChild& self) {
    ::prctl(PR_SET_DUMPABLE, 0);
    self.say('r');
  });
  ASSERT_EQ(hidden.heard<char>(), 'r');
  const pid_t child = ::fork();
  if (child == 0) {
    if (!become_powerless_root()) ::_exit(2);
    const auto target = Target::attach(hidden.process());
    const std::string text = target ? "attached" : target.error().text();
    std::fprintf(stderr, "%s\n", text.c_str());
    const bool is_right = !target && target.error().reason == TargetError::Reason::no_permission &&
                          text.find("CAP_SYS_PTRACE") != std::string::npos &&
                          text.find("oot may trace it") == std::string::npos &&
                          text.find("as root") == std::string::npos;
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

#ifdef HAS_MOUNT_NAMESPACES
/// Its files are in a mount namespace of its own, where nobody else has anything at these paths.
// covers: HL07
TEST(LiveProcess, InAnotherMountNamespace) {
  const std::string users = ::geteuid() == 0 ? "" : " --user --map-root-user";
  const TargetProgram program("/bin/sh", {"-c", "exec unshare" + users +
                                                    " --mount sh -c 'mount -t tmpfs none /mnt && cp " TARGET_PROGRAM
                                                    " /mnt/of_the_namespace && exec /mnt/of_the_namespace 2'"});
  ASSERT_EQ(program.stacks().size(), 3u) << "unshare(1) or mount(8) failed";
  ASSERT_NE(::access("/mnt/of_the_namespace", F_OK), 0);
  const auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_as_the_program_says(*target, program);
  const SeenStack stack = seen(target->walk(target->threads().at(0)));
  std::vector<std::string> names;
  for (const SeenFrame& frame : stack.frames) names.push_back(frame.name);
  EXPECT_NE(std::ranges::find(names, "main"), names.end()) << "main is in no table but that of its file";
}
#endif

/// Two targets in two threads: nothing is shared.
// covers: SF07
TEST(LiveProcess, TwoThreadsLookAtTwoProcesses) {
  const TargetProgram first(TARGET_PROGRAM), second(TARGET_PROGRAM);
  const auto look = [](const TargetProgram& program) {
    for (int i = 0; i < 20; ++i) {
      auto target = Target::attach(program.process());
      ASSERT_TRUE(target) << target.error().text();
      expect_as_the_program_says(*target, program);
    }
  };
  std::thread other([&] { look(second); });
  look(first);
  other.join();
}

}  // namespace
}  // namespace jitunwind::test
