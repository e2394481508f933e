// The kept rows of a target: docs/caches.md.
#pragma once

#include <optional>

#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"

namespace jitunwind {

/// Tables for one target alone. They take half a megabyte of address space, of which only the pages of kept rows are
/// touched. They are allocated once, or reused, empty, from a target that has ended. A row is valid for one version of
/// its module and one count of changes of the target's lists. Both only grow, and so does their sum, from which
/// RowCache::version_of() makes small numbers.
class TargetRows {
 public:
  /// Both arguments must outlive this.
  TargetRows(const Arch& arch, const MappedModules& modules) noexcept;
  ~TargetRows();
  TargetRows(const TargetRows&) = delete;
  TargetRows& operator=(const TargetRows&) = delete;

  /// Returns null if nothing is kept: JITUNWIND_KEEP says so, or there is no memory.
  const RowCache* cache() const noexcept { return cache_ ? &*cache_ : nullptr; }
  /// Invalidates all kept rows.
  void forget() noexcept;
  /// Invalidates the kept rows of this code.
  void forget(const AddrRange& code) noexcept;

 private:
  class Versions final : public ModuleVersions {
   public:
    explicit Versions(const MappedModules& modules) noexcept : modules_(modules) {}
    bool find(Addr at, ModuleVersion& out) const noexcept override { return modules_.find_version(at, out); }

   private:
    const MappedModules& modules_;
  };
  struct Tables {
    CodeChanges changes;
    KeptRules rules;
  };

  bool keeps_any() const noexcept { return tables_ && tables_->rules.table.size() != 0; }

  Versions versions_;
  Block memory_;
  Tables* tables_ = nullptr;
  std::optional<RowCache> cache_;
};

}  // namespace jitunwind
