// The rows of a target that were found before: docs/caches.md.
#pragma once

#include <optional>

#include "jitunwind/unwind_core/image/mapped_internal.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"

namespace jitunwind {

/// Tables of one target alone, half a megabyte of address space of which so much is touched as rows are kept; allocated
/// once, or taken over from a target that has ended, of which nothing is in them. A row is valid by the version of its
/// module and by a count of changes of the target's lists. Both only grow, and so does their sum, which
/// RowCache::version_of() makes of small numbers.
class TargetRows {
 public:
  /// Both must outlive this.
  TargetRows(const Arch& arch, const MappedModules& modules) noexcept;
  ~TargetRows();
  TargetRows(const TargetRows&) = delete;
  TargetRows& operator=(const TargetRows&) = delete;

  /// Null: nothing is kept, because JITUNWIND_KEEP says so, or there is no memory.
  const RowCache* cache() const noexcept { return cache_ ? &*cache_ : nullptr; }
  /// Nothing that was kept holds any more.
  void forget() noexcept;
  /// Nothing of this code does.
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
