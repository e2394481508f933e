// A section of call frame information for libgcc's __register_frame, whose entries come and go while other threads
// unwind by it. libgcc gives out pointers into a section and reads on without its lock, so an entry must stay as it is
// as long as its procedure is registered; and it reads a section when it pleases, so nothing of one that is registered
// may change.
//
// Hence two copies, one of them registered. A change is written into the other one, which libgcc knows nothing of, and
// in which every entry is at the same place: those that stay are there already. Then they swap, and what was changed is
// what the other copy has to catch up with.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace jitunwind {

/// What libgcc may still be reading when it has given its lock back, though it was deregistered meanwhile: of a section
/// what it keeps of it (libgcc 12, _Unwind_Find_FDE: the encoding of the function's address), and the section. So the
/// memory is set aside, much longer than any thread takes for these instructions, before it is used again.
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
  /// Of an entry, as long as it is there.
  using Place = std::uint32_t;

  FrameSection() = default;
  FrameSection(const FrameSection&) = delete;
  FrameSection& operator=(const FrameSection&) = delete;
  /// Nothing of it may be published.
  ~FrameSection() = default;

  /// CIEs and FDEs, a multiple of 8 bytes. O(1) but for a section that grows, or has many gaps.
  Place add(std::span<const std::byte> entries);
  /// O(1).
  void remove(Place place) noexcept;
  /// What was added and removed so far becomes known to libgcc, at once for what stays. Takes as long as what was
  /// changed, and libgcc's search for a section among all.
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
  /// One of size 0 where there is none.
  Stretch take_stretch(std::uint32_t size) noexcept;

  std::vector<Stretch> entries_;  // by place
  std::vector<Place> free_places_;
  std::vector<Stretch> gaps_;
  std::uint32_t end_ = 0;   // of all that was ever laid out
  std::uint32_t live_ = 0;  // bytes of entries
  std::array<Bytes, 2> copies_{};
  std::vector<Bytes> outgrown_;
  unsigned current_ = 0;  // which of the two is published, or was last
  Changes missing_{};     // what the other one lacks
  Changes changed_{};     // in the other one since
  const std::byte* published_ = nullptr;
  SectionMemory::Object* object_ = nullptr;  // of what is published
};

}  // namespace jitunwind
