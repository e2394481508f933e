// Registration of described code for every walk of this process, and its cancellation.
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

class MarkRecorder;
template <class Cpu, class Recorder>
class ProcedureBuilder;

/// The place of a description's code, and the properties of this one procedure.
struct Code {
  Addr start = 0;             ///< first byte, in this process
  std::uint64_t size = 0;     ///< bytes
  std::string_view name{};    ///< copied; empty: the description's
  Addr lsda = 0;              ///< 0: the description's
  Addr landing_pad_base = 0;  ///< base of call-site tables; 0: start. Needs an LSDA
  void* user =
      nullptr;  ///< the caller's own value, returned by Frame::user() and ProcedureInfo::user, never dereferenced
};

/// One registered procedure. It owns, in one allocation, all that the registration needs beside the shared frame shape:
/// descriptor, name, LSDA record, and the CFI of a shape that is given as rows. The destructor cancels it.
///
/// Not signal-safe. One thread at a time per object; different objects are independent. A static object may own a
/// registration, because the registry outlives every destructor of the process.
class [[nodiscard]] Registration {
 public:
  /// Makes an empty object.
  Registration() noexcept = default;
  Registration(Registration&& other) noexcept : procedure_(std::exchange(other.procedure_, nullptr)) {}
  Registration& operator=(Registration&& other) noexcept;
  ~Registration() { (void)cancel(); }

  explicit operator bool() const noexcept { return procedure_ != nullptr; }
  /// {0,0} for an empty object.
  AddrRange range() const noexcept;
  /// Null for an empty object.
  const unw_dyn_info_t* info() const noexcept { return procedure_; }
  /// Bytes of this procedure alone, without the shared shape.
  std::size_t bytes() const noexcept;

  /// Takes the procedure out in O(1), then waits for walks that read the description at this moment. On return nothing
  /// reads it, and the code may be reused. No effect on an empty object. Error in_signal_handler: nothing changed,
  /// still registered; a destructor then leaves it registered for good, since nothing of it may be freed.
  Status cancel() noexcept;
  /// Takes the procedure out without waiting. The code may be reused on return; memory is freed once no walk can read
  /// it. Errors as cancel().
  Result<RetireTicket> retire() noexcept;
  /// Gives up ownership; the code stays registered. adopt() takes it back.
  [[nodiscard]] unw_dyn_info_t* release() noexcept { return std::exchange(procedure_, nullptr); }
  /// Precondition: `released` comes from release().
  static Registration adopt(unw_dyn_info_t* released) noexcept { return Registration(released); }

 private:
  friend class RegistrationBatch;
  friend Result<Registration> register_code(const Description& description, const Code& code) noexcept;
  friend Result<Registration> register_marks(MarkRecorder& marks, const Code& code) noexcept;
  explicit Registration(unw_dyn_info_t* procedure) noexcept : procedure_(procedure) {}

  unw_dyn_info_t* procedure_ = nullptr;
};

/// O(1) at any number of registered procedures; thread-safe; not signal-safe. Errors: e_range and e_overlap when the
/// description does not fit the size; invalid_argument when it is for another CPU than this process; out_of_memory; and
/// those of register_procedure(). Nothing is registered after an error.
Result<Registration> register_code(const Description& description, const Code& code) noexcept;

/// Registers code that has no properties but its place.
inline Result<Registration> register_code(const Description& description, const void* start,
                                          std::size_t size) noexcept {
  return register_code(description, Code{.start = reinterpret_cast<std::uintptr_t>(start), .size = size});
}

/// Registers what marks have recorded, as it is, in one allocation, and forgets it, so that the object serves the next
/// procedure. Nothing is checked but places and register numbers: mistakes that only build() finds, such as a slot that
/// is used twice, give wrong rows, and directives that contradict each other end a walk that meets them.
/// validate(*info(), arch) finds the latter; JITUNWIND_CHECK=refuse refuses both, with the code of the finding. Not
/// signal-safe.
///
/// Errors: those of register_code() above; e_range, e_when: an instruction without bytes, or outside of the procedure;
/// e_overlap: offsets from the end that lie in front of others, without size(); e_reg; e_label; too_deep: more than
/// 65536 directives.
Result<Registration> register_marks(MarkRecorder& marks, const Code& code) noexcept;
template <class Cpu>
Result<Registration> register_code(ProcedureBuilder<Cpu, MarkRecorder>& marks, const Code& code) noexcept {
  return register_marks(marks.recorder(), code);
}

/// Many registered procedures with one lifetime: one wait takes all of them out. The rules of Registration apply.
class RegistrationBatch {
 public:
  /// Code, and its description, which must exist until then. Code of size 0 ends where that of the next item begins.
  struct Item {
    const Description* description;
    Code code;
  };

  RegistrationBatch() noexcept = default;
  RegistrationBatch(RegistrationBatch&& other) noexcept : procedures_(std::exchange(other.procedures_, nullptr)) {}
  RegistrationBatch& operator=(RegistrationBatch&& other) noexcept;
  ~RegistrationBatch() { (void)cancel(); }

  /// Registers all items or none, and adds them to the batch. Errors as jitunwind::register_code().
  Status register_code(std::span<const Item> items) noexcept;
  /// Moves a registration into the batch; an empty one is ignored. Error out_of_memory: `one` keeps it.
  Status add(Registration&& one) noexcept;

  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }

  /// Cancels all procedures with one wait, as Registration::cancel(); the batch is empty afterwards.
  Status cancel() noexcept;
  /// Retires all procedures, as Registration::retire(); the batch is empty afterwards.
  Result<RetireTicket> retire() noexcept;

 private:
  struct Procedures;
  Status make_room(std::size_t more) noexcept;

  Procedures* procedures_ = nullptr;  // null: nothing was registered yet
};

}  // namespace jitunwind
#pragma GCC visibility pop
