#include "jitunwind/dyn_info/registry/locking/stack_evidence_p.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

namespace {

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

bool frame_may_be_alive(FramePosition frame, std::uint64_t sp, std::uint64_t thread_locals) noexcept {
  const ErrnoKeeper keep_errno;
  for (; sp != 0; sp = sp_before_room(sp))
    if (!frame.is_below(sp) || search(frame, sp, thread_locals)) return true;
  return false;
}

}  // namespace jitunwind
