#include "jitunwind/unwind_core/memory/copied.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// Set when a sandbox refuses process_vm_readv(). Nothing else refuses it, because a process may always access itself
/// (ptrace(2), "Ptrace access mode checking": the same thread group).
constinit std::atomic<bool> is_refused{false};

class Pipe {
 public:
  Pipe() noexcept { is_open_ = ::syscall(SYS_pipe2, ends_.data(), O_CLOEXEC | O_NONBLOCK) == 0; }
  ~Pipe() {
    if (!is_open_) return;
    for (const int end : ends_) ::syscall(SYS_close, end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Precondition: `into` is within one page, which any pipe holds (pipe(7), PIPE_BUF).
  bool copy(Addr at, std::span<std::byte> into) const noexcept {
    const auto size = static_cast<long>(into.size());
    return is_open_ && ::syscall(SYS_write, ends_[1], pointer_to(at), into.size()) == size &&
           ::syscall(SYS_read, ends_[0], into.data(), into.size()) == size;
  }

 private:
  std::array<int, 2> ends_{};
  bool is_open_ = false;
};

std::size_t copy_through_pipe(Addr at, std::span<std::byte> into) noexcept {
  const Pipe pipe;
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    const auto in_page = static_cast<std::size_t>(k_page_size - next % k_page_size);
    const std::size_t size = std::min(in_page, into.size() - done);
    if (!pipe.copy(next, into.subspan(done, size))) break;
    done += size;
  }
  return done;
}

}  // namespace

[[gnu::hot]] long copy_at_once(Addr at, std::span<std::byte> into) noexcept {
  if (is_refused.load(std::memory_order_relaxed)) return -1;
  const ErrnoKeeper keeper;
  const iovec to{into.data(), into.size()}, from{pointer_to(at), into.size()};
  const long copied =
      copy_between(SYS_process_vm_readv, static_cast<pid_t>(::syscall(SYS_getpid)), {&to, 1}, {&from, 1});
  if (copied >= 0) return copied;
  if (errno == EFAULT) return 0;
  if (errno != ENOMEM) is_refused.store(true, std::memory_order_relaxed);
  return -1;
}

std::size_t copy_memory(Addr at, std::span<std::byte> into) noexcept {
  if (into.empty()) return 0;
  const ErrnoKeeper keeper;
  if (at != 0 && into.size() > -at) into = into.first(static_cast<std::size_t>(-at));
  const long copied = copy_at_once(at, into);
  return copied >= 0 ? static_cast<std::size_t>(copied) : copy_through_pipe(at, into);
}

std::size_t CopiedMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  return copy_memory(at, into);
}

}  // namespace jitunwind
