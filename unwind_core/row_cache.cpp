#include "unwind_core/row_cache.h"

#include <sys/mman.h>

namespace jitunwind {

void* map_for_good(std::size_t size) noexcept {
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_unseen(void* memory, std::size_t size) noexcept { ::munmap(memory, size); }

bool RowCache::find_module(Addr at, ModuleVersion& walked) const noexcept {
  ModuleVersion module;
  if (!modules.find(at, module)) return false;
  walked = module;
  return true;
}

bool RowCache::to_keep(const FrameRow& row, CompactRow& out) const noexcept {
  return is_of_code_alone(row.origin) && compact(row, layout, out);
}

bool RowCache::keep(const CodeQuestion& question, const FrameRow& row, KeptRow& kept) const noexcept {
  kept.origin = row.origin;
  if (!to_keep(row, kept.row)) return false;
  table.keep(question, kept);
  return true;
}

}  // namespace jitunwind
