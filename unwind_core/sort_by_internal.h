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

namespace jitunwind {

struct SortKey {
  std::uint64_t key;
  std::size_t place;
};
[[gnu::noinline]] inline void sort_keys(std::span<SortKey> keys) noexcept {
  std::ranges::sort(
      keys, [](const SortKey& a, const SortKey& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; });
}

/// Sorts in ascending order and keeps the order of equal elements. Nearly all ranges are sorted already; these are only
/// checked. Sorting others allocates. `key_of` returns an integer.
template <class T, class KeyOf>
void sort_by(std::vector<T>& range, KeyOf key_of) {
  if (std::ranges::is_sorted(range, {}, key_of)) return;
  using Key = std::remove_cvref_t<std::invoke_result_t<KeyOf&, T&>>;
  constexpr std::uint64_t k_sign = std::is_signed_v<Key> ? std::uint64_t{1} << 63 : 0;
  std::vector<SortKey> keys;
  keys.reserve(range.size());
  for (T& one : range) keys.push_back({static_cast<std::uint64_t>(std::invoke(key_of, one)) ^ k_sign, keys.size()});
  sort_keys(keys);
  std::vector<T> sorted;
  sorted.reserve(range.size());
  for (const SortKey& key : keys) sorted.push_back(std::move(range[key.place]));
  range = std::move(sorted);
}

}  // namespace jitunwind
