// fork() in a signal handler that interrupted the listening library: POSIX lets handlers fork. Both processes continue.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"
#include "tests/listen/told_section.h"
#ifdef FORK_AT_EVERY
#include "tests/registry/every_instruction.h"
#endif

namespace jitunwind::test {
namespace {

constexpr AddrRange k_named{k_code + 0x1000, k_code + 0x1010};

/// Returns 0 if the child exited with 0 in time.
int status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

#ifdef FORK_AT_EVERY
struct Scene {
  std::size_t instructions = 0;
  std::size_t forks = 0;
  bool is_child = false;
  int wrong = 0;  // the first status that was not 0
};

/// The alarm kills a child that waits for a thread which the child does not have.
void fork_here(void* of) {
  Scene& scene = *static_cast<Scene*>(of);
  if (scene.wrong != 0) return registry_test::EveryInstruction::stop();
  if (scene.instructions++ % FORK_AT_EVERY != 0) return;
  ++scene.forks;
  const pid_t child = ::fork();
  if (child != 0) {
    scene.wrong = status_of(child);
    return;
  }
  ::alarm(20);
  scene.is_child = true;
  registry_test::EveryInstruction::stop();
}

bool tells_and_names() {
  const auto frames = section_of(2, k_code + 0x2000);
  const RegisteredCode code;
  __register_frame(at(frames->placed().begin));
  say_name(Dialect::itt, {k_code + 0x2000, k_code + 0x2010}, "child's");
  const bool known = code.row_at(k_code + 0x2004) == k_row && code.name_at(k_code + 0x2004) == "child's";
  __deregister_frame(at(frames->placed().begin));
  return known && code.row_at(k_code + 0x2004) == "no row";
}

template <class Operation>
void run(const char* name, Operation operation) {
  ::alarm(120);
  Scene scene;
  registry_test::EveryInstruction every;
  const std::size_t instructions = every.run(fork_here, &scene, operation);
  if (scene.is_child) ::_exit(tells_and_names() ? 0 : 1);
  ::alarm(0);
  EXPECT_EQ(scene.wrong, 0) << name << ", fork " << scene.forks;
  EXPECT_GT(instructions, 300u);
  std::printf("%-24s %6zu forks in %6zu instructions\n", name, scene.forks, instructions);
}

// covers: LS12
TEST(ListenForks, MayComeFromAHandlerAtAnyInstruction) {
  ASSERT_TRUE(tells_and_names());  // what is bound or found once
  const auto lone = section_of(1), many = section_of(3, k_code + 0x100);
  run("tell of one", [&] { __register_frame(at(lone->placed().begin)); });
  run("tell of many", [&] { __register_frame(at(many->placed().begin)); });
  run("name", [] { say_name(Dialect::itt, k_named, "named"); });
  run("name what is told", [] { say_name(Dialect::itt, {k_code, k_code + 16}, "joined"); });
  run("forget", [] { say_gone(Dialect::itt, k_named); });
  run("take one back", [&] { __deregister_frame(at(lone->placed().begin)); });
  run("take many back", [&] { __deregister_frame(at(many->placed().begin)); });
  EXPECT_EQ(registered(), 0u);
}
#endif

/// Called within the registry, where a signal handler may run.
class Interrupted final : public RegistryObserver {
 public:
  std::atomic<bool> is_inside{false}, may_go_on{false};

 private:
  void registered(std::span<const RegisteredProcedure>) noexcept override {
    if (is_inside.exchange(true)) return;
    while (!may_go_on) ::usleep(1000);
    ::raise(SIGUSR1);
  }
  void cancelled(std::span<unw_dyn_info_t* const>) noexcept override {}
  void retired() noexcept override {}
};

std::atomic<int> child_status{-1};

/// The child loses names that another thread was changing; it knows none and takes new ones.
void fork_in_handler(int) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const bool can_ask = !heard_line(k_named.begin) && names_lock.try_lock();
    ::_exit(can_ask ? 0 : 1);
  }
  child_status = status_of(child);
}

// covers: LS12
TEST(ListenForks, WaitForNobodyWhoWaitsForThem) {
  say_name(Dialect::itt, k_named, "the first, which prepares for forks");
  say_gone(Dialect::itt, k_named);
  Interrupted observer;
  ASSERT_TRUE(attach_observer(observer));
  ::signal(SIGUSR1, fork_in_handler);
  const auto frames = section_of(1);
  std::thread interrupted([&] { __register_frame(at(frames->placed().begin)); });
  while (!observer.is_inside) ::usleep(1000);
  std::thread names([] { say_name(Dialect::itt, k_named, "named"); });
  for (bool taken = false; !taken; ::usleep(1000)) {
    taken = !names_lock.try_lock();
    if (!taken) names_lock.unlock();
  }
  ::alarm(60);
  observer.may_go_on = true;
  interrupted.join();
  names.join();
  ::alarm(0);
  ::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(child_status, 0);
  EXPECT_TRUE(detach_observer(observer));
  EXPECT_EQ(RegisteredCode().name_at(k_named.begin), "named");
  say_gone(Dialect::itt, k_named);
  __deregister_frame(at(frames->placed().begin));
  EXPECT_EQ(registered(), 0u);
}

}  // namespace
}  // namespace jitunwind::test
