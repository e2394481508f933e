// The process-wide registry of procedures: a list that other processes read, and a private index that lookups use.
// docs/registry.md describes how it works, what is proven and what it costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class CodeChanges;

// Writers take O(1) for each procedure, at any number of them and in any order. They are thread-safe but not
// signal-safe: a call in a signal handler that interrupted a writer on its own thread fails with in_signal_handler and
// changes nothing. register and cancel exclude each other for a few instructions. A thread that is suspended there
// delays them, but never a lookup and never retire.

/// Says what directly follows a descriptor in memory.
enum class Behind : std::uint8_t {
  nothing,
  user_word,  ///< a word that the registering code sets and a walk reports: ProcedureInfo::user
};

/// `di` and all it points to must stay mapped and unchanged until the procedure is cancelled, or retired and reclaimed.
/// `next` and `prev` may hold anything, and are written whenever a neighbour comes or goes. Unmapped or read-only
/// memory faults. The newest procedure wins if several cover an address. Errors: already_registered, also for a
/// procedure that is retired and not reclaimed; e_range (empty or inverted: would match nothing); invalid_argument
/// (null, not aligned); out_of_memory; in_signal_handler. An error changes nothing.
Status register_procedure(unw_dyn_info_t* di, Behind behind = Behind::nothing) noexcept;
/// Registers all or none. The last of the batch is the newest.
Status register_procedures(std::span<unw_dyn_info_t* const> batch, Behind behind = Behind::nothing) noexcept;

/// Takes the procedure out of the list and the index, then waits for the lookups that hold exactly this one, and for
/// nothing else. It allocates nothing, though observers may. After the return nothing reads `di` or what it points to.
/// Errors, which change nothing: not_registered, for any readable `di`; in_signal_handler, also where the calling
/// thread is inside a lookup that holds `di`, since that wait would never end.
Status cancel_procedure(unw_dyn_info_t* di) noexcept;
/// Waits once for all, or once for each where there is no memory for more than 256 batches that are being taken out.
/// Procedures that are not registered are skipped; then the error is not_registered.
Status cancel_procedures(std::span<unw_dyn_info_t* const> batch) noexcept;

/// Names a batch that was retired. A default-constructed ticket counts as reclaimed.
struct RetireTicket {
  std::uint64_t serial = 0;
  std::uint32_t batch = 0;
  std::uint32_t skipped = 0;  ///< number of procedures that were not registered
};

/// Takes procedures out of the list and the index at once. It never waits, whatever other threads do or wherever they
/// are suspended, and allocates memory by system calls only. The code may be reused on return. The descriptors, their
/// regions and names may be reused when reclaimed(ticket) is true or `on_reclaimed(argument)` is called. A later
/// register, cancel or reclaimed() makes that call, on its thread and outside all locks; retire never does. Errors,
/// which change nothing: not_registered (none of a batch is); out_of_memory; in_signal_handler.
Result<RetireTicket> retire_procedures(std::span<unw_dyn_info_t* const> batch, void (*on_reclaimed)(void*) = nullptr,
                                       void* argument = nullptr) noexcept;
/// Never waits: it returns false also where another writer is at work, so that the answer cannot be had at once. It is
/// signal-safe unless a callback is due, which it runs.
bool reclaimed(RetireTicket ticket) noexcept;

/// Returns the head of the list that other processes read. Signal-safe.
unw_dyn_info_list_t* procedure_list() noexcept;

/// The registry's counts and sizes at one moment.
struct RegistryStatistics {
  std::size_t registered = 0;     ///< neither retired nor cancelled
  std::size_t library_bytes = 0;  ///< memory of the library beside the callers' descriptors
  std::size_t index_bytes = 0;    ///< the part of it that lookups need; the rest is FDEs that unwinders asked for
};
/// Thread-safe; not signal-safe.
RegistryStatistics registry_statistics() noexcept;

/// Identifies one registration among all of this process, past and future.
struct RegistrationKey {
  std::uint64_t registration = 0;  ///< counts up: a larger number is newer
  std::uint32_t node = 0;
};
/// Tells a cache whether what a ProcedureHold led to is still registered. One load. Signal-safe.
bool still_registered(RegistrationKey key) noexcept;

/// Counters of the registry's changes (unwind_core/kept/code_changes_internal.h). When a procedure is registered,
/// cancelled or retired, the number() of each pc that it covers has changed by the time that call returns. A cache that
/// takes the number before a lookup can tell later whether the answer still holds. Signal-safe.
const CodeChanges& registration_changes() noexcept;

/// Changes that number for all code from `begin` to `end`, though nothing was registered. Signal-safe.
void forget_rows(std::uint64_t begin, std::uint64_t end) noexcept;

/// Whether a procedure covered `pc` at some moment of the call. It is as safe as a ProcedureHold, and cheaper.
bool may_be_registered(std::uint64_t pc) noexcept;

/// A hazard pointer to the newest procedure that covers `pc`. While it lives, `info()` and what it points to stay
/// valid. It takes no lock, allocates nothing, never waits, and works in a signal handler that interrupted a writer or
/// another lookup at any instruction of the same thread. Must be an automatic variable and not live across user code. A
/// jump out of its scope (siglongjmp out of a handler) is recognised later: docs/registry.md "Owners that are gone".
class ProcedureHold {
 public:
  explicit ProcedureHold(std::uint64_t pc) noexcept;
  /// Holds the procedure of that registration, even if a newer one covers its code.
  explicit ProcedureHold(RegistrationKey key) noexcept;
  ~ProcedureHold();
  ProcedureHold(const ProcedureHold&) = delete;
  ProcedureHold& operator=(const ProcedureHold&) = delete;

  /// Null where no registered procedure covers the pc, or the registration of the key has ended.
  const unw_dyn_info_t* info() const noexcept { return info_; }
  RegistrationKey key() const noexcept { return key_; }
  /// The word of Behind::user_word, or 0 if there is none.
  std::uint64_t user_word() const noexcept;
  /// True if the lookup failed: more than 31 holds nested in this thread, or there was no memory for its slot.
  bool failed() const noexcept { return failed_; }

 private:
  void keep(void* slot, std::uint32_t level, RegistrationKey key) noexcept;

  const unw_dyn_info_t* info_ = nullptr;
  void* slot_ = nullptr;
  RegistrationKey key_{};
  std::uint32_t level_ = 0;
  bool failed_ = false;
};

}  // namespace jitunwind
#pragma GCC visibility pop
