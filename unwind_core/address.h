// Addresses in a target: plain addresses, ranges, and code addresses that know whether they are return addresses.
// Nothing here reads memory.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// An address in the target, which may be another process or another machine. A host pointer is never an Addr and an
/// Addr is never dereferenced.
using Addr = std::uint64_t;

/// A half-open range: `begin` belongs to it, `end` does not. It is empty when end <= begin.
struct AddrRange {
  Addr begin = 0;
  Addr end = 0;

  constexpr bool empty() const noexcept { return end <= begin; }
  constexpr std::uint64_t size() const noexcept { return empty() ? 0 : end - begin; }
  constexpr bool contains(Addr at) const noexcept { return at >= begin && at < end; }
  friend constexpr bool operator==(const AddrRange&, const AddrRange&) = default;
};

/// The place of a frame in its code. A return address points behind the call, possibly into the next procedure or the
/// next row, so unwind information is looked up at the byte before it. An interrupted pc is looked up unchanged.
class CodeAddress {
 public:
  constexpr CodeAddress() noexcept = default;

  /// The address of a frame that has made a call.
  static constexpr CodeAddress returned_to(Addr return_address) noexcept { return {return_address, true}; }
  /// The address of a frame that a signal has interrupted, or any place in code.
  static constexpr CodeAddress interrupted(Addr pc) noexcept { return {pc, false}; }

  /// The address that a debugger prints.
  constexpr Addr value() const noexcept { return value_; }
  constexpr bool is_return_address() const noexcept { return return_address_; }

  /// The address for searches of ranges, rows and names. This is the only "minus one" of the project.
  constexpr Addr lookup() const noexcept { return return_address_ && value_ != 0 ? value_ - 1 : value_; }

  friend constexpr bool operator==(const CodeAddress&, const CodeAddress&) = default;

 private:
  constexpr CodeAddress(Addr value, bool return_address) noexcept : value_(value), return_address_(return_address) {}

  Addr value_ = 0;
  bool return_address_ = false;
};

}  // namespace jitunwind
#pragma GCC visibility pop
