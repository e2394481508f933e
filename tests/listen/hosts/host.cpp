// A program that does not know this library: everything that it does to itself must also work under the listening
// library. If HAS_LIST is defined it has a list of GDB's, like an engine, and is followed.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/listen/gdb_list.h"

#ifdef HAS_LIST
extern "C" [[gnu::visibility("default")]] jitunwind::test::ListDescriptor __jit_debug_descriptor;
jitunwind::test::ListDescriptor __jit_debug_descriptor;
#endif

namespace {

/// Returns the status of a child that runs `action`.
template <class Action>
int status_of_child(Action action) {
  const pid_t child = fork();
  if (child == 0) _exit(action());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int count_threads() {
  usleep(50'000);  // five looks
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::printf("%td threads\n", std::distance(begin(all), end(all))) < 0;
}

/// Only a process with one thread may do this.
int unshare_users() { return std::printf("%d\n", unshare(CLONE_NEWUSER) == 0 ? 0 : errno) < 0; }

/// Files that the program opens must stay its own. Other threads may open files for a moment, at the lowest free
/// numbers.
int close_all() {
  constexpr int k_first = 100, k_files = 10;
  for (int i = 3; i < 1024; ++i) close(i);
  for (int i = 0; i < k_files; ++i) {
    usleep(10'000);
    const int opened = open("/dev/null", O_RDONLY);
    std::printf("%d\n", fcntl(opened, F_DUPFD, k_first));
    close(opened);
  }
  for (int i = k_first; i < k_first + k_files; ++i) {
    struct stat status {};
    std::printf("%d\n", fstat(i, &status) == 0 && S_ISCHR(status.st_mode));
  }
  return 0;
}

int have_small_stacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16384);
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    if (pthread_create(
            &thread, &attributes, [](void* of) { return of; }, nullptr) != 0)
      return 1;
    pthread_join(thread, nullptr);
  }
  return 0;
}

int run_others() {
  for (int i = 0; i < 50; ++i) {
    char name[] = "true";
    char* arguments[] = {name, nullptr};
    int status = -1;
    pid_t child = vfork();
    if (child == 0) {
      execvp("true", arguments);
      _exit(9);
    }
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    if (posix_spawnp(&child, "true", nullptr, nullptr, arguments, environ) != 0) return 2;
    if (waitpid(child, &status, 0) != child || status != 0) return 3;
  }
  return 0;
}

int fork_often() {
  for (int i = 0; i < 200; ++i) {
    const int wanted = i % 7;
    const auto in_child = [&] {
      if (i % 20 == 0) usleep(30'000);
      return wanted;
    };
    if (WEXITSTATUS(status_of_child(in_child)) != wanted) return 1;
  }
  return 0;
}

/// Forks children that end about when the library would begin to follow them.
int end_early() {
  for (unsigned i = 0; i < 60; ++i) {
    const auto in_child = [&] {
      usleep(9'000 + i * 50);
      std::exit(0);
      return 1;
    };
    if (status_of_child(in_child) != 0) return 1;
  }
  return 0;
}

int wait_for_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  kill(getpid(), SIGTERM);
  usleep(50'000);
  int signal = 0;
  sigwait(&signals, &signal);
  return signal != SIGTERM;
}

int have_no_processes_more() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_NPROC, &none);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, nullptr, 0) != child;
}

int have_few_system_calls() {
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  (void)!write(STDOUT_FILENO, "in\n", 3);
  return static_cast<int>(syscall(SYS_exit, 0));  // of this thread
}

void* wait_long(void*) {
  usleep(100'000);
  std::puts("the last one");
  return nullptr;
}

/// The process ends with its last thread, by exit().
int end_first_thread() {
  usleep(50'000);
  pthread_exit(nullptr);
}

int end_before_another() {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, wait_long, nullptr) != 0) return 1;
  return end_first_thread();
}

/// The C library's syscall, with as many arguments as there are, and with errors.
int call_kernel() {
  const long page = syscall(SYS_mmap, nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 4096);
  std::printf("%d\n", syscall(SYS_munmap, page, 4096) == 0);
  std::printf("%d\n", syscall(SYS_close, -1) == -1 ? errno : 0);
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) syscall(SYS_exit_group, 5);
  int status = 0;
  std::printf("%d\n", waitpid(static_cast<pid_t>(child), &status, 0) == child ? WEXITSTATUS(status) : -1);
  return static_cast<int>(syscall(SYS_exit_group, 3));
}

/// A section that describes nothing: a CIE (version 1, data alignment -8, return address 16), and an end.
int tell_libgcc() {
  alignas(8) static const unsigned char section[] = {16, 0,    0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78,
                                                     16, 0x0c, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0};
  const auto tell = reinterpret_cast<void (*)(const void*)>(dlsym(RTLD_DEFAULT, "__register_frame"));
  if (tell == nullptr) return 1;
  tell(section);
  return count_threads();
}

struct Deed {
  const char* name;
  int (*run)();
};
constexpr Deed k_deeds[] = {{"count_threads", count_threads},
                            {"unshare_users", unshare_users},
                            {"close_all", close_all},
                            {"have_small_stacks", have_small_stacks},
                            {"run_others", run_others},
                            {"fork_often", fork_often},
                            {"end_early", end_early},
                            {"wait_for_signal", wait_for_signal},
                            {"have_no_processes_more", have_no_processes_more},
                            {"have_few_system_calls", have_few_system_calls},
                            {"call_kernel", call_kernel},
                            {"tell_libgcc", tell_libgcc},
                            {"end_first_thread", end_first_thread},
                            {"end_before_another", end_before_another}};

}  // namespace

int main(int, char** arguments) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  std::atexit([] { std::puts("exit"); });
  for (const Deed& deed : k_deeds)
    if (std::strcmp(deed.name, arguments[1]) == 0) return deed.run();
  return 99;
}
