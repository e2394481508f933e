// The modules of a target that is known by its mappings and its memory: another process, a core file, a sample.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/targets/mappings.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class MappedObject;
class TargetFiles;

/// A module is an ELF object whose first page is mapped, from the start or the middle of a file; its program headers
/// tell its other mappings. These and unwind information are read from the memory of the target. Symbols and
/// .debug_frame come from the files that its mapping names, if they have its build id. Deleted files and the kernel's
/// object need no file. Used by one thread at a time; allocates.
class MappedModules final : public ModuleFinder {
 public:
  /// All arguments must outlive this object.
  MappedModules(const Memory& memory, const Arch& arch, const Mappings& mappings, const TargetFiles& files) noexcept;
  ~MappedModules();
  MappedModules(const MappedModules&) = delete;
  MappedModules& operator=(const MappedModules&) = delete;

  bool find(Addr at, Module& out) const noexcept override;
  void add_file_sections(Module& module) const noexcept override;
  Result<bool> find_symbol(const Module& module, Addr at, NameReach reach, std::span<char> into,
                           ProcedureName& out) const noexcept override;

  /// Null: no module covers `at`.
  MappedObject* find_object(Addr at) const noexcept { return place_of(at).object; }
  /// The version that tells the module at `at` from all former ones; false: there is none.
  bool find_version(Addr at, ModuleVersion& out) const noexcept;

  /// Call after changes of the mappings: objects that are where they were stay known.
  void renew() noexcept;

  /// Calls `visit(object)` for every object of the target. Reads each page that one may begin with.
  template <class Visit>
  void for_each_object(Visit visit) const {
    for (std::size_t i = 0; i < mappings_.all().size(); ++i)
      if (MappedObject* const object = object_at(i)) visit(*object);
  }

 private:
  /// The object at an address, and the mapped range around it with the same answer.
  struct Place {
    MappedObject* object = nullptr;  ///< null: there is none
    AddrRange around{};
    bool is_executable = false;  ///< whether `around` is mapped as executable
  };

  MappedObject* object_at(std::size_t mapping) const;
  Place look_for_place(Addr at) const;
  Place place_of(Addr at) const noexcept;
  MappedObject* object_of(const Module& module) const noexcept;

  const Memory& memory_;
  const Arch& arch_;
  const Mappings& mappings_;
  const TargetFiles& files_;
  // Objects by their begin. Null: there is none.
  mutable std::map<Addr, std::unique_ptr<MappedObject>> objects_;
  mutable std::uint64_t next_version_ = 1;
  mutable Place last_{};  // which the frames of deep stacks ask for again and again
};

}  // namespace jitunwind
#pragma GCC visibility pop
