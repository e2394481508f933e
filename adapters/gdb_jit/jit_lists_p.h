// The lists of all descriptors of the process, which end with the same entries; and the objects that define them, which
// are found as debuggers find them: by the symbol tables of files.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/sdk/dialects/gdb_list.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// The objects at one moment, in the order in which debuggers list them. Objects beyond the capacity are left out.
class ObjectSnapshot final : private ObjectVisitor {
 public:
  /// False: the list is not available.
  bool take() noexcept;

  const ListVersion& version() const noexcept { return version_; }
  std::size_t count() const noexcept { return count_; }
  const ListedObject& operator[](std::size_t index) const noexcept { return objects_[index]; }
  /// Index of the object with this dynamic section; count(): there is none.
  std::size_t index_of(Addr dynamic) const noexcept;

 private:
  void visit(const ListedObject& object) noexcept override;

  std::array<ListedObject, 1024> objects_{};
  std::size_t count_ = 0;
  ListVersion version_{};
};

/// The definition of one object, according to its file.
class ObjectDescriptor {
 public:
  /// `out` stays empty if the object has no definition or no file. False: the list of objects has changed.
  static bool find(const ListedObject& object, const ListVersion& version,
                   std::optional<ObjectDescriptor>& out) noexcept;

  jit_descriptor* descriptor() const noexcept { return descriptor_; }
  void (*breakpoint() const noexcept)() { return breakpoint_; }
  Addr object() const noexcept { return object_.dynamic; }
  /// Whether that file is the loaded one, and the descriptor is of a known version. Precondition: the object stays
  /// loaded meanwhile.
  bool is_loaded() const noexcept;

 private:
  explicit ObjectDescriptor(const ListedObject& object) noexcept : object_(object) {}
  /// `exports`: the object's hash table has the function; this check spares most objects the search.
  bool find_symbols(const ModuleFiles::BothFiles& files, bool exports) noexcept;
  bool find_symbols(const ElfSymbols& symbols) noexcept;
  bool has_in_memory(std::span<const std::byte> of_file) const noexcept;

  ListedObject object_{};
  ModuleFiles::ElfFile file_{};
  jit_descriptor* descriptor_ = nullptr;
  void (*breakpoint_)() = nullptr;
};

/// Stores in release order: the debugger may stop the process between any two stores, and reads a list from its head by
/// `next_entry`.
inline void store(jit_code_entry*& place, jit_code_entry* value) noexcept {
  std::atomic_ref<jit_code_entry*>(place).store(value, std::memory_order_release);
}

/// The list of one descriptor.
struct JitList {
  jit_descriptor* descriptor = nullptr;  ///< null: free
  void (*breakpoint)() = nullptr;
  Addr object = 0;        ///< dynamic section of its object; 0: there is none
  std::size_t rank = 0;   ///< position of its object in the order in which debuggers list them
  bool is_found = false;  ///< found by symbols, as debuggers find it
  bool lasts = false;     ///< the object is never unloaded
  bool is_told = false;
  jit_code_entry guard{};
};

/// A process may have several definitions: this library's, a second copy's, LLVM's, the program's. The debugger and the
/// time of its attachment decide which of them it reads (docs/debuggers.md "Others in the process"), so that the shared
/// entries are in all of the lists. An entry has one successor. Lists that share an entry therefore end with the same
/// entries; they differ in the foreign entries before them. A debugger that reads several lists does not count a file
/// twice.
///
/// Foreign owners do not take this library's lock. The shared entries therefore lie between empty entries that never
/// move, with one guard for each list before them. Once the guards are in place, foreign owners and this library change
/// no common field but those that notify the debugger.
///
/// The object is in pages that stay mapped, whichever copy of this library made them. Its layout is k_mark's.
/// Everything but make() requires the lock.
struct JitSharedLists {
  static constexpr std::array<char, 16> k_mark = k_own_gdb_list_mark;

  /// Null: no memory.
  static JitSharedLists* make() noexcept;
  /// Precondition: copies == 0.
  void start(std::span<const std::byte> file) noexcept;
  /// Looks for objects that were loaded or unloaded. Returns another copy's lists if it finds them first; they replace
  /// these.
  JitSharedLists* look() noexcept;
  /// Adds the definition that this copy's calls reach, however debuggers may find it.
  void put_in(jit_descriptor& descriptor, void (*breakpoint)()) noexcept;
  void take_out_all() noexcept;
  bool is_empty() const noexcept;
  /// Null: there is none.
  JitList* list_of(Addr object) noexcept;
  /// The definition that every GDB finds. Null: there is none.
  const JitList* first() const noexcept;

  WriterLock lock;
  std::atomic<std::uint32_t> copies{0};  ///< number that have the lists open; at 0 only their maker opens them again
  jit_code_entry first_entry{}, last_entry{};  ///< around the files of all copies
  ListVersion seen{};                          ///< the objects that were examined
  std::size_t seen_count = 0;
  std::array<JitList, 32> lists{};
  // The mark lies before the guards' file; other copies distinguish guards from foreign entries by it.
  alignas(8) std::array<char, 16> mark{};
  JitSharedLists* self = nullptr;
  alignas(8) std::array<std::byte, 1024> empty_file{};
};

}  // namespace jitunwind
