// Prints where its code is, and why it is not elsewhere. Then it runs a command, in which PID is this process's number,
// below functions in a code segment: main, jit_outer, go_on, jit_inner, look. They were appended to a file that was
// open already. The command "burn" takes time instead, "throw" throws an exception to main, and "names" prints the C
// library's names of the stack. Others do something before: "seal" seals, "grow" makes 3,000 functions, "renew"
// makes a new file, fills the disk, and does the same, and "lengthen" fills it and makes some with long names. A second
// argument starts a thread that adds and releases functions meanwhile.
#include <execinfo.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/code_segments/committed.h"
#include "tests/code_segments/made_functions.h"

namespace {

using jitunwind::test::call, jitunwind::test::commit_frame;

const char* command = nullptr;
jitunwind::test::MadeFunctions made;

void print_names() {
  std::array<void*, 64> stack{};
  std::fflush(stdout);
  ::backtrace_symbols_fd(stack.data(), ::backtrace(stack.data(), stack.size()), STDOUT_FILENO);
}

}  // namespace

extern "C" [[gnu::noinline]] void* look(void* argument) {
  (void)::getppid();  // strace shows the stack of this call
  std::string text = command;
  if (text == "throw") throw std::runtime_error("thrown");
  if (text == "names" || text == "seal" || text == "grow" || text == "renew" || text == "lengthen")
    return print_names(), argument;
  if (text == "burn") {
    const auto begin = std::clock();
    while (std::clock() - begin < CLOCKS_PER_SEC / 10) {
    }
    return argument;
  }
  for (std::size_t at; (at = text.find("PID")) != text.npos;) text.replace(at, 3, std::to_string(::getpid()));
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) ::execl("/bin/sh", "sh", "-c", text.c_str(), nullptr), ::_exit(127);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::puts("the command failed");
  return argument;
}

extern "C" [[gnu::noinline]] void* go_on(void* argument) { return call(made.inner, look, argument); }

/// Fills segments and empties them again, in an order that leaves rooms between others.
static void churn(jitunwind::CodeSegments& segments, const std::atomic<bool>& ends) {
  std::array<jitunwind::Addr, 50> starts{};
  for (unsigned i = 0; !ends; ++i) {
    jitunwind::Addr& start = starts[(i * i + i / 7) % starts.size()];
    if (start != 0) (void)segments.release(start);
    start = commit_frame(segments, "churned_" + std::to_string(i), 25 + i % 200);
  }
}

static void fill_disk(const jitunwind::CodeSegments& segments) {
  std::ofstream filler(segments.status().folder + "/../filler", std::ios::binary);
  while (filler << std::string(4096, 'x') << std::flush) {
  }
}

/// Commits once more when the segment's file is old enough for another one.
static void renew(jitunwind::CodeSegments& segments) {
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  commit_frame(segments, "renews");
  fill_disk(segments);
}

/// Says how many of the functions tools see.
static void grow(jitunwind::CodeSegments& segments) {
  for (int i = 0; i < 3000; ++i) {
    const jitunwind::Addr start = commit_frame(segments, "grown");
    if (call(
            start, [](void* argument) { return argument; }, &segments) != &segments)
      std::puts("wrong code");
  }
  const jitunwind::CodeSegmentsStatus status = segments.status();
  std::printf("%zu files, %zu of %zu\n", status.files, status.published, status.functions);
}

/// Each room has pages for a shorter name.
static void lengthen(jitunwind::CodeSegments& segments) {
  fill_disk(segments);
  for (int i = 0; i < 200 && segments.status().refused == 0; ++i) commit_frame(segments, std::string(300, 'n'));
  std::puts(segments.status().latest_refusal.what);
}

int main(int argc, char** argv) {
  command = argc > 1 ? argv[1] : "true";
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  jitunwind::CodeSegments segments;
  commit_frame(segments, "jit_first");
  made = jitunwind::test::make_functions(segments);
  const jitunwind::CodeSegmentsStatus status = segments.status();
  if (status.refused != 0) std::printf("%s; ", status.latest_refusal.what);
  std::printf("in %s\n", status.folder.c_str());
  if (jitunwind::CodeSegments::of_environment() != nullptr) std::puts("adapters publish by default");
  if (status.published != (status.files == 0 ? 0u : 3u)) return 1;
  if (command == std::string("seal")) {
    const jitunwind::Status sealed = segments.seal();
    std::puts(sealed ? "sealed" : sealed.error().what);
  }
  if (command == std::string("renew")) renew(segments);
  if (command == std::string("lengthen")) lengthen(segments);
  if (command == std::string("grow") || command == std::string("renew")) grow(segments);
  std::atomic<bool> ends{argc <= 2};
  std::thread other([&] { churn(segments, ends); });
  try {
    call(made.outer, go_on, &segments);
  } catch (const std::runtime_error& error) {
    std::puts(error.what());
  }
  ends = true;
  other.join();
  std::puts("returned");
  return 0;
}
