// Threads add, replace and release functions in code segments, and run them, while readers who know nothing of this
// library look at random moments: libgcc's unwinder, dladdr(), walks, and children of fork() inside; eu-stack, gdb and
// perf outside. Shadow stacks judge what they see. perf reads files later, so it is asked about functions that stay.
// Then processes are killed at random moments, and 64 of them share a folder.
#include <elf.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "tests/code_segments/committed.h"
#include "tests/code_segments/symbols_of.h"
#include "tests/support/command.h"
#include "tests/support/texts.h"

namespace {

using namespace jitunwind;
using jitunwind::test::as_pointer, jitunwind::test::call, jitunwind::test::run, jitunwind::test::symbol_at;

/// Shared by the process of the storm and by that which judges it.
struct Figures {
  std::atomic<unsigned> committed{0}, released{0}, descents{0}, throws{0}, forks{0}, wrong{0};
  std::atomic<bool> goes_on{true};
};
Figures* figures = nullptr;

struct Function {
  Addr start = 0;
  std::string name{};
};

/// The functions of one thread, and the stack that it makes of them.
struct Descent {
  std::vector<Function> own{};
  std::vector<const Function*> stack{};  // the outermost first
  std::size_t depth = 0;
  bool throws = false;
};

void expect(bool right, const char* what) {
  if (right) return;
  ++figures->wrong;
  std::fprintf(stderr, "%s\n", what);
}

bool is_in(Addr pc, const Function& function) {
  return pc > function.start && pc <= function.start + sizeof test::FrameCode::k_bytes;
}

/// `frames`: the innermost first.
void judge(const Descent& descent, const std::vector<Addr>& frames, const char* what) {
  auto next = descent.stack.rbegin();
  for (const Addr pc : frames)
    if (next != descent.stack.rend() && is_in(pc, **next)) ++next;
  expect(next == descent.stack.rend(), what);
}

void look(const Descent& descent) {
  std::array<void*, 64> stack;
  const auto depth = static_cast<std::size_t>(::backtrace(stack.data(), stack.size()));
  std::vector<Addr> frames;
  for (std::size_t i = 0; i < depth; ++i) frames.push_back(reinterpret_cast<std::uintptr_t>(stack[i]));
  judge(descent, frames, "backtrace() loses frames");
  frames.clear();
  for (const Frame& frame : walk_here()) frames.push_back(frame.pc());
  judge(descent, frames, "a walk loses frames");
  for (const Function* function : descent.stack) {
    const char* const name = symbol_at(function->start + 1);
    expect(name != nullptr && function->name == name, "dladdr() has another name");
  }
}

}  // namespace

extern "C" [[gnu::noinline]] void* go_on(void* argument) {
  Descent& descent = *static_cast<Descent*>(argument);
  if (descent.depth < descent.stack.size()) return call(descent.stack[descent.depth++]->start, go_on, argument);
  look(descent);
  if (descent.throws) throw &descent;
  return argument;
}

namespace {

void descend(Descent& descent, std::mt19937& random) {
  descent.depth = 0;
  descent.stack.clear();
  descent.throws = random() % 4 == 0;
  for (std::size_t i = 1 + random() % 6; i > 0; --i)
    descent.stack.push_back(&descent.own[random() % descent.own.size()]);
  ++figures->descents;
  figures->throws += descent.throws;
  try {
    expect(go_on(&descent) == &descent && !descent.throws, "the stack is left wrongly");
  } catch (Descent* thrown) {
    expect(thrown == &descent && descent.throws, "another exception comes");
  }
}

/// A child has the code of before, by name.
void fork_and_descend(Descent& descent, std::mt19937& random) {
  ++figures->forks;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const unsigned wrong = figures->wrong;
    descend(descent, random);
    ::_exit(figures->wrong != wrong);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  expect(status == 0, "a child does not run its code");
}

constexpr unsigned k_staying = 4;

/// Each thread has a function of its own on its stack, by which readers outside know it.
template <unsigned number>
[[gnu::noinline]] void* thread_of(CodeSegments& segments) {
  std::mt19937 random(number);
  Descent descent;
  descent.own.reserve(64);
  while (figures->goes_on) {
    if (descent.own.size() == 64) {
      Function& gone = descent.own[random() % 64];
      const Status released = segments.release(gone.start);
      expect(static_cast<bool>(released), released ? "" : released.error().what);
      ++figures->released;
      std::swap(gone, descent.own.back());
      descent.own.pop_back();
    }
    std::string name = "own_" + std::to_string(number) + "_" + std::to_string(figures->committed++);
    const Addr start = test::commit_frame(segments, name, 25 + random() % 100);
    descent.own.push_back({start, std::move(name)});
    if (descent.own.size() % 2 == 0) descend(descent, random);
    if (random() % 1000 == 0) fork_and_descend(descent, random);
    if (random() % 2000 == 0) expect(static_cast<bool>(segments.seal()), "a segment is not sealed");
  }
  for (const Function& function : descent.own)
    expect(static_cast<bool>(segments.release(function.start)), "a function is not released");
  return &figures;
}

/// Its functions are among those of the others, and stay as long as the storm.
template <>
[[gnu::noinline]] void* thread_of<k_staying>(CodeSegments& segments) {
  std::mt19937 random(k_staying);
  Descent descent;
  descent.own.reserve(64);
  while (figures->goes_on) {
    if (descent.own.size() < 64 && random() % 100 == 0) {
      std::string name = "own_" + std::to_string(k_staying) + "_" + std::to_string(descent.own.size());
      descent.own.push_back({test::commit_frame(segments, name, 25 + random() % 100), name});
    }
    if (!descent.own.empty()) descend(descent, random);
  }
  for (const Function& function : descent.own)
    expect(static_cast<bool>(segments.release(function.start)), "a function is not released");
  return &figures;
}

template <unsigned number>
void start(std::vector<std::thread>& threads, CodeSegments& segments) {
  threads.emplace_back([&segments] { thread_of<number>(segments); });
}

int storm() {
  CodeSegments segments({.text_bytes = 65536, .functions = 256});
  std::vector<std::thread> threads;
  start<0>(threads, segments), start<1>(threads, segments), start<2>(threads, segments), start<3>(threads, segments);
  start<k_staying>(threads, segments);
  for (std::thread& thread : threads) thread.join();
  const CodeSegmentsStatus status = segments.status();
  expect(status.functions == 0, "functions are left");
  expect(status.refused == 0, status.latest_refusal.what);
  return figures->wrong != 0;
}

// Readers outside.

/// The text behind the address: "go_on (argument=...) at ..." of gdb, and "go_on - /path/of/program" of eu-stack.
std::string frame_in(const std::string& line) {
  std::istringstream words(line);
  std::string word, rest;
  words >> word;
  do word.clear(), words >> word;
  while (word.find("0x") == 0 || word == "in");
  std::getline(words, rest);
  return word + rest;
}

/// The compiler's libraries have functions without names of their own.
bool has_name(const std::string& frame) {
  const bool is_nameless = frame.empty() || frame.find("??") == 0 || frame.find("- ") == 0;
  return !is_nameless || frame.find("/libgcc_s.so") != std::string::npos ||
         frame.find("/libstdc++.so") != std::string::npos;
}

/// The stack of a thread: `thread_of<K>` called go_on, and each function of this thread lies between two of that.
bool judge_outside(const std::vector<std::string>& frames, const std::string& text) {
  const auto begins = [&](std::size_t i, const char* name) { return frames[i].find(name) == 0; };
  std::size_t end = 0;
  char number = 0;
  for (std::size_t i = 0; i < frames.size() && number == 0; ++i) {
    const std::size_t at = frames[i].find("thread_of<");
    if (at != std::string::npos) end = i, number = frames[i][at + 10];
  }
  if (number == 0) return false;  // it has not begun, or has ended
  bool right = true;
  for (std::size_t i = 0; i < end; ++i) {
    const bool is_own = begins(i, "own_");
    right = right && has_name(frames[i]) && (!is_own || frames[i][4] == number);
    if (is_own) right = right && begins(i + 1, "go_on");
    // descend() may be part of its caller.
    if (begins(i, "go_on"))
      right = right && (begins(i + 1, "own_") || frames[i + 1].find("descend") != std::string::npos || i + 1 == end);
  }
  if (!right) std::fprintf(stderr, "%s\n", text.c_str());
  figures->wrong += !right;
  return true;
}

std::size_t judge_stacks(const std::string& text) {
  std::size_t stacks = 0;
  std::vector<std::string> frames;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#0", 0) == 0) stacks += judge_outside(frames, text), frames.clear();
    // gdb shows the parts of a function that were written in others, which are no calls.
    if (line.rfind('#', 0) == 0 && line.find("test::call (") == line.npos) frames.push_back(frame_in(line));
  }
  return stacks + judge_outside(frames, text);
}

/// The moment is one of the whole process: eu-stack stops one thread after the other.
std::size_t look_with_eu_stack(pid_t process) {
  ::kill(process, SIGSTOP);
  const test::Ended ended = run("eu-stack -m -p " + std::to_string(process));
  ::kill(process, SIGCONT);
  return judge_stacks(ended.text);
}

std::size_t look_with_gdb(pid_t process) {
  return judge_stacks(run("gdb -nx -q -batch -iex 'set debuginfod enabled off' -iex 'set auto-load off' -p " +
                          std::to_string(process) + " -ex 'thread apply all backtrace' 2>&1")
                          .text);
}

/// Judges the samples of functions that stay. A sample begins with "PROGRAM THREAD ..."; it has a line for each frame,
/// " ADDRESS NAME+OFFSET (FILE)", and ends with an empty one.
std::size_t judge_samples(const std::string& text) {
  const std::string own = " own_" + std::to_string(k_staying) + "_";
  const std::string outermost = "thread_of<" + std::to_string(k_staying);
  struct Sample {
    std::string thread{}, frames{};
    bool is_right = true, is_whole = false, is_of_former_file = false;
  };
  std::vector<Sample> samples(1);
  std::istringstream lines(text);
  for (std::string line, program; std::getline(lines, line);) {
    Sample& sample = samples.back();
    if (line.empty()) samples.emplace_back();
    if (!line.starts_with('\t') && !line.starts_with(' ')) std::istringstream(line) >> program >> sample.thread;
    if (line.find(outermost) != line.npos) sample.is_whole = true;
    if (line.find("/code-") == line.npos) continue;
    sample.frames += line + '\n';
    sample.is_of_former_file = sample.is_of_former_file || line.find(".so.new)") != line.npos;
    sample.is_right = sample.is_right && line.find(own) != line.npos;
  }
  const auto whole = std::ranges::find_if(samples, &Sample::is_whole);
  std::size_t seen = 0;
  for (const Sample& sample : samples) {
    if (whole == samples.end() || sample.thread != whole->thread || sample.frames.empty()) continue;
    if (sample.is_of_former_file) continue;
    ++seen;
    if (sample.is_right && sample.is_whole) continue;
    ++figures->wrong;
    std::fprintf(stderr, "perf does not see functions that stay:\n%s\n", sample.frames.c_str());
  }
  return seen;
}

/// perf refuses a file that has another build-id than that which it noted or just read. So it notes none (-B), and
/// nothing is sealed or renewed while it reads. Events that a busy machine made it lose may have told of mappings. It
/// reads a process's list of mappings before it is told of changes: a file that is replaced in between keeps the name
/// ".new" for it.
std::size_t look_with_perf(const std::string& perf, pid_t process) {
  const test::TemporaryFolder folder;
  const std::string data = " " + folder / "data";
  run(perf + " record -q -B -e cpu-clock -F 997 --call-graph dwarf,16384 -p " + std::to_string(process) + " -o" + data +
      " -- sleep 0.2 >/dev/null 2>&1");
  ::kill(process, SIGSTOP);
  const test::Ended script = run(perf + " script --no-inline --show-lost-events -i" + data + " 2>/dev/null");
  ::kill(process, SIGCONT);
  return script.text.find("PERF_RECORD_LOST") == script.text.npos ? judge_samples(script.text) : 0;
}

template <class Body>
pid_t in_child(const std::string& folder, Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  ::setenv("JITUNWIND_CODE_DIR", folder.c_str(), 1);
  std::exit(body());
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// `perf`: the program; or empty.
void weather_the_storm(const std::string& folder, unsigned functions, const std::string& perf) {
  constexpr unsigned k_most_rounds = 1000;
  const pid_t child = in_child(folder, storm);
  std::size_t by_gdb = 0, by_eu_stack = 0, by_perf = 0;
  const auto is_seen = [&] { return by_gdb > 0 && by_eu_stack > 0 && (by_perf > 0 || perf.empty()); };
  for (unsigned round = 0; (figures->committed < functions || !is_seen()) && round < k_most_rounds; ++round) {
    if (round % 8 == 1)
      by_gdb += look_with_gdb(child);
    else if (round % 8 == 5 && !perf.empty())
      by_perf += look_with_perf(perf, child);
    else
      by_eu_stack += look_with_eu_stack(child);
  }
  figures->goes_on = false;
  expect(status_of(child) == 0, "the storm failed");
  expect(std::filesystem::is_empty(folder), "files are left");
  std::printf("%u functions added, %u released; %u descents, %u of them left by exceptions; %u children\n",
              figures->committed.load(), figures->released.load(), figures->descents.load(), figures->throws.load(),
              figures->forks.load());
  std::printf("stacks of its threads: %zu seen by eu-stack, %zu by gdb, %zu by perf\n", by_eu_stack, by_gdb, by_perf);
  expect(is_seen(), "gdb, eu-stack or perf saw none of the threads");
}

/// The files that are left are whole; one that a thread was making has another name, which nobody looks for. The next
/// process removes all of them.
void kill_at_random(const std::string& folder, unsigned times) {
  std::mt19937 random(1);
  std::size_t files = 0;
  for (unsigned i = 0; i < times; ++i) {
    const pid_t child = in_child(folder, storm);
    ::usleep(static_cast<useconds_t>(1000 + random() % 200'000));
    ::kill(child, SIGKILL);
    (void)status_of(child);
    std::size_t folders = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_directory()) ++folders;
      if (!entry.is_regular_file() || entry.path().extension() != ".so") continue;
      expect(test::text_of_file(entry.path()).starts_with(ELFMAG), "a file is unfinished");
      const test::Ended read =
          run("eu-readelf --all --debug-dump=frames " + entry.path().string() + " 2>&1 >/dev/null");
      expect(read.status == 0 && read.text.empty(), read.text.c_str());
      ++files;
    }
    expect(folders <= 2, "files of dead processes are left");
  }
  std::printf("%u processes killed at random moments, which left %zu files, all of them whole\n", times, files);
}

void share_a_folder(const std::string& folder) {
  std::vector<pid_t> children;
  for (unsigned i = 0; i < 64; ++i) {
    children.push_back(in_child(folder, [] {
      CodeSegments segments;
      for (unsigned k = 0; k < 50; ++k) {
        const std::string name = "shared_" + std::to_string(k);
        const Addr start = test::commit_frame(segments, name);
        if (symbol_at(start) == nullptr || symbol_at(start) != name) return 1;
      }
      return segments.seal() && segments.status().sealed == 1 ? 0 : 2;
    }));
  }
  for (const pid_t child : children) expect(status_of(child) == 0, "one of 64 processes publishes nothing");
  expect(std::filesystem::is_empty(folder), "files of 64 processes are left");
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned functions = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 3000;
  void* const shared = ::mmap(nullptr, sizeof(Figures), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  figures = new (shared) Figures;
  const test::TemporaryFolder folder;
  weather_the_storm(folder.path(), functions, argc > 3 ? argv[3] : "");
  figures->goes_on = true;
  kill_at_random(folder.path(), functions / 2000);
  run("rm -rf " + folder.path() + "/*");
  share_a_folder(folder.path());
  std::printf("%u wrong\n", figures->wrong.load());
  return figures->wrong != 0;
}
