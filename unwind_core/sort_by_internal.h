// Sorting by a number. A sort of the standard library takes 3 KB for each type of element; this one serves all types.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/heap_internal.h"

namespace jitunwind {

struct SortKey {
  std::uint64_t key;
  std::size_t place;
};
[[gnu::noinline]] inline void sort_keys(std::span<SortKey> keys) noexcept {
  std::ranges::sort(
      keys, [](const SortKey& a, const SortKey& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; });
}

/// Maps an integer to a key of the same order.
template <class Key>
constexpr std::uint64_t sort_key(Key key) noexcept {
  return static_cast<std::uint64_t>(key) ^ (std::is_signed_v<Key> ? std::uint64_t{1} << 63 : 0);
}

/// Sorts in ascending order and keeps the order of equal elements. Nearly all ranges are sorted already; these are only
/// checked. Sorting others allocates. `key_of` returns an integer.
template <class T, class KeyOf>
void sort_by(std::vector<T>& range, KeyOf key_of) {
  if (std::ranges::is_sorted(range, {}, key_of)) return;
  std::vector<SortKey> keys;
  keys.reserve(range.size());
  for (T& one : range) keys.push_back({sort_key(std::invoke(key_of, one)), keys.size()});
  sort_keys(keys);
  std::vector<T> sorted;
  sorted.reserve(range.size());
  for (const SortKey& key : keys) sorted.push_back(std::move(range[key.place]));
  range = std::move(sorted);
}

/// Does the same for lists that do not throw. Returns false when there is no memory; the list is then as before.
template <class T, class KeyOf>
[[nodiscard]] bool sort_by(HeapList<T>& list, KeyOf key_of) noexcept {
  if (std::ranges::is_sorted(list, {}, key_of)) return true;
  HeapList<SortKey> keys;
  HeapList<T> sorted;
  if (!keys.reserve(list.size()) || !sorted.reserve(list.size())) return false;
  for (T& one : list) (void)keys.add({sort_key(std::invoke(key_of, one)), keys.size()});
  sort_keys(keys);
  for (const SortKey& key : keys) (void)sorted.add(list[key.place]);
  std::ranges::copy(sorted, list.begin());
  return true;
}

}  // namespace jitunwind
