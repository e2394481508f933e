// Restores errno. A walk, a lookup or a registration may run in a handler that interrupted code between a system call
// and its check of errno.
#pragma once

#include <cerrno>

namespace jitunwind {

class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

}  // namespace jitunwind
