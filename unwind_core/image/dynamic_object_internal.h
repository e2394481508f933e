// A loaded object as its dynamic section describes it to the dynamic linker (System V gABI, chapter 5 "Dynamic
// Section", "Hash Table", "Relocation"), read from the memory of its process: which functions it defines, and through
// which words it calls them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind {

/// Every byte is untrusted, every loop bounded: what cannot be read is absent. Reads memory alone, takes no lock.
class [[gnu::visibility("default")]] DynamicObject {
 public:
  /// `bias` is the run-time address less the one in the file, `dynamic` the section's run-time address.
  DynamicObject(const Memory& memory, const Arch& arch, Addr bias, Addr dynamic) noexcept;

  struct Function {
    std::uint32_t symbol = 0;
    Addr address = 0;  ///< at run time
  };
  /// One that the object itself defines, of whichever version. None for one that is chosen when it is bound
  /// (STT_GNU_IFUNC).
  std::optional<Function> find_function(std::string_view name) noexcept;
  /// Where a variable is at run time that the object itself defines and exports.
  std::optional<Addr> find_variable(std::string_view name) noexcept;

  /// The word that holds the function's address for the object's calls, at run time: its jump slot, or, in objects that
  /// call without a procedure linkage table, its entry of the global offset table. 0: there is none, or it does not lie
  /// as a word must.
  Addr find_slot(const Function& function) noexcept;

  /// Linked with -z nodelete.
  bool stays_loaded() const noexcept;

 private:
  std::uint64_t number_at(Addr at, std::size_t size) noexcept;
  std::uint32_t u32_at(Addr at) noexcept { return static_cast<std::uint32_t>(number_at(at, 4)); }
  Addr at_run_time(Addr pointer) const noexcept;
  Addr find_slot(Addr relocations, std::uint64_t size, std::uint32_t type, std::uint32_t symbol) noexcept;
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
  std::uint8_t wanted_type_ = 0;  // STT_*, of the search at hand
  bool unreadable_ = false;       // from the first failure on
};

}  // namespace jitunwind
