// Address spaces that programs make from callbacks (unw_create_addr_space): one Memory, one source of rows, one of
// names.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "jitunwind/dyn_info/target_list.h"
#include "jitunwind/sdk/compat/found_info_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/sequenced_entry_internal.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/sources/sources.h"

#include <libunwind.h>

/// libunwind's handle. There is one for this process; the others are jitunwind::CallbackSpace.
struct unw_addr_space {
  unw_accessors_t accessors{};
  std::atomic<unw_caching_policy_t> policy{UNW_CACHE_NONE};
};

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

class CallbackMemory final : public Memory {
 public:
  CallbackMemory(unw_addr_space& owner, const Arch& arch) noexcept : owner_(owner), arch_(arch) {}
  /// Reads aligned words, which access_mem gives in host byte order. MemoryWindow::failure has its result.
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;

 private:
  bool access(Addr at, unw_word_t& value, bool write, MemoryWindow& window) const noexcept;

  unw_addr_space& owner_;
  const Arch& arch_;
};

/// find_proc_info, put_unwind_info; get_proc_ip_range for code that the former does not know.
class CallbackProcedures final : public RowSource {
 public:
  explicit CallbackProcedures(unw_addr_space& owner) noexcept : owner_(owner) {}
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override;

 private:
  Found find_range(Lookup& lookup, ProcedureInfo& out) const noexcept;

  unw_addr_space& owner_;
};

/// get_proc_name.
class CallbackNames final : public NameSource {
 public:
  explicit CallbackNames(unw_addr_space& owner) noexcept : owner_(owner) {}
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;

 private:
  unw_addr_space& owner_;
};

/// get_dyn_info_list_addr. Its answer is cached if the space's policy allows it, until it is flushed.
class CallbackListHead final : public ListHead {
 public:
  explicit CallbackListHead(unw_addr_space& owner) noexcept : owner_(owner) {}
  Result<Addr> list_head(std::size_t number, MemoryWindow& window) const noexcept override;
  void flush() noexcept { flushes_.fetch_add(1, std::memory_order_release); }

 private:
  unw_addr_space& owner_;
  std::atomic<std::uint64_t> flushes_{1};
  mutable SequencedEntry<std::uint64_t, Addr> kept_;  // under the number of flushes before the call
};

/// The objects that an AddressSpace refers to, constructed before it.
struct CallbackParts : unw_addr_space {
  explicit CallbackParts(const Arch& target) noexcept;
  /// Gets the bits of a code address from the owner, if the CPU signs addresses. Called before any walk; asks once.
  void know_address_bits(void* argument) noexcept;

  Arch cpu;  // in the byte order of the target
  CallbackMemory memory_of_target;
  NoModules no_modules;
  CallbackListHead head{*this};
  TargetList list{head};
  CallbackProcedures procedures{*this};
  CallbackNames proc_names{*this};
  SourceOrder sources;
  std::array<const NameSource*, 2> names{&list, &proc_names};
  pthread_mutex_t asks_for_address_bits = PTHREAD_MUTEX_INITIALIZER;
  bool knows_address_bits = false;
};

/// The order of sources is the list of registered procedures, then find_proc_info. If code is unknown, its instructions
/// are followed; with bold guesses, the frame pointer is used.
struct CallbackSpace final : CallbackParts, AddressSpace {
  explicit CallbackSpace(const Arch& target) noexcept
      : CallbackParts(target), AddressSpace{cpu,     memory_of_target, no_modules, sources.rows(), CallbackParts::names,
                                            nullptr, sources.guesses()} {}
};

/// The result of the C functions for an error; a callback's result is returned unchanged.
int negated(const Error& error) noexcept;

/// The handle of this process; null in libraries for other CPUs.
unw_addr_space* local_handle() noexcept;
/// The space of this process for the present policy and list of modules. Precondition: there is one.
const AddressSpace& space_of_process() noexcept;
/// Chooses that space anew, after a setting.
const AddressSpace& choose_space_of_process() noexcept;
bool is_of_process(const AddressSpace& space) noexcept;

inline bool is_local(const unw_addr_space& handle) noexcept { return &handle == local_handle(); }
inline const AddressSpace& space_of(unw_addr_space& handle) noexcept {
  return is_local(handle) ? space_of_process() : static_cast<CallbackSpace&>(handle);
}
/// The handle of a cursor's space.
inline unw_addr_space& handle_of(const AddressSpace& space) noexcept {
  return is_of_process(space) ? *local_handle() : const_cast<CallbackSpace&>(static_cast<const CallbackSpace&>(space));
}

/// The result of a function that looks up a procedure; fills `to` if there is one.
int answer(const Found& known, const ProcedureInfo& from, unw_proc_info_t& to) noexcept;

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
