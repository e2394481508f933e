// Registration of an object file's code that a linker has placed in memory. Every function of the object becomes a
// procedure whose table refers to the object's FDE. Call frame information is neither copied nor generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A function as the object's symbol table lists it.
struct ObjectFunction {
  Addr start = 0;
  std::uint64_t size = 0;  ///< 0: not known
  std::string_view name{};
};

/// An object in memory, by addresses in this process. Only register_object() reads the spans' and names' memory.
struct ObjectCode {
  std::span<const AddrRange> code{};            ///< the sections of code
  AddrRange eh_frame{};                         ///< the relocated .eh_frame, up to its end or a terminator; empty: none
  std::span<const ObjectFunction> functions{};  ///< in any order; the first of several at one address names it
};

/// The procedures of one object. The destructor cancels them. Not signal-safe. One thread at a time per object;
/// different objects are independent. A static object may own them.
class [[nodiscard]] ObjectRegistration {
 public:
  /// Makes an empty object.
  ObjectRegistration() noexcept;
  ObjectRegistration(ObjectRegistration&& other) noexcept;
  ObjectRegistration& operator=(ObjectRegistration&& other) noexcept;
  ~ObjectRegistration();

  /// The procedures with an FDE in the order of their FDEs, then the others in the order of their addresses.
  std::span<const unw_dyn_info_t> procedures() const noexcept;
  /// Functions without an FDE. They have a name, but a walk can leave them only by a heuristic.
  std::span<const unw_dyn_info_t> undescribed() const noexcept;

  /// Takes all procedures out, with one wait for walks that read any of them at this moment. On return nothing reads
  /// `eh_frame`, and the code may be reused. No effect on an empty object. Error in_signal_handler: nothing changed,
  /// still registered; a destructor then leaves them registered for good, and the object's memory must stay.
  Status cancel() noexcept;

 private:
  friend Result<ObjectRegistration> register_object(const ObjectCode& object) noexcept;
  struct Procedures;
  explicit ObjectRegistration(Procedures* procedures) noexcept : procedures_(procedures) {}

  Procedures* procedures_ = nullptr;  // null: empty
};

/// Registers all functions that `eh_frame` describes, with or without symbols, and all functions that it does not
/// describe. `eh_frame` must stay in place, readable and unchanged until the procedures are cancelled. Code and tables
/// may be any distance apart. Each entry is read once: O(bytes + functions * log). Thread-safe; not signal-safe.
///
/// Errors, with the address of the entry or instruction: e_range (an FDE for code outside `code`), those of FdeScan and
/// FdeRows (a broken `eh_frame`), of register_procedure(); out_of_memory. Nothing is registered then. Does not throw.
Result<ObjectRegistration> register_object(const ObjectCode& object) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
