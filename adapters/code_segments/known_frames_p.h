// Call frame information that was encoded before, of code of one shape and size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "jitunwind/builders/description.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind {

/// The frames have no pointer besides the begin of the code. The caller has a lock.
class KnownFrames {
 public:
  /// The words that the frames depend on.
  struct Key {
    FrameShape shape{};  ///< empty: these frames are no other's
    std::uint64_t size = 0;
    friend bool operator==(const Key&, const Key&) noexcept = default;
  };
  struct Entry {
    Key key{};
    std::vector<std::byte> frames{};
  };

  /// Code with handlers has pointers of its own.
  static Key key_of(const Description& description, const Code& code) noexcept {
    const bool is_plain = description.format() == UNW_INFO_FORMAT_DYNAMIC && description.personality() == 0 &&
                          description.lsda() == 0 && code.lsda == 0;
    return is_plain ? Key{description.shape(), code.size} : Key{};
  }

  /// Empty: they are not known.
  std::span<const std::byte> find(const Key& key) const noexcept {
    if (!key.shape) return {};
    const Entry& entry = entries_[slot(key)];
    return entry.key == key ? std::span(entry.frames) : std::span<const std::byte>();
  }
  /// Swaps the entry with the one in its place, which is destroyed without the lock: shapes have one of their own.
  void swap(Entry& entry) noexcept { std::swap(entries_[slot(entry.key)], entry); }

 private:
  static constexpr unsigned k_bits = 8;
  static std::size_t slot(const Key& key) noexcept {
    return table_place(hash_with(reinterpret_cast<std::uintptr_t>(key.shape.regions()), key.size), k_bits);
  }

  std::array<Entry, std::size_t{1} << k_bits> entries_{};
};

}  // namespace jitunwind
