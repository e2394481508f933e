// The process's objects that define GDB's interface, and the addresses of their definitions. They are found as
// debuggers find them: by the symbol tables of files.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
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

}  // namespace jitunwind
