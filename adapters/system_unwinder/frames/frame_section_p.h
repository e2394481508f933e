// A section of call frame information for libgcc's __register_frame, whose entries are added and removed while other
// threads unwind by it. libgcc returns pointers into a section and reads on without its lock, so that an entry must not
// change as long as its procedure is registered. It also reads a section at any time, so that a registered section must
// not change at all.
//
// There are therefore two copies, one of them registered. A change is written to the other copy, which libgcc does not
// know, and in which every entry has the same place; remaining entries are there already. The copies are then swapped,
// and the other copy has to catch up with the changes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

// They are weak, because a strong reference would pull in a static libgcc's own _Unwind_Find_FDE.
extern "C" {
[[gnu::weak]] void __register_frame(const void* begin);
[[gnu::weak]] void __deregister_frame(const void* begin);
// libgcc's functions with memory of the caller's, which the second one returns.
[[gnu::weak]] void __register_frame_info(const void* begin, void* object);
[[gnu::weak]] void* __deregister_frame_info(const void* begin);
}

namespace jitunwind {

constexpr std::size_t k_end_size = 4;  ///< of the end of a section, a length of 0

/// libgcc may still read a section and its object after it released its lock, although the section was deregistered
/// meanwhile (libgcc 12, _Unwind_Find_FDE: the encoding of the function's address). The memory is therefore set aside,
/// much longer than any thread takes for these instructions, before it is reused.
class SectionMemory {
 public:
  using Clock = std::chrono::steady_clock;
  using Bytes = std::vector<std::byte>;
  /// `struct object` has 6 or 7 words.
  using Object = std::array<std::uintptr_t, 8>;
  static constexpr std::chrono::seconds k_set_aside{10};

  Object* take(Clock::time_point now = Clock::now());
  void give_back(Object* object, Clock::time_point now = Clock::now());
  void give_back(Bytes section, Clock::time_point now = Clock::now());

 private:
  template <class T>
  struct Resting {
    Clock::time_point since;
    T what;
  };
  std::deque<Resting<std::unique_ptr<Object>>> objects_;
  std::deque<Resting<Bytes>> sections_;
};

class FrameSection {
 public:
  using Bytes = SectionMemory::Bytes;
  /// The number of an entry, as long as it exists.
  using Place = std::uint32_t;

  FrameSection() = default;
  FrameSection(const FrameSection&) = delete;
  FrameSection& operator=(const FrameSection&) = delete;
  /// Precondition: no copy is published.
  ~FrameSection() = default;

  /// Adds CIEs and FDEs, a multiple of 8 bytes. O(1), except for a section that grows or has many gaps.
  Place add(std::span<const std::byte> entries);
  /// O(1).
  void remove(Place place) noexcept;
  /// Publishes the changes so far to libgcc; remaining entries are known at all times. Takes time in proportion to the
  /// changes, and libgcc's search for a section among all.
  void publish(SectionMemory& memory);

 private:
  struct Stretch {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;  ///< 0: none
  };
  struct Changes {
    std::vector<Stretch> stretches{};
    bool all = false;

    void note(Stretch stretch) noexcept;
    bool empty() const noexcept { return !all && stretches.empty(); }
    void clear() noexcept { stretches.clear(), all = false; }
  };

  Bytes& unpublished() noexcept { return copies_[1 - current_]; }
  static bool fits(const Stretch& gap, std::uint32_t size) noexcept;
  void catch_up() noexcept;
  void make_room(std::size_t bytes);
  void lay_out(std::size_t bytes);
  /// Size 0: there is none.
  Stretch take_stretch(std::uint32_t size) noexcept;

  std::vector<Stretch> entries_;  // by place
  std::vector<Place> free_places_;
  std::vector<Stretch> gaps_;
  std::uint32_t end_ = 0;   // end of the space that was ever laid out
  std::uint32_t live_ = 0;  // bytes of entries
  std::array<Bytes, 2> copies_{};
  std::vector<Bytes> outgrown_;
  unsigned current_ = 0;  // index of the copy that is published, or was last
  Changes missing_{};     // changes that the other copy lacks
  Changes changed_{};     // changes in the other copy since the last publication
  const std::byte* published_ = nullptr;
  SectionMemory::Object* object_ = nullptr;  // of the published copy
};

class FramePool {
 public:
  /// Takes at least `size` bytes, aligned to 16.
  std::byte* take(std::size_t size);
  /// `size` is the argument of take().
  void give_back(std::byte* block, std::size_t size) noexcept;

 private:
  static constexpr std::size_t k_unit = 16;
  static constexpr std::size_t k_largest = 1024;  ///< larger blocks have memory of their own
  static constexpr std::size_t k_chunk = 16 * k_largest;

  struct Free {
    Free* next;
  };
  std::array<Free*, k_largest / k_unit + 1> free_{};  // by size in units
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace jitunwind
