// Memory of a target: one virtual read. The local process, another process, a core file, callbacks and a snapshot
// differ only in this function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The notes of a Memory during one walk. The cursor holds them, so a Memory itself has no mutable state. Plain data.
/// The user of callbacks provides `argument`; the library never looks at it.
struct MemoryWindow {
  void* argument = nullptr;
  AddrRange proven{};                  ///< contiguous range found readable during this walk
  std::array<Addr, 4> proven_pages{};  ///< page addresses, 0 = free entry; replaced round robin
  std::uint8_t next_page = 0;
  bool has_tried_mask = false;  ///< LocalMemory has checked that its probe is reliable
  std::int32_t failure = 0;     ///< the callback's reason for a failed read or write; 0 without failure
};

/// The seam between the engine and the bytes of a target.
class Memory {
 public:
  /// Copies up to into.size() bytes at `at` and returns how many were readable from the start, 0 if none. Never faults,
  /// whatever `at` is. The local implementation is signal-safe.
  virtual std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept = 0;

  /// Host bytes of [at, at + size) when the target is this process and all are readable; otherwise null: use read().
  virtual const std::byte* view(Addr at, std::size_t size, MemoryWindow& window) const noexcept {
    (void)at, (void)size, (void)window;
    return nullptr;
  }

  /// Whether is_executable() can give answers. If not, any readable memory may be code.
  virtual bool tells_executable() const noexcept { return false; }
  /// Whether `at` is in executable memory; nothing when that is unknown. May cost system calls, so it is meant for
  /// unknown code and not for every frame.
  virtual std::optional<bool> is_executable(Addr at, MemoryWindow& window) const noexcept {
    (void)at, (void)window;
    return std::nullopt;
  }

  /// Writes all of `from` or nothing. The default implementation writes nothing.
  virtual bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept {
    (void)at, (void)from, (void)window;
    return false;
  }

 protected:
  ~Memory() = default;  // nobody deletes through it; objects with static storage need no destruction at exit
};

/// The error of a failed read: callback_failed when a callback gave a reason, otherwise unreadable_memory.
Error unreadable(const MemoryWindow& window, Addr at, const char* what) noexcept;

/// Makes an error of a number that a callback of the target's owner returned. Error::at of callback_failed hands the
/// number on unchanged. Positive numbers are no errors and become unspecified (-1).
Error callback_error(std::int32_t returned, const char* what) noexcept;
/// Returns the callback's number, or 0 when the error has none.
std::int32_t callback_result(const Error& error) noexcept;

/// Reads an unsigned integer of 1, 2, 4 or 8 bytes in the target's byte order. Fails with unreadable() at `at`, where
/// `what` (static storage) names the value.
Result<std::uint64_t> read_unsigned(const Memory& memory, MemoryWindow& window, Addr at, std::size_t size,
                                    bool big_endian, const char* what) noexcept;

/// Reads one word of the CPU. The errors are those of read_unsigned().
Result<std::uint64_t> read_word(const Memory& memory, MemoryWindow& window, Addr at, const Arch& arch,
                                const char* what) noexcept;

/// Writes one word of the CPU. Fails with read_only_register at `at`, where `what` names the value.
Status write_word(const Memory& memory, MemoryWindow& window, Addr at, std::uint64_t value, const Arch& arch,
                  const char* what) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
