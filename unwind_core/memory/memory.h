// Memory of a target: one virtual read. Local, another process, a core file, callbacks, a snapshot differ in nothing
// else.
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

/// The notes of a Memory during one walk. The cursor has them, so that a Memory itself has no mutable state. Plain
/// data. `argument` is what the user of callbacks handed over; the library never looks at it.
struct MemoryWindow {
  void* argument = nullptr;
  AddrRange proven{};                  ///< contiguous range found readable during this walk
  std::array<Addr, 4> proven_pages{};  ///< page addresses, 0 = free entry; replaced round robin
  std::uint8_t next_page = 0;
  bool has_tried_mask = false;  ///< LocalMemory: its probe is known to tell the truth
  std::int32_t failure = 0;     ///< what the callback said that a read or write failed for; 0: none did
};

/// The seam between the engine and the bytes of a target.
class Memory {
 public:
  /// Copies up to into.size() bytes at `at` and returns how many were readable from the start; 0: none. Never faults,
  /// whatever `at` is. The local implementation is signal-safe.
  virtual std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept = 0;

  /// Host bytes of [at, at + size), where the target is this process and all of them are readable; else null: read().
  virtual const std::byte* view(Addr at, std::size_t size, MemoryWindow& window) const noexcept {
    (void)at, (void)size, (void)window;
    return nullptr;
  }

  /// Whether is_executable() has anything to say. False: whatever can be read may be code.
  virtual bool tells_executable() const noexcept { return false; }
  /// Whether `at` is in memory that may be executed; nothing where that cannot be found out. May cost system calls: for
  /// code that nothing is known of, not for every frame.
  virtual std::optional<bool> is_executable(Addr at, MemoryWindow& window) const noexcept {
    (void)at, (void)window;
    return std::nullopt;
  }

  /// Writes all of `from` or nothing. Default: not writable.
  virtual bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept {
    (void)at, (void)from, (void)window;
    return false;
  }

 protected:
  ~Memory() = default;  // nobody owns one by it; those with static storage have nothing to do at exit
};

/// The error of a read that has just failed: callback_failed where a callback said why, else unreadable_memory.
Error unreadable(const MemoryWindow& window, Addr at, const char* what) noexcept;

/// What a callback of the target's owner returned, to be handed on as it is: Error::at of callback_failed. Positive
/// numbers are no errors and become unspecified (-1).
Error callback_error(std::int32_t returned, const char* what) noexcept;
/// The number again; 0: not such an error.
std::int32_t callback_result(const Error& error) noexcept;

/// An unsigned integer of 1, 2, 4 or 8 bytes in the target's byte order. Error unreadable() at `at`, with `what`
/// (static storage) naming what was read.
Result<std::uint64_t> read_unsigned(const Memory& memory, MemoryWindow& window, Addr at, std::size_t size,
                                    bool big_endian, const char* what) noexcept;

/// One word of the CPU, likewise.
Result<std::uint64_t> read_word(const Memory& memory, MemoryWindow& window, Addr at, const Arch& arch,
                                const char* what) noexcept;

/// Writes one word of the CPU. Error read_only_register at `at`, with `what` naming what was to be written.
Status write_word(const Memory& memory, MemoryWindow& window, Addr at, std::uint64_t value, const Arch& arch,
                  const char* what) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
