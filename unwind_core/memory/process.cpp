#include "jitunwind/unwind_core/memory/process.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// Whether a pointer of this program can have that value. Addresses of a target may have more bits.
bool is_pointer(Addr at) noexcept { return at <= std::numeric_limits<std::uintptr_t>::max(); }

/// Offsets in files are signed.
bool is_offset(Addr at) noexcept { return at <= static_cast<Addr>(std::numeric_limits<std::int64_t>::max()); }

}  // namespace

std::size_t ProcessMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  if (into.empty()) return 0;
  const ErrnoKeeper keeper;
  if (at != 0 && into.size() > -at) into = into.first(static_cast<std::size_t>(-at));
  long got = 0;
  if (mem_ >= 0 && is_offset(at)) {
    do got = read_at(mem_, into.data(), into.size(), at);
    while (got < 0 && errno == EINTR);
  } else if (is_pointer(at)) {
    const iovec to{into.data(), into.size()}, from{pointer_to(at), into.size()};
    got = copy_between(SYS_process_vm_readv, process_, {&to, 1}, {&from, 1});
  }
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool ProcessMemory::write(Addr at, std::span<const std::byte> from, MemoryWindow&) const noexcept {
  const ErrnoKeeper keeper;
  const auto size = static_cast<long>(from.size());
  if (mem_ >= 0 && is_offset(at) && write_at(mem_, from.data(), from.size(), at) == size) return true;
  if (!is_pointer(at)) return false;
  const iovec bytes{const_cast<std::byte*>(from.data()), from.size()}, to{pointer_to(at), from.size()};
  return copy_between(SYS_process_vm_writev, process_, {&bytes, 1}, {&to, 1}) == size;
}

}  // namespace jitunwind
