// A parent that prints the stack of its crashed child, code made at run time included: live, before the child
// disappears, and from its core file. The exit status is 0 if both are the same.
#include <jitunwind/jitunwind.h>
#include <jitunwind/target.h>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

using jitunwind::Target;

[[gnu::noinline]] static void crash() { *static_cast<volatile int*>(nullptr) = 0; }

// void jit_function(void (*f)()):  push rbx; call rdi; pop rbx; ret
[[gnu::noinline]] static int run_child() {
  using namespace jitunwind::x86_64;
  const unsigned char bytes[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3};
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  std::memcpy(code, bytes, sizeof bytes);
  mprotect(code, 4096, PROT_READ | PROT_EXEC);
  const auto description = describe("jit_function").push({0, 1}, rbx).pop({-2, -1}, rbx).build();
  if (!description) return std::puts(description.error().text().c_str()), 1;
  const auto registration = jitunwind::register_code(*description, code, sizeof bytes);
  if (!registration) return std::puts(registration.error().what), 1;
  reinterpret_cast<void (*)(void (*)())>(code)(crash);
  return 0;
}

static std::vector<std::string> print_stacks(const Target& target) {
  std::vector<std::string> names;
  for (const jitunwind::TargetThread& thread : target.threads()) {
    std::printf("thread %d %s\n", thread.id, thread.name.c_str());
    jitunwind::Walk walk = target.walk(thread);
    for (const jitunwind::Frame& frame : walk) {
      names.push_back(frame.name());
      std::printf("  %-14s %s\n", jitunwind::origin_name(frame.origin()), names.back().c_str());
    }
    std::printf("  %s\n", walk.why().c_str());
  }
  return names;
}

static int failed(const jitunwind::TargetError& error) {
  std::puts(error.text().c_str());
  return 1;
}

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "crash_reporter_XXXXXX").string();
  if (!mkdtemp(folder.data())) return std::perror("mkdtemp"), 1;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit any_size{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &any_size);
    if (chdir(folder.c_str()) != 0) _exit(1);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    _exit(run_child());
  }

  // The child stops before the signal is delivered, when all of its memory is still there.
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGSEGV) return 1;
  std::vector<std::string> live;
  {
    const auto target = Target::of_traced(child);
    if (!target) return failed(target.error());
    std::puts("live:");
    live = print_stacks(*target);
  }
  ptrace(PTRACE_DETACH, child, nullptr, SIGSEGV);
  waitpid(child, &status, 0);

  // There is no file here if the kernel passes core files to a program (kernel.core_pattern).
  std::vector<std::string> dead = live;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto core = Target::open_core(entry.path());
    if (!core) return failed(core.error());
    std::puts("core file:");
    dead = print_stacks(*core);
  }
  std::filesystem::remove_all(folder);
  return live == dead && live.size() > 3 ? 0 : 1;
}
