#include "jitunwind/unwind_core/memory/process.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

void* pointer_of(Addr at) noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

/// Whether a pointer of this program can have that value: a target may have more bits.
bool is_pointer(Addr at) noexcept { return at <= std::numeric_limits<std::uintptr_t>::max(); }

/// Offsets of files are signed.
bool is_offset(Addr at) noexcept { return at <= static_cast<Addr>(std::numeric_limits<std::int64_t>::max()); }

}  // namespace

std::size_t ProcessMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  if (into.empty()) return 0;
  const ErrnoKeeper keeper;
  if (at != 0 && into.size() > -at) into = into.first(static_cast<std::size_t>(-at));
  if (is_pointer(at) && asks_kernel_to_copy()) {
    const iovec to{into.data(), into.size()}, from{pointer_of(at), into.size()};
    const long got = copy_between(SYS_process_vm_readv, process_, {&to, 1}, {&from, 1});
    if (got > 0) return static_cast<std::size_t>(got);
    // ESRCH: it is gone, but for a thread that does not lead it; EPERM of memory may be allowed of the open file.
    if (got == 0 || errno == EFAULT || errno == ENOMEM) return 0;
    if (errno == ENOSYS || errno == EPERM) is_refused_.store(true, std::memory_order_relaxed);
  }
  if (mem_ < 0 || !is_offset(at)) return 0;
  const long got = read_at(mem_, into.data(), into.size(), at);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::size_t ProcessMemory::read_pages(std::span<const Addr> pages, std::span<std::byte> into) const noexcept {
  constexpr std::size_t k_most = 64;
  const ErrnoKeeper keeper;
  if (pages.empty() || !asks_kernel_to_copy()) return 0;
  pages = pages.first(std::min(pages.size(), k_most));
  std::array<iovec, k_most> from;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!is_pointer(pages[i])) return 0;
    from[i] = {pointer_of(pages[i]), k_page_size};
  }
  const iovec to{into.data(), static_cast<std::size_t>(pages.size() * k_page_size)};
  const long got = copy_between(SYS_process_vm_readv, process_, {&to, 1}, {from.data(), pages.size()});
  return got > 0 ? static_cast<std::size_t>(got) / k_page_size : 0;
}

bool ProcessMemory::write(Addr at, std::span<const std::byte> from, MemoryWindow&) const noexcept {
  const ErrnoKeeper keeper;
  const auto size = static_cast<long>(from.size());
  if (mem_ >= 0 && is_offset(at) && transfer_at(SYS_pwrite64, mem_, from.data(), from.size(), at) == size) return true;
  if (!is_pointer(at)) return false;
  const iovec bytes{const_cast<std::byte*>(from.data()), from.size()}, to{pointer_of(at), from.size()};
  return copy_between(SYS_process_vm_writev, process_, {&bytes, 1}, {&to, 1}) == size;
}

}  // namespace jitunwind
