#include "jitunwind/dyn_info/registry/locking/reader_slots_p.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

constexpr std::string_view k_of_this_process = "/proc/self/task/";
constexpr std::string_view k_of_any_process = "/proc/";

/// Reads FOLDER/THREAD/NAME, cut to the buffer.
std::string_view read_thread_file(std::string_view folder, std::uint32_t thread, std::string_view name, char* buffer,
                                  std::size_t size) noexcept {
  const ErrnoKeeper keep_errno;
  char path[64] = {};
  char* end = path + folder.copy(path, 16);
  end = std::to_chars(end, end + 16, thread).ptr;
  *end++ = '/';
  end += name.copy(end, 16);
  *end = 0;
  const ReadableFile file(path);
  const long length = file.is_open() ? file.read(buffer, size) : -1;
  return length <= 0 ? std::string_view{} : std::string_view(buffer, static_cast<std::size_t>(length));
}

/// Returns the n-th, from 0, of fields that are separated by single spaces.
std::string_view field(std::string_view text, unsigned n) noexcept {
  for (; n > 0; --n) {
    const std::size_t space = text.find(' ');
    if (space == text.npos) return {};
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find_first_of(" \n"));
}

std::optional<std::uint64_t> parsed_number(std::string_view text, int base) noexcept {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return {};
  return value;
}

constexpr std::uint64_t k_most = std::uint64_t{64} << 20;    // larger stacks are not searched
constexpr std::uint64_t k_deepest = std::uint64_t{8} << 20;  // limit for the frames of handlers below the frame

using Words = std::span<std::uintptr_t>;

/// Number of bytes read; 0: unreadable memory; -1: reading is not permitted. Never faults.
ssize_t read_words(std::uint64_t at, Words words) noexcept {
  const iovec into{words.data(), words.size_bytes()};
  const iovec from{pointer_to(at), words.size_bytes()};
  const ssize_t got = process_vm_readv(getpid(), &into, 1, &from, 1, 0);
  return got < 0 && errno == EFAULT ? 0 : got;
}

bool is_unreadable(std::uint64_t at) noexcept {
  std::uintptr_t word = 0;
  return read_words(at, {&word, 1}) == 0;
}

/// Whether the word may be the stack pointer of code at the frame or below it. Notes of a stack's start are not: the C
/// library and other code keep such notes on the stack, the edge of an unreadable page.
bool may_be_below(FramePosition frame, std::uint64_t word) noexcept {
  if (frame.above(word) > k_deepest) return false;
  return word % k_page_size != 0 || !(is_unreadable(word) || is_unreadable(word - k_page_size));
}

bool search(FramePosition frame, std::uint64_t sp, std::uint64_t thread_locals) noexcept {
  const std::uint64_t begin = sp & -std::uint64_t{sizeof(std::uintptr_t)};
  const std::uint64_t end = thread_locals > begin ? std::min(thread_locals, begin + k_most) : begin + k_most;
  std::array<std::uintptr_t, 128> words;
  for (std::uint64_t at = begin; at < end;) {
    // A read does not cross a page, since the next one may be unreadable.
    const std::uint64_t size = std::min({k_page_size - at % k_page_size, std::uint64_t{sizeof words}, end - at});
    const Words part(words.data(), static_cast<std::size_t>(size) / sizeof words[0]);
    const ssize_t got = part.empty() ? 0 : read_words(at, part);
    if (got <= 0) return got < 0 || at == begin;
    if (std::any_of(part.begin(), part.end(), [&](std::uint64_t word) { return may_be_below(frame, word); }))
      return true;
    at += static_cast<std::uint64_t>(got);
  }
  return end == begin + k_most;
}

}  // namespace

// The C library keeps the id beside the thread-local variables. It tells the id by the number of the thread's clock,
// which the kernel defines as ~id << 3 | kind. fork() keeps it up to date, and a child of vfork() has its parent's.
std::uint32_t this_thread_id() noexcept {
  clockid_t clock{};
  const auto id = pthread_getcpuclockid(pthread_self(), &clock) == 0 ? ~(clock >> 3) : 0;
  return static_cast<std::uint32_t>(id != 0 ? id : syscall(SYS_gettid));
}

bool thread_exists(std::uint32_t thread) noexcept {
  const ErrnoKeeper keep_errno;
  const auto id = static_cast<pid_t>(thread);
  if (syscall(SYS_tgkill, getpid(), id, 0) == 0 || errno != ESRCH) return true;
  return kill(id, 0) == 0 || errno != ESRCH;
}

std::optional<ThreadStatus> read_thread_status(std::uint32_t thread) noexcept {
  char buffer[1024];
  std::string_view text = read_thread_file(k_of_this_process, thread, "stat", buffer, sizeof buffer);
  if (text.empty()) text = read_thread_file(k_of_any_process, thread, "stat", buffer, sizeof buffer);
  // proc(5): field 2, the name, may hold anything and ends with the last parenthesis; field 3 is the state, field 22
  // the start time.
  const std::size_t name_end = text.rfind(") ");
  if (name_end == text.npos) return {};
  text.remove_prefix(name_end + 2);
  const std::string_view state = field(text, 0);
  const auto start = parsed_number(field(text, 22 - 3), 10);
  if (state.size() != 1 || !start) return {};
  return ThreadStatus{state[0], *start};
}

std::uint64_t boot_time_ns() noexcept { return static_cast<std::uint64_t>(nanoseconds_of(CLOCK_BOOTTIME)); }

std::uint64_t ticks_since_boot(std::uint64_t boot_time_ns) noexcept {
  return boot_time_ns / (1'000'000'000u / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
}

std::optional<std::uint64_t> read_blocked_stack_pointer(std::uint32_t thread) noexcept {
  char buffer[256];
  const std::string_view text = read_thread_file(k_of_this_process, thread, "syscall", buffer, sizeof buffer);
  // The text is "running", or "-1 SP PC" if the thread is blocked outside a system call, or "NUMBER ARGUMENT*6 SP PC".
  const std::string_view sp = field(text, text.substr(0, 3) == "-1 " ? 1 : 7);
  if (sp.substr(0, 2) != "0x") return {};
  return parsed_number(sp.substr(2), 16);
}

bool frame_may_be_alive(FramePosition frame, std::uint64_t sp, std::uint64_t thread_locals) noexcept {
  const ErrnoKeeper keep_errno;
  for (; sp != 0; sp = sp_before_room(sp))
    if (!frame.is_below(sp) || search(frame, sp, thread_locals)) return true;
  return false;
}

}  // namespace jitunwind
