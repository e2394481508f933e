#include "jitunwind/sdk/targets/target_space_p.h"

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/memory/own/spare_blocks_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

/// Tables of targets that have ended; they are zeroed.
constinit SpareBlocks spare_tables;

}  // namespace

/// The tables are not constructed here, which would touch all of their pages: they begin as zeros, which is what
/// constant initialisation gives this process's own tables.
TargetRows::TargetRows(const Arch& arch, const MappedModules& modules) noexcept : versions_(modules) {
  static_assert(alignof(Tables) <= k_page_size);
  if (!local_space().row_cache) return;
  memory_ = spare_tables.take(sizeof(Tables));
  if (memory_.empty()) memory_ = Block(sizeof(Tables));
  if (memory_.empty()) return;
  tables_ = reinterpret_cast<Tables*>(memory_.bytes().data());
  cache_.emplace(RowCache{CompactLayout(arch), tables_->changes, versions_, tables_->rules});
}

/// The counters of changes are scattered. If one was used, all memory is returned to the kernel.
TargetRows::~TargetRows() {
  static_assert(sizeof(Tables) % k_page_size == 0 && sizeof(Tables) <= SpareBlocks::k_largest);
  if (!tables_) return;
  const bool is_spare = tables_->changes.is_new() && tables_->rules.clear();
  tables_->changes.release();
  if (is_spare) spare_tables.give(std::move(memory_));
}

void TargetRows::forget() noexcept {
  constexpr std::uint64_t k_all = std::uint64_t{1} << 63;
  if (keeps_any()) tables_->changes.count(0, k_all);
}

void TargetRows::forget(const AddrRange& code) noexcept {
  if (keeps_any() && !code.empty()) tables_->changes.count(code.begin, code.end);
}

}  // namespace jitunwind
