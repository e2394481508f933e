// The program's mmap, munmap, mprotect and mremap. Each does what the next definition does, the C library's, but not in
// a moment in which a file is being mapped over code. Code whose pages are unmapped or mapped anew is withdrawn first.
// Forked children end by _exit, and others by its system call: no destructor runs that would remove their files.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/publish/mapping_gate_p.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

constinit std::atomic<std::uint32_t> calls_inside{0};
constinit std::atomic<bool> closed{false};
constinit thread_local bool closes = false;  // this thread has closed it

constexpr long k_wait = 20'000;  // nanoseconds; a moment has some 50'000 for 64 KiB

}  // namespace

// A call that enters either sees that the gate is closed, or is seen by the thread that closes it: both write first and
// then read.

MappingMoment::MappingMoment() noexcept {
  closed.store(true, std::memory_order_seq_cst);
  is_closed_ = calls_inside.load(std::memory_order_seq_cst) == 0;
  closes = is_closed_;
  if (!is_closed_) closed.store(false, std::memory_order_release);
}

MappingMoment::~MappingMoment() {
  closes = false;
  if (is_closed_) closed.store(false, std::memory_order_release);
}

void enter_mapping_gate() noexcept {
  for (;;) {
    calls_inside.fetch_add(1, std::memory_order_seq_cst);
    if (!closed.load(std::memory_order_seq_cst)) return;
    calls_inside.fetch_sub(1, std::memory_order_release);
    const ErrnoKeeper keep_errno;
    while (closed.load(std::memory_order_acquire)) sleep_for_nanoseconds(k_wait);
  }
}

void leave_mapping_gate() noexcept { calls_inside.fetch_sub(1, std::memory_order_release); }

MappingCall::MappingCall() noexcept : is_of_program_(!closes) {
  if (is_of_program_) enter_mapping_gate();
}

MappingCall::~MappingCall() {
  if (is_of_program_) leave_mapping_gate();
}

void forget_mapping_calls_in_child() noexcept {
  calls_inside.store(0, std::memory_order_relaxed);
  closed.store(false, std::memory_order_relaxed);
}

}  // namespace jitunwind

#ifdef JITUNWIND_HOLDS_UP_MAPPING

// A static program has none.
#pragma weak dlsym

namespace jitunwind {
namespace {

using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
using Unmap = int (*)(void*, std::size_t);
using Protect = int (*)(void*, std::size_t, int);
using Remap = void* (*)(void*, std::size_t, std::size_t, int, ...);
using Kernel = long (*)(long, long, long, long, long, long, long);

long call_first(long number, long a, long b, long c, long d, long e, long f);

/// The next definitions. Null before constructors run, and in static programs: the kernel is called. These define no
/// syscall.
struct NextCalls {
  Map map = nullptr;
  Unmap unmap = nullptr;
  Protect protect = nullptr;
  Remap remap = nullptr;
  Kernel kernel = call_first;
};
constinit NextCalls next{};

template <class Function>
void find_next(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

[[gnu::constructor(101)]] void find_next_calls() noexcept {
  if (&dlsym == nullptr) return;
  find_next(next.map, "mmap");
  find_next(next.unmap, "munmap");
  find_next(next.protect, "mprotect");
  find_next(next.remap, "mremap");
  find_next(next.kernel, "syscall");
}

/// Constructors of other libraries run before this one's.
long call_first(long number, long a, long b, long c, long d, long e, long f) {
  find_next(next.kernel, "syscall");
  return next.kernel(number, a, b, c, d, e, f);
}

long exit_in_turn(long number, long status, long, long, long, long, long) {
  remove_published_files();
  return next.kernel(number, status, 0, 0, 0, 0, 0);
}

/// A call of the program's by which pages go.
class UnmappingCall {
 public:
  void unmaps(const void* begin, std::size_t size) const noexcept {
    const Addr at = reinterpret_cast<std::uintptr_t>(begin);
    if (call_.is_of_program()) withdraw_unmapped({at, at + size});
  }

 private:
  const MappingCall call_;
};

void* map(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (next.map != nullptr) return next.map(at, size, protection, flags, file, offset);
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, offset));
}

void* map_in_turn(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if ((flags & MAP_FIXED) == 0) return map(at, size, protection, flags, file, offset);
  const UnmappingCall call;
  call.unmaps(at, size);
  return map(at, size, protection, flags, file, offset);
}

}  // namespace

bool are_mapping_calls_heard() noexcept {
  return next.protect != nullptr && dlsym(RTLD_DEFAULT, "mprotect") == reinterpret_cast<void*>(&::mprotect);
}

}  // namespace jitunwind

using jitunwind::next;

#define JITUNWIND_IN_TURN extern "C" [[gnu::visibility("default"), gnu::weak]]

JITUNWIND_IN_TURN void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  return jitunwind::map_in_turn(at, size, protection, flags, file, offset);
}
JITUNWIND_IN_TURN void* mmap64(void* at, std::size_t size, int protection, int flags, int file,
                               off64_t offset) noexcept {
  return jitunwind::map_in_turn(at, size, protection, flags, file, offset);
}

JITUNWIND_IN_TURN int munmap(void* at, std::size_t size) noexcept {
  const jitunwind::UnmappingCall call;
  call.unmaps(at, size);
  return next.unmap != nullptr ? next.unmap(at, size) : static_cast<int>(::syscall(SYS_munmap, at, size));
}

JITUNWIND_IN_TURN int mprotect(void* at, std::size_t size, int protection) noexcept {
  const jitunwind::MappingCall call;
  if (next.protect != nullptr) return next.protect(at, size, protection);
  return static_cast<int>(::syscall(SYS_mprotect, at, size, protection));
}

/// The last argument is passed on, whether the caller has one or not: the kernel reads it only with MREMAP_FIXED.
JITUNWIND_IN_TURN void* mremap(void* at, std::size_t size, std::size_t new_size, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  const jitunwind::UnmappingCall call;
  call.unmaps(at, size);
  if (to != nullptr) call.unmaps(to, new_size);
  if (next.remap != nullptr) return next.remap(at, size, new_size, flags, to);
  return reinterpret_cast<void*>(::syscall(SYS_mremap, at, size, new_size, flags, to));
}

JITUNWIND_IN_TURN void _exit(int status) {
  jitunwind::remove_published_files();
  for (;;) ::syscall(SYS_exit_group, status);
}
JITUNWIND_IN_TURN void _Exit(int status) noexcept { _exit(status); }

/// The shared library's syscall, which jumps to the C library's. It has as many arguments as that, which the program
/// may not have given: what is in their place stays, as it does for a child that begins on another stack.
extern "C" [[gnu::visibility("default")]] long jitunwind_syscall(long number, long a, long b, long c, long d, long e,
                                                                 long f) {
  return (number == SYS_exit_group ? &jitunwind::exit_in_turn : next.kernel)(number, a, b, c, d, e, f);
}

#else

bool jitunwind::are_mapping_calls_heard() noexcept { return false; }

#endif
