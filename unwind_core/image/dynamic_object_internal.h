// A loaded object as its dynamic section describes it to the dynamic linker (System V gABI, chapter 5 "Dynamic
// Section", "Hash Table", "Relocation"). The description is read from the memory of the object's process. It tells
// which functions the object defines, and through which words it calls functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind {

/// Every byte is untrusted and every loop is bounded. Values that cannot be read are absent. The class reads only
/// memory and takes no lock.
class [[gnu::visibility("default")]] DynamicObject {
 public:
  /// `bias` is the run-time address minus the address in the file; `dynamic` is the section's run-time address.
  DynamicObject(const Memory& memory, const Arch& arch, Addr bias, Addr dynamic) noexcept;

  struct Function {
    std::uint32_t symbol = 0;
    Addr address = 0;  ///< at run time
  };
  /// Finds a function that the object itself defines, of any version. A function that is chosen when it is bound
  /// (STT_GNU_IFUNC) is not found.
  std::optional<Function> find_function(std::string_view name) noexcept;
  /// Finds the run-time address of a variable that the object itself defines and exports.
  std::optional<Addr> find_variable(std::string_view name) noexcept;

  /// Returns the run-time address of the word that holds the function's address for the object's calls. This word is
  /// the function's jump slot, or its entry of the global offset table in objects that call without a procedure linkage
  /// table. Returns 0 when there is no such word or it is not aligned.
  Addr find_slot(const Function& function) noexcept;

  /// Whether the object was linked with -z nodelete.
  bool stays_loaded() const noexcept;

 private:
  /// Entries of two or three words, until `visit` returns false. False: they cannot be read so far.
  template <class Visit>
  bool each_entry(Addr at, std::size_t words, std::uint64_t count, Visit visit) noexcept;
  std::uint64_t number_at(Addr at, std::size_t size) noexcept;
  std::uint32_t u32_at(Addr at) noexcept { return static_cast<std::uint32_t>(number_at(at, 4)); }
  Addr at_run_time(Addr pointer) const noexcept;
  /// Finds the slot in a table, from entry number `first` on.
  Addr find_slot(Addr relocations, std::uint64_t size, std::uint64_t first, std::uint32_t type,
                 std::uint32_t symbol) noexcept;
  std::optional<Function> find(std::string_view name, std::uint8_t type) noexcept;
  std::optional<Function> function_at(std::uint32_t symbol, std::string_view name) noexcept;
  std::optional<Function> find_by_gnu_hash(std::string_view name) noexcept;
  std::optional<Function> find_by_hash(std::string_view name) noexcept;

  const Memory& memory_;
  const Arch& arch_;
  const Addr bias_;
  const Addr dynamic_;
  MemoryWindow window_{};
  ElfDynamic says_{};
  std::uint8_t wanted_type_ = 0;  // STT_* of the current search
  bool unreadable_ = false;       // set by the first failure
};

}  // namespace jitunwind
