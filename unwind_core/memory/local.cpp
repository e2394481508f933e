// Reads and writes of this process's own memory after probes. A page is accessed only after a system call has touched
// it without an error.
#include "jitunwind/unwind_core/memory/local.h"

#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/copied.h"
#include "jitunwind/unwind_core/memory/known_stack_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

/// The type is not a template argument, because gcc drops a type's attributes there.
volatile UnalignedWord* host_word(Addr at) noexcept {
  return reinterpret_cast<volatile UnalignedWord*>(static_cast<std::uintptr_t>(at));
}

JITUNWIND_RAW_ACCESS void raw_load(Addr at, std::span<std::byte> into) noexcept {
  std::size_t done = 0;
  for (; into.size() - done >= sizeof(UnalignedWord); done += sizeof(UnalignedWord))
    *reinterpret_cast<UnalignedWord*>(into.data() + done) = *host_word(at + done);
  for (; done < into.size(); ++done) into[done] = *pointer_to<const volatile std::byte>(at + done);
}

JITUNWIND_RAW_ACCESS void raw_store(Addr at, std::span<const std::byte> from) noexcept {
  std::size_t done = 0;
  for (; from.size() - done >= sizeof(UnalignedWord); done += sizeof(UnalignedWord))
    *host_word(at + done) = *reinterpret_cast<const UnalignedWord*>(from.data() + done);
  for (; done < from.size(); ++done) *pointer_to<volatile std::byte>(at + done) = from[done];
}

constexpr std::size_t k_kernel_sigset_size = 8;

/// rt_sigprocmask copies the new mask before it checks `how` (kernel/signal.c). An impossible `how` therefore fails
/// with EFAULT for memory that cannot be read and with EINVAL for any other, and changes nothing.
int errno_of_mask(Addr at) noexcept {
  constexpr int k_impossible_how = -1;
  const long result = ::syscall(SYS_rt_sigprocmask, k_impossible_how, pointer_to(at), nullptr, k_kernel_sigset_size);
  return result == -1 ? errno : 0;
}

/// Whether probes by signal masks are reliable. If not, pages are probed by copies, which cost more.
constinit std::atomic<bool> masks_tell{true};

constinit std::atomic<bool> is_under_valgrind{false};

/// Valgrind is recognised by the libraries that it preloads. It reports masks that cannot be read as errors.
[[gnu::constructor(101)]] void notice_valgrind() {
  const char* const preloaded = ::getenv("LD_PRELOAD");
  if (!preloaded || !std::strstr(preloaded, "/vgpreload_")) return;
  is_under_valgrind.store(true, std::memory_order_relaxed);
  masks_tell.store(false, std::memory_order_relaxed);
}

/// Whether the kernel reads a mask before it checks `how`, as an emulator may not.
constinit std::atomic<bool> masks_come_first{false};

/// A sandbox may answer in the kernel's place with the same error for every call, from any moment on (seccomp(2),
/// SECCOMP_RET_ERRNO). The kernel lets a call without a mask succeed. The first check of all probes an address of the
/// kernel, too, which nobody can read: the lowest such address of x86-64, and with 32 bits the last page. That takes
/// the kernel six times as long, because it handles a fault.
[[gnu::hot]] void try_mask() noexcept {
  constexpr Addr k_of_kernel = sizeof(void*) == 8 ? ~Addr{0} << 47 : Addr{0xffff'f000};
  const ErrnoKeeper keeper;
  if (!masks_tell.load(std::memory_order_relaxed)) return;
  const bool come_first = masks_come_first.load(std::memory_order_relaxed) || errno_of_mask(k_of_kernel) == EFAULT;
  const bool tells = come_first && errno_of_mask(0) == 0;
  (tells ? masks_come_first : masks_tell).store(tells, std::memory_order_relaxed);
}

/// A probe succeeds only where a sandbox answers it. A null pointer is no mask.
[[gnu::hot]] bool is_readable_mask(Addr at) noexcept {
  const ErrnoKeeper keeper;
  if (at != 0 && masks_tell.load(std::memory_order_relaxed)) {
    const int error = errno_of_mask(at);
    if (error != 0) return error == EINVAL;
    masks_tell.store(false, std::memory_order_relaxed);
  }
  std::array<std::byte, k_kernel_sigset_size> copy;
  return copy_at_once(at, copy) == long{copy.size()};
}

/// Clears a gap in the stack that has become readable, so that the stack can be learned.
void close_gap(AddrRange readable) noexcept {
  std::atomic<Addr>& gap = thread_stack.gap;
  if (readable.contains(gap.load(std::memory_order_relaxed))) [[unlikely]]
    gap.store(0, std::memory_order_relaxed);
}

/// Probes one page, or by the same call this one and the next: the mask lies on both.
[[gnu::hot]] bool are_readable(Addr page, Addr pages) noexcept {
  if (!is_readable_mask(pages == 1 ? page : page + k_page_size - k_kernel_sigset_size / 2)) return false;
  close_gap({page, page + pages * k_page_size});
  return true;
}

bool is_proven(const MemoryWindow& window, Addr page) noexcept {
  if (window.proven.contains(page)) return true;
  // 0 marks a free entry; page 0 itself is known only by `proven`.
  return page != 0 && std::ranges::find(window.proven_pages, page) != window.proven_pages.end();
}

/// A walk climbs one stack, so most pages extend the range found before. Other pages (code, other stacks) replace each
/// other in turn.
void keep_proven(MemoryWindow& window, Addr page) noexcept {
  const Addr page_end = page + k_page_size;
  if (window.proven.empty() && page_end != 0)
    window.proven = {page, page_end};
  else if (page == window.proven.end && page_end != 0)
    window.proven.end = page_end;
  else if (page_end == window.proven.begin)
    window.proven.begin = page;
  else
    window.proven_pages[window.next_page++ % window.proven_pages.size()] = page;
}

/// A walk that leaves a frame of more than a page continues above it. It rarely reads again where it came from.
void go_on_at(MemoryWindow& window, AddrRange pages) noexcept {
  if (pages.begin != window.proven.end) {
    const AddrRange left = window.proven;
    window.proven.begin = pages.begin;
    for (std::size_t i = 0; i < window.proven_pages.size() / 2 && left.begin + i * k_page_size < left.end; ++i)
      window.proven_pages[window.next_page++ % window.proven_pages.size()] = left.end - (i + 1) * k_page_size;
  }
  window.proven.end = pages.end;
}

[[gnu::hot]] bool prove(MemoryWindow& window, Addr page) noexcept {
  if (is_proven(window, page)) return true;
  const AddrRange stack = thread_stack.range();
  const bool is_on_stack = stack.contains(page);
  if (!is_on_stack && !window.has_tried_mask) {
    try_mask();
    window.has_tried_mask = true;
  }
  // The known stack only predicts where a walk upwards is likely to continue.
  if (is_on_stack && page >= window.proven.end && stack.contains(page + k_page_size) && are_readable(page, 2)) {
    go_on_at(window, {page, page + 2 * k_page_size});
    return true;
  }
  if (are_readable(page, 1)) {
    keep_proven(window, page);
    return true;
  }
  if (is_on_stack) forget_known_stacks();
  return false;
}

constexpr Addr k_last_address = std::numeric_limits<std::uintptr_t>::max();

/// Returns at most `size`, and no more than the bytes from `at` to the end of the address space: nothing wraps around.
std::size_t clamp_to_address_space(Addr at, std::size_t size) noexcept {
  if (at > k_last_address) return 0;
  return at == 0 ? size : static_cast<std::size_t>(std::min<Addr>(size, k_last_address - at + 1));
}

/// Returns how many of `size` bytes at `at` can be read, counted from the first one.
[[gnu::hot]] std::size_t prove_range(MemoryWindow& window, Addr at, std::size_t size) noexcept {
  const std::size_t wanted = clamp_to_address_space(at, size);
  if (wanted == 0) return 0;
  const Addr last = at + (wanted - 1);
  if (window.proven.contains(at) && window.proven.contains(last)) return wanted;
  for (Addr page = page_of(at);; page += k_page_size) {
    if (!prove(window, page)) return page > at ? static_cast<std::size_t>(page - at) : 0;
    if (page == page_of(last)) return wanted;
  }
}

}  // namespace

bool under_valgrind() noexcept { return is_under_valgrind.load(std::memory_order_relaxed); }

/// futex(2), FUTEX_WAKE_OP: `*uaddr2 += 0` is one atomic access by the kernel, so it tries the page without ever
/// changing its contents. Nobody waits on `uaddr`. A waiter on the probed word itself may see one spurious wake-up,
/// which futex(2) allows at any time.
bool is_writable(Addr at) noexcept {
  constexpr std::uint32_t k_add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0);
  const ErrnoKeeper keeper;
  std::uint32_t nobody = 0;
  return ::syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, nullptr, pointer_to(at & ~Addr{3}),
                   k_add_nothing) != -1;
}

/// msync(2) fails with ENOMEM when a page is not mapped; with MS_ASYNC alone it writes nothing. Other errors say
/// nothing about pages. The call uses syscall(2), since the C library's function is a cancellation point.
bool are_mapped(Addr first, Addr last) noexcept {
  const ErrnoKeeper keeper;
  const Addr begin = first & ~(Addr{::getauxval(AT_PAGESZ)} - 1);
  const auto size = static_cast<std::size_t>(last - begin) + 1;
  return ::syscall(SYS_msync, pointer_to(begin), size, MS_ASYNC) == 0 || errno != ENOMEM;
}

[[gnu::hot]] Addr first_unreadable_page(Addr page, Addr end) noexcept {
  if (page < end) try_mask();
  while (page < end && end - page >= 2 * k_page_size && are_readable(page, 2)) page += 2 * k_page_size;
  while (page < end && are_readable(page, 1)) page += k_page_size;
  return page;
}

[[gnu::hot]] std::size_t LocalMemory::read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept {
  const std::size_t readable = prove_range(window, at, into.size());
  raw_load(at, into.first(readable));
  return readable;
}

[[gnu::hot]] const std::byte* LocalMemory::view(Addr at, std::size_t size, MemoryWindow& window) const noexcept {
  return prove_range(window, at, size) == size ? pointer_to<const std::byte>(at) : nullptr;
}

bool LocalMemory::write(Addr at, std::span<const std::byte> from, MemoryWindow&) const noexcept {
  if (from.empty()) return true;
  if (clamp_to_address_space(at, from.size()) != from.size()) return false;
  const Addr last_page = page_of(at + (from.size() - 1));
  // The first access is at `at`, not at the beginning of its page, which may lie below the stack: Valgrind would
  // complain.
  for (Addr tried = at;; tried = page_of(tried) + k_page_size) {
    if (!is_writable(tried)) return false;
    if (page_of(tried) == last_page) break;
  }
  raw_store(at, from);
  return true;
}

}  // namespace jitunwind
