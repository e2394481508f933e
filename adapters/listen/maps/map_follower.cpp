#include "jitunwind/adapters/listen/maps/map_follower_p.h"

#include <unistd.h>

#include <cstdio>

#include "jitunwind/adapters/listen/names/heard_names_p.h"

namespace jitunwind {

MapFollower::MapFollower() noexcept {
  (void)std::snprintf(path_.data(), path_.size(), "/tmp/perf-%d.map", static_cast<int>(::getpid()));
}

void MapFollower::look() {
  const ReadableFile file(path_.data(), O_NOFOLLOW | O_NONBLOCK);
  struct stat now {};
  // Others may have put something there, before this process had its number.
  if (file.is_open() && ::fstat(file.number(), &now) == 0 && S_ISREG(now.st_mode) && now.st_uid == ::geteuid())
    read(file, now);
}

void MapFollower::read(const ReadableFile& file, const struct stat& now) {
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

}  // namespace jitunwind
