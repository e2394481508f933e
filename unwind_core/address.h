// Addresses in a target: plain ones, ranges, and code addresses that know whether they are return addresses.
// Does not read memory.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// An address in the target, which may be another process or another machine. A host pointer is never an Addr and an
/// Addr is never dereferenced.
using Addr = std::uint64_t;

/// Half open: `begin` belongs to the range, `end` does not. Empty when end <= begin.
struct AddrRange {
  Addr begin = 0;
  Addr end = 0;

  constexpr bool empty() const noexcept { return end <= begin; }
  constexpr std::uint64_t size() const noexcept { return empty() ? 0 : end - begin; }
  constexpr bool contains(Addr at) const noexcept { return at >= begin && at < end; }
  friend constexpr bool operator==(const AddrRange&, const AddrRange&) = default;
};

/// Where a frame stands in its code. A return address points behind the call, possibly into the next procedure or the
/// next row, so unwind information is looked up at the byte before it; an interrupted pc is looked up as it is.
class CodeAddress {
 public:
  constexpr CodeAddress() noexcept = default;

  /// Of a frame that has called.
  static constexpr CodeAddress returned_to(Addr return_address) noexcept { return {return_address, true}; }
  /// Of a frame that a signal has interrupted, or of a place in code.
  static constexpr CodeAddress interrupted(Addr pc) noexcept { return {pc, false}; }

  /// What a debugger prints.
  constexpr Addr value() const noexcept { return value_; }
  constexpr bool is_return_address() const noexcept { return return_address_; }

  /// The address to search ranges, rows and names with. The only "minus one" of the project.
  constexpr Addr lookup() const noexcept { return return_address_ && value_ != 0 ? value_ - 1 : value_; }

  friend constexpr bool operator==(const CodeAddress&, const CodeAddress&) = default;

 private:
  constexpr CodeAddress(Addr value, bool return_address) noexcept : value_(value), return_address_(return_address) {}

  Addr value_ = 0;
  bool return_address_ = false;
};

}  // namespace jitunwind
#pragma GCC visibility pop
