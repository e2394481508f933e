// The target of other programs' walks: its threads stand in C++ -> JIT -> C++ -> JIT -> C++ and have reported how they
// came there. target_program THREADS [exec] [PLUGIN] [crash] starts main and as many other threads. `crash` makes main
// crash when all stand. `exec` makes the program execute itself when it gets SIGUSR1; its procedures then have other
// addresses. PLUGIN is a library that the calls go through. If the variable TARGET_ROOT exists, the program makes that
// its root folder.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "tests/support/jit_frame.h"

using namespace jitunwind;

extern "C" {

std::atomic<int> standing{0};
int expected = 1;
bool crashes = false;
bool is_elsewhere = false;

/// Prints "frame THREAD PC SP ORIGIN NAME" for each frame from the caller of stand_still() on, and then stands there.
[[gnu::noinline]] void* stand_still(void*) {
  std::string said;
  const long thread = ::syscall(SYS_gettid);
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    if (frame.depth() == 0) continue;
    char line[512];
    std::snprintf(line, sizeof line, "frame %ld %" PRIx64 " %" PRIx64 " %s %s\n", thread, frame.pc(), frame.sp(),
                  origin_name(frame.origin()), frame.name().c_str());
    said += line;
  }
  said += "why " + std::to_string(thread) + " " + walk.why() + "\n";
  (void)!::write(STDOUT_FILENO, said.data(), said.size());
  if (standing.fetch_add(1) + 1 == expected) (void)!::write(STDOUT_FILENO, "ready\n", 6);
  if (crashes && thread == ::getpid()) {
    while (standing.load() != expected) ::usleep(1000);
    ::usleep(20'000);
    *reinterpret_cast<volatile int*>(std::uintptr_t{0x4710}) = 0;
  }
  if (is_elsewhere) ::prctl(PR_SET_NAME, "elsewhere");
  for (;;) ::pause();
}

test::JitFrame* inner_frame = nullptr;
void* (*plugin_call)(test::JitFrame::Callee, void*) = nullptr;
[[gnu::noinline]] void* middle(void* argument) {
  void* const result = plugin_call ? plugin_call(stand_still, argument) : (*inner_frame)(stand_still, argument);
  asm volatile("");  // no tail call
  return result;
}
}

int main(int argc, char** argv) {
  const int others = argc > 1 ? std::atoi(argv[1]) : 0;
  const auto is_told = [&](const char* what) {
    return std::any_of(argv + std::min(argc, 2), argv + argc,
                       [&](const char* said) { return !std::strcmp(said, what); });
  };
  crashes = is_told("crash");
  if (is_told("exec")) {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGUSR1, [](int) { ::execl("/proc/self/exe", "target_program", "0", "elsewhere", nullptr); });
  }
  is_elsewhere = is_told("elsewhere");
  if (is_elsewhere) ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expected = others + 1;
#ifdef TARGET_WITH_PLUGIN
  if (argc > 2 && argv[2][0] == '/') {
    void* const plugin = ::dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    plugin_call = reinterpret_cast<decltype(plugin_call)>(plugin ? ::dlsym(plugin, "plugin_call") : nullptr);
    if (!plugin_call) return 1;
  }
#endif
  if (const char* const root = std::getenv("TARGET_ROOT"); root && ::chroot(root) != 0) return 1;
  test::JitFrame inner, outer;
  inner_frame = &inner;
  std::vector<std::thread> threads;
  for (int i = 0; i < others; ++i) {
    threads.emplace_back([&] { outer(middle, nullptr); });
    ::pthread_setname_np(threads.back().native_handle(), ("worker " + std::to_string(i)).c_str());
  }
  outer(middle, nullptr);
}
