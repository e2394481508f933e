// The lists of all descriptors of the process, which end with the same entries.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "jitunwind/dyn_info/registry/locking/writer_lock_internal.h"
#include "jitunwind/sdk/dialects/gdb_list.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// The debugger may stop the process between any two stores, and reads a list from its head by `next_entry`.
inline void store(jit_code_entry*& place, jit_code_entry* value) noexcept {
  std::atomic_ref<jit_code_entry*>(place).store(value, std::memory_order_release);
}

/// One descriptor's list.
struct JitList {
  jit_descriptor* descriptor = nullptr;  ///< null: free
  void (*breakpoint)() = nullptr;
  Addr object = 0;        ///< its object's dynamic section; 0: there is none
  std::size_t rank = 0;   ///< of its object, in the order in which debuggers list them
  bool is_found = false;  ///< by symbols, as debuggers do
  bool lasts = false;     ///< it is never unloaded
  bool is_told = false;
  jit_code_entry guard{};
};

/// One process may have several definitions: this library's, a second copy's, LLVM's, the program's. Which of them a
/// debugger reads depends on the debugger and on when it came (docs/debuggers.md "Others in the process"), so ours are
/// in the lists of all of them. An entry has one successor: lists that share one end with the same entries, and differ
/// in what is in front of those, which others have put there. So no debugger that reads several lists takes a file for
/// two.
///
/// Others know nothing of our lock. So our entries live between empty ones that never move, one in front for each list:
/// after those are in, others change nothing that we change, nor we anything of theirs, but for what tells the
/// debugger.
///
/// In pages that stay, whichever copy of this library made them. The layout is k_mark's. Everything with the lock, but
/// for make().
struct JitSharedLists {
  static constexpr std::array<char, 16> k_mark = k_own_gdb_list_mark;

  /// Null: no memory.
  static JitSharedLists* make() noexcept;
  /// Precondition: copies == 0.
  void start(std::span<const std::byte> file) noexcept;
  /// Looks for objects that have come and gone. Returns other copies' lists, which are to be used instead, where it
  /// meets them first.
  JitSharedLists* look() noexcept;
  /// The definition that this copy's calls mean, however debuggers may find it.
  void put_in(jit_descriptor& descriptor, void (*breakpoint)()) noexcept;
  void take_out_all() noexcept;
  bool is_empty() const noexcept;
  /// Null: there is none.
  JitList* list_of(Addr object) noexcept;
  /// The one that every GDB finds. Null: likewise.
  const JitList* first() const noexcept;

  WriterLock lock;
  std::atomic<std::uint32_t> copies{0};  ///< that have them open; 0: nobody opens them any more, but who made them
  jit_code_entry first_entry{}, last_entry{};  ///< around the files of all copies
  ListVersion seen{};                          ///< the objects that were looked at
  std::size_t seen_count = 0;
  std::array<JitList, 32> lists{};
  // In front of the file that the guards have: by these other copies tell guards from others' entries.
  alignas(8) std::array<char, 16> mark{};
  JitSharedLists* self = nullptr;
  alignas(8) std::array<std::byte, 1024> empty_file{};
};

}  // namespace jitunwind
