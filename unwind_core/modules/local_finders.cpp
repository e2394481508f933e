// The finders of modules of this process, and what they add of the modules' files.
#include <link.h>

#include <atomic>
#include <utility>

#include "jitunwind/unwind_core/memory/copied.h"
#include "jitunwind/unwind_core/modules/file_sections_p.h"
#include "jitunwind/unwind_core/modules/loaded_object_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"
#include "jitunwind/unwind_core/modules/local_object_p.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {
namespace {

constinit const CopiedMemory k_copied_memory;

class ModulesWithFiles : public ModuleFinder {
 public:
  void add_file_sections(Module& module) const noexcept override {
    LocalObject object(module, to_copy());
    ModuleFilesLease lease = find_module_files(object);
    // Rows refer to these bytes: they must stay.
    if (!lease.is_kept()) return;
    add_debug_frame(*lease.files(), module);
    if (module.eh_frame_hdr.empty() || module.memory) add_eh_frame(*lease.files(), object, module);
    module.file_sections = lease.take();
  }
  void release_file_sections(Module& module) const noexcept override {
    ModuleFilesLease::give_back(std::exchange(module.file_sections, nullptr));
  }

  Result<bool> find_symbol(const Module& module, Addr at, NameReach reach, std::span<char> into,
                           ProcedureName& out) const noexcept override {
    LocalObject object(module, to_copy());
    const ModuleFilesLease lease = find_module_files(object);
    const SymbolIndex* const symbols = lease.files() ? lease.files()->symbols() : nullptr;
    return name_of(symbols, symbols ? nullptr : object.image(), module, at, reach, into, out);
  }

 private:
  /// A finder of the same modules that copies what it reads.
  virtual const ModuleFinder& to_copy() const noexcept = 0;

  static void add_eh_frame(const ModuleFiles& files, LocalObject& object, Module& module) noexcept {
    const CopiedSection* const section = files.eh_frame();
    if (!section || section->bytes.empty()) return;
    const std::size_t size = section->bytes.bytes().size();
    const Addr at = section->address + module.load_bias;
    if (module.memory)
      module.eh_frame = {section->bytes.bytes(), at};
    else if (const ElfImage* const loaded = object.image(); loaded && loaded->has_bytes_at(section->address, size))
      module.eh_frame = bytes_of({at, at + size});
  }
};

enum class Use { of_frames, of_addresses };

template <Use use>
class LocalModules final : public ModulesWithFiles {
 public:
  constexpr LocalModules() = default;
  [[gnu::hot]] bool find(Addr at, Module& out) const noexcept override {
    if constexpr (use == Use::of_frames) return find_module(at, out);
    if (!find_copied_module(at, out)) return false;
    out.memory = &k_copied_memory;
    return true;
  }
  [[gnu::hot]] const Module* find_lasting(Addr at) const noexcept override {
    const Module* const module = find_lasting_module(at);
    return module && module->text.contains(at) ? module : nullptr;
  }
  std::size_t copy_path(const Module& module, std::span<char> into) const noexcept override {
    return module.is_lasting ? ModuleFinder::copy_path(module, into) : copy_module_path(module.range.begin, into);
  }

 private:
  const ModuleFinder& to_copy() const noexcept override { return modules_of_addresses(); }
};

constinit std::atomic<PhdrIteration> listing{nullptr};

PhdrIteration listing_function() noexcept {
  const PhdrIteration function = listing.load(std::memory_order_acquire);
  return function ? function : &::dl_iterate_phdr;
}

template <Use use>
class ListedModules final : public ModulesWithFiles {
 public:
  constexpr ListedModules() = default;
  bool find(Addr at, Module& out) const noexcept override {
    if (!find_module_by(listing_function(), at, out)) return false;
    if constexpr (use == Use::of_addresses) out.memory = &k_copied_memory;
    return true;
  }
  std::size_t copy_path(const Module& module, std::span<char> into) const noexcept override {
    return copy_path_by(listing_function(), module.range.begin, into);
  }

 private:
  const ModuleFinder& to_copy() const noexcept override { return listed_modules_of_addresses(); }
};

constinit const LocalModules<Use::of_frames> k_modules;
constinit const LocalModules<Use::of_addresses> k_modules_of_addresses;
constinit const ListedModules<Use::of_frames> k_listed_modules;
constinit const ListedModules<Use::of_addresses> k_listed_modules_of_addresses;

}  // namespace

[[gnu::hot]] const ModuleFinder& local_modules() noexcept { return k_modules; }
[[gnu::hot]] const ModuleFinder& modules_of_addresses() noexcept { return k_modules_of_addresses; }
[[gnu::hot]] const ModuleFinder& listed_modules() noexcept { return k_listed_modules; }
[[gnu::hot]] const ModuleFinder& listed_modules_of_addresses() noexcept { return k_listed_modules_of_addresses; }
void list_modules_by(PhdrIteration function) noexcept {
  listing.store(function == &::dl_iterate_phdr ? nullptr : function, std::memory_order_release);
}
[[gnu::hot]] bool has_listed_modules() noexcept { return listing.load(std::memory_order_acquire) != nullptr; }

}  // namespace jitunwind
