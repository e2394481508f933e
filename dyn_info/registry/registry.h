// The process-wide registry of procedures: the list that other processes read, and the private index that lookups use.
// How it works, what is proven and what it costs: docs/registry.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class CodeChanges;

// Writers: O(1) a procedure at any number of them, in any order; thread-safe; not signal-safe: a call in a signal
// handler that interrupted a writer on its own thread is refused with in_signal_handler and changes nothing.
// register and cancel wait for each other's few instructions; a thread that is suspended among them holds them up, but
// never a lookup and never retire.

/// What stands behind descriptors in memory.
enum class Behind : std::uint8_t {
  nothing,
  user_word,  ///< a word of whoever registers, for whoever walks: ProcedureInfo::user
};

/// `di` and all it points to must stay mapped and unchanged until it was cancelled, or retired and reclaimed; `next`
/// and `prev` may hold anything, and are written whenever a neighbour comes or goes. Memory that is not there, or
/// read-only, faults. The newest procedure wins where several cover an address. Errors: already_registered, also while
/// it is retired and not reclaimed; e_range (empty or inverted: would match nothing); invalid_argument (null, not
/// aligned); out_of_memory; in_signal_handler. An error changes nothing.
Status register_procedure(unw_dyn_info_t* di, Behind behind = Behind::nothing) noexcept;
/// All or nothing. The last one is the newest.
Status register_procedures(std::span<unw_dyn_info_t* const> batch, Behind behind = Behind::nothing) noexcept;

/// Takes the procedure out of list and index, then waits until no lookup can hold it: for lookups that hold exactly
/// this one, and for nothing else. Allocates nothing, though observers may. On return nothing reads `di` or what it
/// points to. Errors, which change nothing: not_registered, whatever `di` points to, as long as it can be read;
/// in_signal_handler, also where the calling thread itself is inside a lookup that holds `di`, which would never end.
Status cancel_procedure(unw_dyn_info_t* di) noexcept;
/// One wait for all, and one for each where there is no memory for more than 256 batches that are being taken out.
/// Those that are not registered are skipped; then the error is not_registered.
Status cancel_procedures(std::span<unw_dyn_info_t* const> batch) noexcept;

/// A batch that was retired. A plain value; the default one counts as reclaimed.
struct RetireTicket {
  std::uint64_t serial = 0;
  std::uint32_t batch = 0;
  std::uint32_t skipped = 0;  ///< how many were not registered
};

/// Takes procedures out of list and index at once and never waits, whatever other threads do or wherever they are
/// suspended; allocates no memory but by system calls. The code may be reused on return. The descriptors, their regions
/// and names may be reused when reclaimed(ticket) is true, or `on_reclaimed(argument)` is called: by a later register,
/// cancel or reclaimed(), on its thread, outside all locks; never by retire. Errors, which change nothing:
/// not_registered (none of a batch is); out_of_memory; in_signal_handler.
Result<RetireTicket> retire_procedures(std::span<unw_dyn_info_t* const> batch, void (*on_reclaimed)(void*) = nullptr,
                                       void* argument = nullptr) noexcept;
/// Never waits: false also where the answer cannot be had at once because another writer is at work. Signal-safe unless
/// a callback is due, which it runs.
bool reclaimed(RetireTicket ticket) noexcept;

/// The list for other processes. Signal-safe.
unw_dyn_info_list_t* procedure_list() noexcept;

/// Of one moment.
struct RegistryStatistics {
  std::size_t registered = 0;     ///< neither retired nor cancelled
  std::size_t library_bytes = 0;  ///< memory of ours beside the callers' descriptors
  std::size_t index_bytes = 0;    ///< of it what look-ups need; the rest is FDEs that unwinders have asked for
};
/// Thread-safe; not signal-safe.
RegistryStatistics registry_statistics() noexcept;

/// One registration, told from all others of this process, past and future.
struct RegistrationKey {
  std::uint64_t registration = 0;  ///< counts up: larger is newer
  std::uint32_t node = 0;
};
/// For caches of what a ProcedureHold led to: one load. Signal-safe.
bool still_registered(RegistrationKey key) noexcept;

/// Counters of the registry's changes (unwind_core/kept/code_changes_internal.h). The number() of a pc is another one
/// after any procedure that covers the pc was registered, cancelled or retired, when that call has returned. For
/// caches: taken before a lookup, it says later whether the answer still holds. Signal-safe.
const CodeChanges& registration_changes() noexcept;

/// Gives all code from `begin` to `end` another such number, though nothing has been registered. Signal-safe.
void forget_rows(std::uint64_t begin, std::uint64_t end) noexcept;

/// False: no procedure covers `pc`. True: perhaps one does; a ProcedureHold knows. As safe as one, and cheaper.
bool may_be_registered(std::uint64_t pc) noexcept;

/// A lookup's hold on the newest procedure that covers `pc`. While it lives, `info()` and what it points to stay valid.
/// No lock, no allocation, no waiting; right in a signal handler that interrupted a writer, or another lookup, on the
/// same thread at any instruction. Must be an automatic variable, and must not live across user code. A jump out of its
/// scope (siglongjmp out of a signal handler) is recognised later: docs/registry.md "Owners that are gone".
class ProcedureHold {
 public:
  explicit ProcedureHold(std::uint64_t pc) noexcept;
  /// A hold on that one, whatever is newer.
  explicit ProcedureHold(RegistrationKey key) noexcept;
  ~ProcedureHold();
  ProcedureHold(const ProcedureHold&) = delete;
  ProcedureHold& operator=(const ProcedureHold&) = delete;

  /// Null when no registered procedure covers the pc, or the one of the key is not registered.
  const unw_dyn_info_t* info() const noexcept { return info_; }
  RegistrationKey key() const noexcept { return key_; }
  /// Behind::user_word; 0: there is none.
  std::uint64_t user_word() const noexcept;
  /// The question could not be answered: more than 31 holds nested in this thread, or no memory to note this one.
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
