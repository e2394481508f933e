#include "jitunwind/adapters/listen/maps/map_follower_p.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>

#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/unwind_core/uncancelled_p.h"

namespace jitunwind {
namespace {

constexpr long k_period = 10'000'000;  // nanoseconds

class Follower {
 public:
  Follower() noexcept {
    (void)std::snprintf(path_.data(), path_.size(), "/tmp/perf-%d.map", static_cast<int>(::getpid()));
  }

  /// What has come since the last time. A file that was made anew, or cut, is read from its begin.
  void look() {
    const ReadableFile file(path_.data(), O_NOFOLLOW | O_NONBLOCK);
    struct stat now {};
    // Others may have put something there, before this process had its number.
    if (file.is_open() && ::fstat(file.number(), &now) == 0 && S_ISREG(now.st_mode) && now.st_uid == ::geteuid())
      read(file, now);
  }

 private:
  void read(const ReadableFile& file, const struct stat& now) {
    if (now.st_ino != inode_ || now.st_size < offset_) {
      reader_.restart();
      inode_ = now.st_ino;
      offset_ = 0;
    }
    while (offset_ < now.st_size) {
      const long size = ::syscall(SYS_pread64, file.number(), piece_.data(), piece_.size(), offset_);
      if (size <= 0) return;
      offset_ += size;
      reader_.read({piece_.data(), static_cast<std::size_t>(size)},
                   [](const NamedCode& said) { name_code(said.code, said.name); });
    }
  }

  std::array<char, 32> path_{};
  std::array<char, 16384> piece_{};
  PerfMapReader reader_;
  ino_t inode_ = 0;
  off_t offset_ = 0;
};

void* follow(void*) {
  Follower follower;
  for (;;) {
    if (listens_to(Dialect::maps)) {
      try {
        follower.look();
      } catch (const std::exception&) {
        note_unheard({ErrorCode::out_of_memory, 0, "no memory for a line of the perf map"});
      }
    }
    sleep_for_nanoseconds(k_period);
  }
}

}  // namespace

void follow_perf_map() noexcept {
  constinit static std::atomic<bool> started{false};
  if (started.exchange(true)) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (const int failed = pthread_create(&thread, &attributes, follow, nullptr); failed != 0)
    note_unheard({ErrorCode::out_of_memory, 0, "no thread to follow the perf map"});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace jitunwind
