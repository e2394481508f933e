// Which of the process's objects have a definition of GDB's interface of their own, and where, as debuggers find them:
// by the symbol tables of files.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "jitunwind/unwind_core/image/mapped_internal.h"
#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// The objects of one moment, in the order in which debuggers list them. More than there is room for are left out.
class ObjectSnapshot final : private ObjectVisitor {
 public:
  /// False: the list cannot be had.
  bool take() noexcept;

  const ListVersion& version() const noexcept { return version_; }
  std::size_t count() const noexcept { return count_; }
  const ListedObject& operator[](std::size_t index) const noexcept { return objects_[index]; }
  /// By its dynamic section. count(): it is not there.
  std::size_t index_of(Addr dynamic) const noexcept;

 private:
  void visit(const ListedObject& object) noexcept override;

  std::array<ListedObject, 1024> objects_{};
  std::size_t count_ = 0;
  ListVersion version_{};
};

/// One object's definition, as its file has it.
class ObjectDescriptor {
 public:
  /// `out` stays empty: it has none, or has no file. False: the list of objects has changed.
  static bool find(const ListedObject& object, const ListVersion& version,
                   std::optional<ObjectDescriptor>& out) noexcept;

  jit_descriptor* descriptor() const noexcept { return descriptor_; }
  void (*breakpoint() const noexcept)() { return breakpoint_; }
  Addr object() const noexcept { return object_.dynamic; }
  /// Is that file what is loaded, and the descriptor one that we know? Precondition: the object stays there meanwhile.
  bool is_loaded() const noexcept;

 private:
  explicit ObjectDescriptor(const ListedObject& object) noexcept : object_(object) {}
  /// `exports`: its hash table has the function, which spares most objects the search.
  bool find_symbols(const ModuleFiles::BothFiles& files, bool exports) noexcept;
  bool find_symbols(const ElfSymbols& symbols) noexcept;
  bool has_in_memory(std::span<const std::byte> of_file) const noexcept;

  ListedObject object_{};
  ModuleFiles::ElfFile file_{};
  jit_descriptor* descriptor_ = nullptr;
  void (*breakpoint_)() = nullptr;
};

}  // namespace jitunwind
