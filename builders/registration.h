// Making described code known to every walk of this process, and taking it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "jitunwind/builders/description.h"
#include "jitunwind/dyn_info/registry/registry.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Where the code of a description ended up, and what is particular to this procedure.
struct Code {
  Addr start = 0;             ///< first byte, in this process
  std::uint64_t size = 0;     ///< bytes
  std::string_view name{};    ///< copied; empty: the description's
  Addr lsda = 0;              ///< 0: the description's
  Addr landing_pad_base = 0;  ///< what call-site tables are relative to; 0: start. Needs an LSDA
  void* user = nullptr;       ///< yours: what Frame::user() and ProcedureInfo::user give back, never looked into
};

/// One registered procedure. Owns what the registration needs beside the shared frame shape: descriptor, name, LSDA
/// record, and the CFI of a shape that is given as rows; one allocation. Cancels when it dies.
///
/// Not signal-safe. One thread at a time per object; different objects are independent. May live in a static object:
/// what it needs outlives every destructor of the process.
class [[nodiscard]] Registration {
 public:
  /// Holds nothing.
  Registration() noexcept = default;
  Registration(Registration&& other) noexcept : procedure_(std::exchange(other.procedure_, nullptr)) {}
  Registration& operator=(Registration&& other) noexcept;
  ~Registration() { (void)cancel(); }

  explicit operator bool() const noexcept { return procedure_ != nullptr; }
  /// {0,0} when it holds nothing.
  AddrRange range() const noexcept;
  /// Null when it holds nothing.
  const unw_dyn_info_t* info() const noexcept { return procedure_; }
  /// Of this procedure alone, the shared shape not included.
  std::size_t bytes() const noexcept;

  /// O(1), then waits for walks that are reading the description right now. On return nothing reads it and the code may
  /// be reused. Does nothing when it holds nothing. Error in_signal_handler: nothing changed, still registered (a
  /// destructor then leaves the procedure registered for good, since nothing of it may be freed).
  Status cancel() noexcept;
  /// Never waits: the code may be reused on return, memory is freed by itself once no walk can be reading it. Errors as
  /// cancel().
  Result<RetireTicket> retire() noexcept;
  /// Gives up ownership; the code stays registered. adopt() takes it back.
  [[nodiscard]] unw_dyn_info_t* release() noexcept { return std::exchange(procedure_, nullptr); }
  /// `released` must come from release().
  static Registration adopt(unw_dyn_info_t* released) noexcept { return Registration(released); }

 private:
  friend class RegistrationBatch;
  friend Result<Registration> register_code(const Description& description, const Code& code) noexcept;
  explicit Registration(unw_dyn_info_t* procedure) noexcept : procedure_(procedure) {}

  unw_dyn_info_t* procedure_ = nullptr;
};

/// O(1) at any number of registered procedures; thread-safe; not signal-safe. Errors: e_range and e_overlap when the
/// description does not fit the size; invalid_argument when it is for another CPU than this process; out_of_memory; and
/// those of register_procedure(). Nothing is registered then.
Result<Registration> register_code(const Description& description, const Code& code) noexcept;

/// The same of code without more than its place.
inline Result<Registration> register_code(const Description& description, const void* start,
                                          std::size_t size) noexcept {
  return register_code(description, Code{.start = reinterpret_cast<std::uintptr_t>(start), .size = size});
}

/// Many registered procedures that come and go together: taking all of them out costs one wait. Same rules as
/// Registration.
class RegistrationBatch {
 public:
  /// One code, and its description, which must stay until it is registered.
  struct Item {
    const Description* description;
    Code code;
  };

  RegistrationBatch() noexcept = default;
  RegistrationBatch(RegistrationBatch&& other) noexcept : procedures_(std::exchange(other.procedures_, nullptr)) {}
  RegistrationBatch& operator=(RegistrationBatch&& other) noexcept;
  ~RegistrationBatch() { (void)cancel(); }

  /// Registers all items or none, and adds them. Errors as of the function of that name.
  Status register_code(std::span<const Item> items) noexcept;
  /// Takes one over; an empty one is ignored. Error out_of_memory: `one` has it still.
  Status add(Registration&& one) noexcept;

  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }

  /// As Registration::cancel(), one wait for all; the batch is empty afterwards.
  Status cancel() noexcept;
  /// As Registration::retire(); the batch is empty afterwards.
  Result<RetireTicket> retire() noexcept;

 private:
  struct Procedures;
  Status make_room(std::size_t more) noexcept;

  Procedures* procedures_ = nullptr;  // null: none was ever registered
};

}  // namespace jitunwind
#pragma GCC visibility pop
