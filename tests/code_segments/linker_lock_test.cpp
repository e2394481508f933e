// The dynamic linker has locks, which a constructor of a library has, and whoever iterates over libraries. Code is
// committed meanwhile, by the same thread and by another one that the former waits for.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "tests/code_segments/committed.h"
#include "tests/code_segments/in_constructor.h"
#include "tests/code_segments/symbols_of.h"
#include "tests/support/command.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using namespace std::chrono_literals;

/// Runs it while libraries are iterated over.
void iterate(std::function<void()> action) {
  EXPECT_EQ(::dl_iterate_phdr([](dl_phdr_info*, std::size_t,
                                 void* self) { return (*static_cast<std::function<void()>*>(self))(), 1; },
                              &action),
            1);
}

/// Commits, runs and releases so many functions.
void use(CodeSegments& segments, int functions) {
  std::vector<Addr> starts;
  for (int i = 0; i < functions; ++i) {
    starts.push_back(commit_frame(segments, "used " + std::to_string(i)));
    EXPECT_EQ(call(
                  starts.back(), [](void* argument) { return argument; }, &segments),
              &segments);
  }
  for (const Addr start : starts) EXPECT_TRUE(segments.release(start));
}

/// A thread that begins when it is told. It is there before somebody has a lock: whoever has that of the list must
/// start no thread (glibc 2.36), since the thread that opens segments may be loading one.
class OtherThread {
 public:
  explicit OtherThread(std::function<void()> action)
      : thread_([this, action = std::move(action)] {
          id_ = static_cast<int>(::syscall(SYS_gettid));
          begins_.get_future().wait();
          action();
          ends_.set_value();
        }) {}
  ~OtherThread() { thread_.join(); }

  void begin() { begins_.set_value(); }

  /// The caller has a lock and waits for the thread. If that does not end, the whole test does.
  void run() {
    begin();
    if (ends_.get_future().wait_for(20s) == std::future_status::ready) return;
    std::puts("the other thread waits for the dynamic linker");
    std::fflush(stdout);
    std::_Exit(1);
  }

  /// Comes back when the thread waits for a lock that the caller has.
  void begin_and_wait() {
    begin();
    std::this_thread::sleep_for(50ms);
    const auto waits = [this] {
      return text_of_file("/proc/self/task/" + std::to_string(id_.load()) + "/wchan").find("futex") !=
             std::string::npos;
    };
    for (int i = 0; i < 1000 && !waits(); ++i) std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(50ms);
  }

 private:
  std::atomic<int> id_ = 0;
  std::promise<void> begins_, ends_;
  std::thread thread_;
};

TEST(LinkersLock, SegmentsAreOpenedInConstructors) {
  CodeSegments segments({.text_bytes = 65536, .functions = 4});
  construct([&] { use(segments, 40); });
  EXPECT_GT(segments.status().segments, 0u);
  use(segments, 40);
  EXPECT_EQ(segments.status().refused, 0u);
}

TEST(LinkersLock, OthersCommitMeanwhile) {
  CodeSegments segments;
  const Addr first = commit_frame(segments, "first");
  OtherThread beside_constructor([&] { use(segments, 100); });
  construct([&] { beside_constructor.run(); });
  iterate([&] { use(segments, 100); });
  OtherThread beside_list([&] { use(segments, 100); });
  iterate([&] { beside_list.run(); });
  EXPECT_EQ(segments.status().published, 1u);
  EXPECT_STREQ(symbol_at(first), "first");
}

/// It has the lock of loading meanwhile, and waits for that of the list.
void load_and_unload() {
  in_constructor = [] {};
  if (void* const library = ::dlopen(JITUNWIND_CONSTRUCTOR, RTLD_NOW | RTLD_LOCAL)) ::dlclose(library);
}

/// Each thread would wait for the other's lock. If that does not end, the whole test does.
TEST(LinkersLock, NoSegmentIsOpenedOrClosedByWhoeverHasTheList) {
  ::unsetenv("CALLED_IN_CONSTRUCTOR");
  CodeSegments segments({.text_bytes = 65536, .functions = 4});
  std::vector<Addr> kept;
  for (int i = 0; i < 6; ++i) kept.push_back(commit_frame(segments, "kept " + std::to_string(i)));
  const std::size_t published = segments.status().published;
  std::optional<OtherThread> other(std::in_place, load_and_unload);
  ::alarm(60);
  iterate([&] {
    other->begin_and_wait();
    EXPECT_TRUE(segments.seal());
    use(segments, 40);                                                   // opens some
    for (const Addr start : kept) EXPECT_TRUE(segments.release(start));  // closes one
  });
  other.reset();
  ::alarm(0);
  EXPECT_EQ(published, 6u);
  const CodeSegmentsStatus status = segments.status();
  EXPECT_GT(status.refused, 0u);
  EXPECT_NE(status.latest_refusal.text().find("dl_iterate_phdr"), std::string::npos) << status.latest_refusal.text();
  EXPECT_STREQ(symbol_at(commit_frame(segments, "next")), "next");
}

/// Closing its segments has to wait for the other thread, which waits for this one.
TEST(LinkersLock, WhoeverHasTheListMayDestroySegments) {
  ::unsetenv("CALLED_IN_CONSTRUCTOR");
  std::optional<CodeSegments> segments(std::in_place, CodeSegmentsOptions{.text_bytes = 65536, .functions = 4});
  std::vector<Addr> starts;
  for (int i = 0; i < 9; ++i) starts.push_back(commit_frame(*segments, "code " + std::to_string(i)));
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(static_cast<std::uintptr_t>(starts[0])), &info), 0);
  const std::string file = info.dli_fname;
  const LibgccSearch search;
  std::optional<OtherThread> other(std::in_place, load_and_unload);
  ::alarm(60);
  iterate([&] {
    other->begin_and_wait();
    segments.reset();
    for (const Addr start : starts) EXPECT_EQ(search(start + 1), 0u);
  });
  other.reset();
  ::alarm(0);
  for (const Addr start : starts) EXPECT_EQ(symbol_at(start), nullptr);
  EXPECT_TRUE(std::filesystem::exists(file));
  // The thread that opens segments may have to come to an end.
  for (int i = 0; i < 1000 && std::filesystem::exists(file); ++i) {
    segments.emplace();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_STREQ(symbol_at(commit_frame(*segments, "next")), "next");
}

/// The thread that opens a segment ahead meanwhile has no lock that a new thread needs.
TEST(LinkersLock, WhoeverHasTheListMayStartAThread) {
  CodeSegments segments({.text_bytes = 65536, .functions = 64});
  std::vector<Addr> kept{commit_frame(segments, "kept 0")};
  OtherThread other([&] {
    while (kept.size() != 40) kept.push_back(commit_frame(segments, "kept " + std::to_string(kept.size())));
  });
  bool has_run = false;
  ::alarm(60);
  iterate([&] {
    other.run();
    std::this_thread::sleep_for(100ms);  // the one ahead is on its way
    std::thread([&] { has_run = true; }).join();
  });
  ::alarm(0);
  EXPECT_TRUE(has_run);
  EXPECT_EQ(segments.status().refused, 0u);
}

/// A segment that was opened ahead serves those who wait, as soon as the one before is full.
TEST(LinkersLock, TheNextSegmentIsThereAlready) {
  CodeSegments segments({.text_bytes = 65536, .functions = 64});
  std::vector<Addr> kept;
  for (int i = 0; i < 40; ++i) kept.push_back(commit_frame(segments, "kept " + std::to_string(i)));
  const auto libraries = [&] {
    std::size_t count = 0;
    std::pair<std::string, std::size_t*> of{segments.status().folder, &count};
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* self) {
          const auto& [folder, into] = *static_cast<decltype(of)*>(self);
          *into += std::string(info->dlpi_name).find(folder) == 0;
          return 0;
        },
        &of);
    return count;
  };
  for (int i = 0; i < 2000 && libraries() < 2; ++i) std::this_thread::sleep_for(10ms);
  ASSERT_EQ(libraries(), 2u);
  std::this_thread::sleep_for(200ms);  // the thread that opened it hands it over
  OtherThread other([&] { use(segments, 40); });
  construct([&] { other.run(); });
  EXPECT_EQ(segments.status().files, 2u);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(symbol_at(kept[i]), "kept " + std::to_string(i));
}

}  // namespace
}  // namespace jitunwind::test
