#include "unwind_core/module_memo_p.h"

#include <bit>
#include <type_traits>

namespace jitunwind {

// Every word is released by its writer and acquired by its reader: a reader that sees one of a later version sees that
// version, too (Boehm, "Can seqlocks get along with programming language memory models?", 2012).

bool ModuleMemo::find(const LoadedObjectKey& key, RememberedModule& out) const noexcept {
  const Slot& slot = slots_[slot_of(key)];
  const std::uint32_t version = slot.version.load(std::memory_order_acquire);
  if (version == 0 || version % 2 != 0) return false;
  std::array<std::uint64_t, k_words> words;
  for (std::size_t i = 0; i < k_words; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
  if (slot.version.load(std::memory_order_relaxed) != version) return false;
  const auto contents = std::bit_cast<Contents>(words);
  if (contents.key != key) return false;
  out = contents.remembered;
  return true;
}

void ModuleMemo::keep(const LoadedObjectKey& key, const RememberedModule& module) noexcept {
  static_assert(std::is_trivially_copyable_v<Contents> && k_words * sizeof(std::uint64_t) == sizeof(Contents));
  Slot& slot = slots_[slot_of(key)];
  std::uint32_t version = slot.version.load(std::memory_order_relaxed);
  if (version % 2 != 0) return;
  if (!slot.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) return;
  const auto words = std::bit_cast<std::array<std::uint64_t, k_words>>(Contents{key, module});
  for (std::size_t i = 0; i < k_words; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
}

}  // namespace jitunwind
