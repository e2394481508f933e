// Code that comes with call frame information of its own, as a linker has placed it in memory: every function of an
// object becomes a procedure whose table refers to the object's FDE. Copies no call frame information and makes none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A function as the object's symbol table has it.
struct ObjectFunction {
  Addr start = 0;
  std::uint64_t size = 0;  ///< 0: not known
  std::string_view name{};
};

/// Addresses in this process. What the spans and names refer to is read by register_object() only.
struct ObjectCode {
  std::span<const AddrRange> code{};  ///< its sections of code
  AddrRange eh_frame{};               ///< its .eh_frame, relocated; empty: none. Ends there or at a terminator
  std::span<const ObjectFunction> functions{};  ///< in any order; of several at one address the first names it
};

/// The procedures of one object. Cancels when it dies. Not signal-safe. One thread at a time per object; different
/// objects are independent. May live in a static object.
class [[nodiscard]] ObjectRegistration {
 public:
  /// Holds nothing.
  ObjectRegistration() noexcept;
  ObjectRegistration(ObjectRegistration&& other) noexcept;
  ObjectRegistration& operator=(ObjectRegistration&& other) noexcept;
  ~ObjectRegistration();

  /// In the order of their FDEs, then those without one, by address.
  std::span<const unw_dyn_info_t> procedures() const noexcept;
  /// Functions without FDE: they have a name, and the walk knows no way out of them but a guess.
  std::span<const unw_dyn_info_t> undescribed() const noexcept;

  /// One wait for walks that are reading any of it just now. On return nothing reads `eh_frame` and the code may be
  /// reused. Does nothing when it holds nothing. Error in_signal_handler: nothing changed, still registered (a
  /// destructor then leaves it registered for good, and the object's memory must stay).
  Status cancel() noexcept;

 private:
  friend Result<ObjectRegistration> register_object(const ObjectCode& object);
  struct Procedures;
  explicit ObjectRegistration(std::unique_ptr<Procedures> procedures) noexcept;

  std::unique_ptr<Procedures> procedures_;
};

/// All functions that `eh_frame` describes, whatever their symbols, and all functions that it does not. `eh_frame` must
/// stay in place, readable and unchanged until all is cancelled; anything may lie any distance from anything. Reads
/// every entry once: O(bytes + functions * log). Thread-safe; not signal-safe.
///
/// Errors, with the address of the entry or instruction they speak of: e_range (an FDE for code outside of `code`), all
/// of FdeScan and FdeRows (a broken `eh_frame`), those of register_procedure(). Nothing is registered then. Throws
/// std::bad_alloc.
Result<ObjectRegistration> register_object(const ObjectCode& object);

}  // namespace jitunwind
#pragma GCC visibility pop
