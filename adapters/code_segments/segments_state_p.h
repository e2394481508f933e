// The segments of one CodeSegments, and the rooms of functions in them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jitunwind/adapters/code_segments/code_segments.h"
#include "jitunwind/adapters/code_segments/segment_p.h"
#include "jitunwind/builders/description.h"
#include "jitunwind/builders/draft/mark_recorder.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/threads/own_thread_internal.h"
#include "jitunwind/unwind_core/targets/tracer_internal.h"

namespace jitunwind {

/// Call frame information that was encoded before, of code of one shape. That of other code differs in its pointers,
/// and that of another size in two numbers: the size, and the distance to the first row that is counted from the end.
/// The caller has a lock.
class KnownFrames {
 public:
  struct Facts {
    std::uint64_t size = 0;
    Addr personality = 0, lsda = 0;
  };
  /// All that the frames depend on. Those of neither a shape nor marks are no other's.
  struct Key : Facts {
    const FrameShape* shape = nullptr;
    std::span<const std::uint64_t> marks{};
    explicit operator bool() const noexcept { return shape != nullptr || !marks.empty(); }
  };
  struct Entry : Facts {
    FrameShape shape{};
    std::vector<std::uint64_t> marks{};
    std::vector<std::byte> frames{};
    Addr unit = 0;                ///< of instructions, of code that has these frames at any size; 0: at this one alone
    std::size_t distance_at = 0;  ///< in the frames; 0: there is none
    std::uint64_t rest = 0;       ///< units of the code besides the distance
    /// Units before the rest of the code, and those counted from its end; of marks, as they were said.
    std::uint64_t front = 0, tail = 0;

    /// Frames that have other instructions than the usual ones serve one size, those of other code (ALIAS) none.
    void assign(const Key& key, std::span<const std::byte> its_frames, const unw_dyn_info_t& procedure);
    bool is_for(const Key& key) const noexcept {
      return (key.shape != nullptr ? shape == *key.shape : !shape) && std::ranges::equal(marks, key.marks) &&
             personality == key.personality && (lsda != 0) == (key.lsda != 0);
    }
    bool has_distance(std::uint64_t in_size) const noexcept {
      const std::uint64_t units = in_size / unit;
      return in_size % unit == 0 && units > tail && units - tail > front;
    }
    /// Makes them those of code of this size. False: they stay as they are, since the distance would be longer or
    /// shorter.
    bool resize(std::uint64_t new_size) noexcept;
    /// Makes them those that begin there, with this data.
    void point(Addr place, Addr to_lsda) noexcept;
  };

  /// Refers to the description.
  static Key key_of(const Description& description, const Code& code) noexcept {
    if (description.format() != UNW_INFO_FORMAT_DYNAMIC || !description.shape()) return {};
    const Addr lsda = code.lsda != 0 ? code.lsda : description.lsda();
    const Addr personality = description.personality();
    return {{code.size, personality, personality != 0 ? lsda : 0}, &description.shape()};
  }
  static constexpr std::size_t k_most_marks = 256, k_most_frames = 4096;  // bytes
  using Words = std::array<std::uint64_t, 2 * k_most_marks + 7>;
  /// Refers to `words`, which get the marks as they were said: registering them gives them places in code of one size.
  static Key key_of(const MarkRecorder& marks, const Code& code, Words& words) noexcept;

  /// Those that begin at `place`. Empty: they are not known.
  std::span<const std::byte> find(const Key& key, Addr place) noexcept {
    if (!key) return {};
    for (Entry& entry : entries_[table_place_of(key)])
      if (entry.is_for(key) && (entry.size == key.size || entry.resize(key.size)))
        return entry.point(place, key.lsda), entry.frames;
    return {};
  }
  /// Puts the entry in, and gives the older one of its place, which is destroyed without the lock: shapes have one of
  /// their own.
  void exchange(const Key& key, Entry& entry) noexcept {
    for (Entry& known : entries_[table_place_of(key)]) std::swap(known, entry);
  }

 private:
  static constexpr unsigned k_bits = 7;
  /// Sizes whose distances have one length have one place, but for those that are only just so large.
  static std::size_t table_place_of(const Key& key) noexcept {
    std::uint64_t hash = key.shape != nullptr ? reinterpret_cast<std::uintptr_t>(key.shape->regions()) : 0;
    for (const std::uint64_t word : key.marks) hash = hash_with(hash, word);
    return table_place(hash_with(hash, (key.size >= 64) + (key.size > 0xff) + (key.size > 0xffff)), k_bits);
  }

  // Two of one place do not take turns.
  std::array<std::array<Entry, 2>, std::size_t{1} << k_bits> entries_{};
};

/// Guards all states and their segments, which are whole in forked children. It is never held while the registry or the
/// dynamic linker is called.
inline constinit ForkableLock segments_lock;
inline constinit std::atomic<bool> segments_are_changing{false};  // somebody has the lock

class [[nodiscard]] SegmentsLock {
 public:
  SegmentsLock() noexcept {
    segments_lock.lock();
    segments_are_changing.store(true, std::memory_order_relaxed);
  }
  ~SegmentsLock() {
    segments_are_changing.store(false, std::memory_order_relaxed);
    segments_lock.unlock();
  }
  SegmentsLock(const SegmentsLock&) = delete;
  SegmentsLock& operator=(const SegmentsLock&) = delete;
};

/// A segment that nothing uses is closed, except for the current one and for one that is ahead of it.
struct CodeSegments::State {
  static inline constinit State* first = nullptr;  // of all states
  static inline constinit std::atomic<bool> are_in_forks{false};

  static constexpr std::size_t k_largest_function = std::size_t{1} << 30;
  static constexpr Error k_unknown{ErrorCode::not_registered, 0,
                                   "no room for code begins there, or it has code already"};

  explicit State(const CodeSegmentsOptions& its_options) noexcept
      : options{std::clamp<std::size_t>(its_options.text_bytes, k_largest_page_size, k_largest_function),
                std::clamp<std::size_t>(its_options.functions, 1, std::size_t{1} << 20), its_options.changes_code} {}
  /// Null: no memory.
  static State* make(const CodeSegmentsOptions& options) noexcept;
  static void take_part_in_forks() noexcept;
  /// Whether a file has the function that begins there, by name and with call frame information.
  static bool is_published(Addr start) noexcept;
  [[gnu::destructor(101)]] static void remove_files() noexcept;  // after the destructors of static objects

  struct Place {
    Segment* segment = nullptr;
    Segment::Index index = 0;
    explicit operator bool() const noexcept { return segment != nullptr; }
    Segment::Function& function() const noexcept { return (*segment)[index]; }
  };
  using Opened = std::unique_ptr<Segment>;

  Result<CodeRoom> allocate(std::size_t size, std::size_t more_functions, std::size_t alignment);
  /// The two ways to register code.
  Status commit(const Description& description, const Code& code) noexcept;
  Status commit(MarkRecorder& marks, const Code& code) noexcept;
  Status publish(AddrRange code) noexcept;
  Status release(Addr start) noexcept;
  Status seal() noexcept;
  void close() noexcept;
  void abandon() noexcept;
  static void close_abandoned() noexcept;
  void enter_list() noexcept;
  void report(CodeSegmentsStatus& out) const;

  // These require the lock.
  template <class Action>
  void each_segment(Action action) noexcept {
    for (auto& [end, segment] : segments) action(*segment);
    if (spare) action(*spare);
    for (const Opened& segment : leaving) action(*segment);
  }
  void leave_to_parent() noexcept;
  Place find(Addr start, Segment::Function::State state) const noexcept;
  Place find_around(AddrRange code) const noexcept;
  bool fits_any_segment(const RoomSize& size) const noexcept {
    return size.bytes <= options.text_bytes && size.parts < options.functions;
  }
  Place take(const RoomSize& size, Opened& unused);
  Place take_empty(const RoomSize& size) noexcept;
  void use(Opened opened, Opened& unused);
  CodeRoom room_of(Place place) noexcept;
  bool hands_out_all(const Segment& segment) const noexcept;
  void list_empty(Place place) noexcept;
  void unlist(Segment& segment) noexcept;
  bool may_be_renewed(const Segment& segment) const noexcept;
  bool is_full(const Segment& segment) const noexcept;
  Status renew(Segment& segment, bool seals) noexcept;
  void renew_if_it_is_time(Segment& segment) noexcept;
  bool open_again(Segment& segment) noexcept;
  void remove_outdated() noexcept;
  bool wants_spare() const noexcept;
  void work_ahead() noexcept;
  Opened make_empty(Place place) noexcept;
  Opened take_out_unused(Segment* segment) noexcept;
  void leave_list() noexcept;
  void refuse(const Error& error) noexcept { ++refused, latest_refusal = error; }
  void enter(Place room, AddrRange code, std::span<const std::byte> frames, std::string_view name) noexcept;
  void finish(Place room, unw_dyn_info_t* procedure) noexcept;
  void end_writing(Place room) noexcept;

  // These must not have it.
  Opened open(const CodeSegmentsOptions& sizes, const Status& may_have_file);
  static void find_list_owner() noexcept;
  /// This thread is in a callback of dl_iterate_phdr(): it must not open or close a segment, or start a thread.
  static bool lists_libraries() noexcept;
  void cancel_all() noexcept;
  void close_segment(Opened segment) noexcept;
  Result<CodeRoom> allocate(const RoomSize& size, Opened& unused);
  Status release(Addr start, Opened& unused) noexcept;
  Opened open_published(SegmentLayout& layout, const std::string& place);
  template <class Register>
  Status commit(const Code& code, std::string_view name, const KnownFrames::Key& key, Register register_it) noexcept;
  /// Does no more than finish() for a segment without a file. The procedure is the room's when it returns.
  void publish(Place room, std::string_view name, const KnownFrames::Key& key, unw_dyn_info_t* procedure) noexcept;
  /// `keep` gets the frames of the code at the room's start.
  template <class Keep>
  void publish_encoded(Place room, AddrRange code, Keep keep) noexcept;
  void seal_full() noexcept;
  static void work(void* self) noexcept;

  const CodeSegmentsOptions options;
  CodePlaces places;
  State* next = nullptr;
  std::map<Addr, Opened> segments;  // by end of the text
  Segment* current = nullptr;
  Opened spare;
  bool is_at_work = false, is_some_full = false;
  bool is_abandoned = false;  // its owner has gone, in a callback of dl_iterate_phdr()
  OwnThread worker;
  std::vector<Opened> leaving;  // that the worker closes
  /// Rooms without code, by size. That which has been empty for the longest time is taken first: somebody may have read
  /// its name, or sampled its code, just before it was released.
  std::map<RoomSize, std::deque<Place>> empty;
  KnownFrames known_frames;
  Tracer tracer;
  std::string folder, outdated;
  std::int64_t next_renewal = 0;
  std::size_t committed = 0;
  std::uint64_t refused = 0;
  Error latest_refusal{};
};

}  // namespace jitunwind
