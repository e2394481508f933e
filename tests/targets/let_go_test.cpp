// A process that was attached to continues, whatever it or its tracer does meanwhile: threads that do not stop, pages
// that it serves itself, a timeout.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/targets/threads/traced_threads_internal.h"
#include "tests/targets/saying_child.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

pid_t tracer_of(pid_t process) { return ProcessFolder(process).status().value_or(ProcessStatus{}).tracer; }

/// The child's first thread waits for its own child of vfork(2), which ends on request; neither signals nor ptrace wake
/// it. The other thread waits, too.
class Vforking {
 public:
  Vforking()
      : go_(made_pipe()), child_([this](const SayingChild& self) {
          std::thread([&self] {
            self.say('r');
            for (;;) ::pause();
          }).detach();
          if (const pid_t child = ::vfork(); child == 0) {
            char byte;
            (void)!::read(go_[0], &byte, 1);
            ::_exit(0);
          }
          self.say('d');
        }) {
    EXPECT_EQ(child_.heard<char>(), 'r');
    EXPECT_EQ(state_soon(process(), 'D'), 'D');
  }
  ~Vforking() { ::close(go_[0]), ::close(go_[1]); }
  Vforking(const Vforking&) = delete;
  Vforking& operator=(const Vforking&) = delete;

  pid_t process() const { return child_.process(); }
  /// Returns whether the first thread continues within a second after its child has ended.
  bool goes_on() const {
    EXPECT_EQ(::write(go_[1], "g", 1), 1);
    return child_.has_said_within(1000) && state_soon(process(), 'S') == 'S';
  }

 private:
  static std::array<int, 2> made_pipe() {
    std::array<int, 2> made;
    if (::pipe(made.data()) != 0) std::abort();
    return made;
  }

  std::array<int, 2> go_;
  SayingChild child_;
};

TEST(LetGo, AThreadThatDoesNotStopInTime) {
  for (const auto hold : {Target::Hold::to_copy, Target::Hold::while_attached}) {
    const Vforking child;
    {
      const auto target = Target::attach(child.process(), hold);
      ASSERT_TRUE(target) << target.error().text();
      ASSERT_EQ(target->threads().size(), 2u);
      const TargetThread &waits = target->threads()[0], &other = target->threads()[1];
      EXPECT_FALSE(waits.is_stopped);
      EXPECT_TRUE(other.is_stopped);
      EXPECT_EQ(seen(target->walk(other)).why, "complete");
      const auto registers = target->registers(waits);
      ASSERT_FALSE(registers);
      EXPECT_NE(registers.error().text().find("did not stop in time"), std::string::npos) << registers.error().text();
      EXPECT_LT(target->stopped_nanoseconds(), 2'000'000'000u);
    }
    EXPECT_EQ(tracer_of(child.process()), 0);
    EXPECT_TRUE(child.goes_on());
    EXPECT_TRUE(Target::attach(child.process()));
  }
}

/// The thread stops after it was given up, and stands until it is let go.
TEST(LetGo, AThreadThatStopsTooLate) {
  const Vforking child;
  {
    const auto target = Target::attach(child.process());
    ASSERT_TRUE(target) << target.error().text();
    EXPECT_FALSE(child.goes_on());
    EXPECT_EQ(state_soon(child.process(), 't'), 't');
  }
  EXPECT_EQ(tracer_of(child.process()), 0);
  EXPECT_EQ(state_soon(child.process(), 'S'), 'S');
}

/// Any thread may end a Target; here it is not the one that attached.
TEST(LetGo, ByAnotherThread) {
  const TargetProgram program(TARGET_PROGRAM);
  std::optional<Target> target;
  std::thread([&] {
    if (auto made = Target::attach(program.process())) target.emplace(std::move(*made));
  }).join();
  ASSERT_TRUE(target);
  EXPECT_EQ(state_of(program.process()), 't');
  expect_as_the_program_says(*target, program);
  target.reset();
  EXPECT_EQ(state_soon(program.process(), 'S'), 'S');
}

/// A child of the tracer has a copy of the Target, and traces nothing.
TEST(LetGo, NotByAChildOfTheTracer) {
  const TargetProgram program(TARGET_PROGRAM);
  std::optional<Target> target;
  if (auto made = Target::attach(program.process())) target.emplace(std::move(*made));
  ASSERT_TRUE(target);
  const pid_t child = ::fork();
  if (child == 0) {
    target.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(state_of(program.process()), 't');
  target.reset();
  EXPECT_EQ(state_soon(program.process(), 'S'), 'S');
}

/// The time is over, for example, if a page of the process is served by a process that is stopped itself and never
/// delivers it.
TEST(LetGo, WhenTheTimeIsOver) {
  const TargetProgram program(TARGET_PROGRAM);
  const ProcessFolder folder(program.process());
  TracedThreads traced(folder);
  ASSERT_EQ(traced.stop_all(50'000'000), 0);
  EXPECT_EQ(traced.all().size(), 3u);
  EXPECT_EQ(state_soon(program.process(), 'S'), 'S');
  EXPECT_EQ(tracer_of(program.process()), 0);
  EXPECT_FALSE(traced.let_go());
  ASSERT_EQ(traced.stop_all(10'000'000'000), 0);
  EXPECT_TRUE(traced.let_go());
}

TEST(LetGo, BeforeItsStacksWereCopied) {
  const TargetProgram program(TARGET_PROGRAM);
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  ASSERT_TRUE(target->renew());
  EXPECT_EQ(state_of(program.process()), 't');
  std::this_thread::sleep_for(std::chrono::milliseconds(10'500));
  EXPECT_EQ(state_of(program.process()), 'S');
  target->let_go();
  const auto registers = target->registers(target->threads().at(0));
  ASSERT_FALSE(registers);
  EXPECT_NE(registers.error().text().find("copied in time"), std::string::npos) << registers.error().text();
  ASSERT_TRUE(target->renew());
  expect_as_the_program_says(*target, program);
}

/// userfaultfd(2): a page appears when a thread of the process has provided its contents. Unprivileged users get no
/// descriptor for which the kernel would also wait.
int pages_to_serve(void* at, std::size_t size) {
  long file = ::syscall(SYS_userfaultfd, O_CLOEXEC);
  if (file < 0) file = ::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  uffdio_api api{UFFD_API, 0, 0};
  uffdio_register pages{};
  pages.range = {reinterpret_cast<std::uintptr_t>(at), size};
  pages.mode = UFFDIO_REGISTER_MODE_MISSING;
  const int number = static_cast<int>(file);
  return ::ioctl(number, UFFDIO_API, &api) == 0 && ::ioctl(number, UFFDIO_REGISTER, &pages) == 0 ? number : -1;
}

/// The thread that serves the page stands still, too, so a read of the page would wait for ever.
TEST(LetGo, WithAStackThatItServesItself) {
  const SayingChild child([](const SayingChild& self) {
    constexpr std::size_t k_size = 65536;
    auto* const stack =
        static_cast<std::byte*>(::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const int pages = pages_to_serve(stack, k_size);
    self.say(pages >= 0 ? 'r' : 'n');
    const auto words = reinterpret_cast<std::uintptr_t>(stack + k_size / 2);
#ifdef __x86_64__
    asm volatile("mov %0, %%rsp\n mov %0, %%rbp\n1: pause\n jmp 1b" ::"r"(words));
#else
    asm volatile("mov sp, %0\n mov x29, %0\n1: b 1b" ::"r"(words));
#endif
  });
  ASSERT_EQ(child.heard<char>(), 'r') << "this kernel has no userfaultfd";
  ::usleep(10'000);
  ::alarm(60);
  for (const auto hold : {Target::Hold::to_copy, Target::Hold::while_attached}) {
    const auto target = Target::attach(child.process(), hold);
    ASSERT_TRUE(target) << target.error().text();
    const SeenStack stack = seen(target->walk(target->threads().at(0)));
    EXPECT_EQ(stack.frames.size(), 1u);
    EXPECT_NE(stack.why.find("cannot be read"), std::string::npos) << stack.why;
  }
  ::alarm(0);
}

}  // namespace
}  // namespace jitunwind::test
