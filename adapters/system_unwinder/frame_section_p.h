// A section of call frame information for libgcc's __register_frame, whose entries come and go while other threads
// unwind by it. libgcc gives out pointers into a section and reads on without its lock, so an entry must stay as it is
// as long as its procedure is registered; and it reads a section when it pleases, so nothing of one that is registered
// may change.
//
// Hence two copies, one of them registered. A change is written into the other one, which libgcc knows nothing of, and
// in which every entry is at the same place: those that stay are there already, or will not be touched. Then they swap.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <vector>

namespace jitunwind {

/// What libgcc keeps of a section while it is registered. libgcc 12 reads it once more when it has given its lock back
/// (_Unwind_Find_FDE: the encoding of the function's address), and somebody may have deregistered the section by then:
/// so the memory rests, much longer than any thread takes for these instructions, before it is used again.
class SectionObjects {
 public:
  using Clock = std::chrono::steady_clock;
  /// `struct object` has 6 or 7 words.
  using Object = std::array<std::uintptr_t, 8>;
  static constexpr std::chrono::seconds k_rest{10};

  Object* take(Clock::time_point now = Clock::now());
  void give_back(Object* object, Clock::time_point now = Clock::now());

 private:
  struct Resting {
    Clock::time_point since;
    std::unique_ptr<Object> object;
  };
  std::deque<Resting> resting_;
};

class FrameSection {
 public:
  using Bytes = std::vector<std::byte>;
  struct Slot {
    std::size_t offset;
    std::size_t size;
    Bytes entries;  // empty: free
  };
  using Place = std::list<Slot>::iterator;

  FrameSection() = default;
  FrameSection(const FrameSection&) = delete;
  FrameSection& operator=(const FrameSection&) = delete;
  /// Nothing of it may be published.
  ~FrameSection() = default;

  /// CIEs and FDEs, a multiple of 8 bytes. Invalidates nothing.
  Place add(Bytes entries);
  void remove(Place place) noexcept;
  /// What was added and removed so far becomes known to libgcc, at once for what stays.
  void publish(SectionObjects& objects);

 private:
  using Copies = std::array<Bytes, 2>;

  bool has_entries() const noexcept;
  void grow(std::size_t bytes);
  void join_with_next(Place place) noexcept;

  std::list<Slot> slots_;       // all bytes, in the order of their offsets
  std::vector<Copies> copies_;  // the last are those in use; the others may be being read
  unsigned current_ = 0;        // which of the last two
  const std::byte* published_ = nullptr;
  SectionObjects::Object* object_ = nullptr;  // of what is published
};

}  // namespace jitunwind
