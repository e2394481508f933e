// A code segment: a file that the dynamic linker has opened as a library, and that grows in place. Its text is the
// dynamic linker's own mapping, r-x and private. It is written through a second mapping of the file, rw- and shared.
// The pages of both are the same as long as nobody writes to a private one.
//
// Readers know nothing of writers: unwinders, debuggers and profilers, of this process and of others, read the tables
// at any moment. Each store therefore leaves tables that are whole:
//
//   append    search entry with the FDE of no code, number of entries; empty symbol, number of symbols, size of .dynsym
//   publish   FDE behind the others, and last its first length, a 0 that ended the section; size of .eh_frame; search
//             entry; name; size and address of the symbol, and last its first word, which says what it is; size of
//             .text
//   withdraw  first word and address of the symbol; search entry; range of the FDE, and its begin
//
// A room for several functions has as many entries, which are published in the order of addresses, and withdrawn from
// the last to the first. Those without function are that of no code at the room's last byte.
//
// An FDE whose range is 0 is rewritten in its place, where it is that of no code: it gets another begin; its
// instructions become nops from the last to the first, and then the new ones from the first to the last, so that it can
// be read at any moment. A name is written over only if there is not much room. An FDE or a name that is too small for
// a function is exchanged for that of one that is gone.
//
// Addresses go up as they are given out, so the search table is sorted at all times. Nothing ever moves.
//
// Readers keep what they have read of a file. So the content becomes a new file from time to time, which takes the name
// of the former one and is mapped over it: readers that watch mappings look again. A sealed one has a build-id and
// never changes. Its tables are then written to in the image, whose pages become this process's own, so that readers in
// the process miss what has gone, while readers of the file know what was there.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/adapters/code_segments/code_folder_p.h"
#include "jitunwind/adapters/code_segments/segment_file_p.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// The parts of a segment's file that grow. The first one begins with the file.
enum class Growing : std::uint8_t { symbols, strings, search_table, frames, text };

/// Comes back when no callback of dl_iterate_phdr() runs, or after a second. A thread that loads or closes a library
/// meanwhile waits for the callback, and has a lock that the callback waits for if it starts a thread.
void let_libraries_be_listed() noexcept;

/// A part of a file's content.
struct FilePart {
  std::size_t at = 0;
  std::span<const std::byte> bytes{};
};

inline constexpr char k_pages_prefix[] = "pages-";  // of the names of files of pages

/// The file of a segment, or memory without a name. The destructor unmaps both views and removes the file.
class SegmentMemory {
 public:
  SegmentMemory() noexcept = default;
  SegmentMemory(SegmentMemory&& other) noexcept { swap(other); }
  SegmentMemory& operator=(SegmentMemory&& other) noexcept { return swap(other), *this; }
  ~SegmentMemory();

  /// Makes the file in this process's folder in `place`, and opens it. Errors: io, and invalid_argument for CPUs of
  /// which no such files are made; their texts say why. Throws std::bad_alloc.
  static Result<SegmentMemory> publish(const std::string& place, FilesAtEnd files, SegmentLayout& layout,
                                       const Arch& arch);
  /// Makes the file for pages whose first one is at `text`. Its only mapping besides that over the pages is the view,
  /// at `tables`, behind the text: perf takes the lowest mapping that a file has ever had for the one with the file's
  /// first address. Errors as above. Throws std::bad_alloc.
  static Result<SegmentMemory> publish_pages(const std::string& place, FilesAtEnd files, SegmentLayout& layout,
                                             const Arch& arch, Addr text, Addr tables);
  /// Memory for text alone, which nobody else knows; the layout becomes that of text. Error out_of_memory.
  static Result<SegmentMemory> unnamed(SegmentLayout& layout) noexcept;

  bool is_published() const noexcept { return is_file_ && view_ != nullptr; }
  const std::string& path() const noexcept { return path_; }                               ///< empty: it has none
  std::byte* writable() const noexcept { return view_; }                                   ///< of offset 0
  std::byte* tables() const noexcept { return is_sealed_ ? pointer_to_image(0) : view_; }  ///< of offset 0, writable
  bool is_sealed() const noexcept { return is_sealed_; }
  Addr image() const noexcept { return image_; }  ///< address of offset 0
  const std::byte* image_bytes() const noexcept { return pointer_to_image(0); }
  /// Makes a file of these parts, gives it the name of the former one, and maps it over that, the writable view as
  /// well. Returns the name that the former one has now, which somebody may have just read. The caller removes it
  /// later. "": it has none, or is the one that the dynamic linker opened, which stays with its segment. Error io:
  /// nothing has changed. Throws std::bad_alloc. Precondition: is_published(), nobody writes to the view or to the
  /// image, and the parts are what both show.
  Result<std::string> renew(std::span<const FilePart> parts, const SegmentLayout& layout, bool seals);
  /// Gives the file pages from the begin of a part to its end, both offsets, if it has none yet. False: it gets none,
  /// and lack() is the reason. Precondition: not is_sealed().
  bool back(Growing part, std::size_t begin, std::size_t end) noexcept {
    return has_all_pages_ || end <= backed_[static_cast<std::size_t>(part)] || back_more(part, begin, end);
  }
  const char* lack() const noexcept { return lack_; }  ///< null: back() has not returned false
  /// Gives it all pages, if the disk has room for them, and they are no more than a program may never need.
  void back_all_ahead() noexcept {
    constexpr std::size_t k_most = std::size_t{4} << 20;
    if (!has_all_pages_ && bytes_ <= k_most && back_pages(0, bytes_)) backed_.fill(bytes_);
  }
  /// Says that renew() has made a file that has pages up to the end of this part alone. The last one may be the only
  /// one of its unit.
  void backed_until(Growing part, std::size_t end) noexcept {
    backed_[static_cast<std::size_t>(part)] = end / k_unit * k_unit;
  }
  /// Sets the file's time of change, which writing to memory does not.
  void stamp() const noexcept;
  /// Removes the file, which stays mapped, unless it is to be kept.
  void remove_file() noexcept;
  /// A forked child calls it: the file is the parent's, and the child has no view (MADV_DONTFORK). `copy` begins with a
  /// copy of the image up to `text_end`, and the text at `text`; its pages become the image's. Null: there is no copy,
  /// and the image shows what the parent writes. Signal-safe.
  void leave_to_parent(std::byte* copy, std::size_t text, std::size_t text_end) noexcept;

 private:
  void swap(SegmentMemory& other) noexcept;
  std::byte* pointer_to_image(std::size_t at) const noexcept { return pointer_to<std::byte>(image_ + at); }
  bool map_view(int file, Addr at) noexcept;
  static constexpr std::size_t k_unit = 16384;  // a page, or several
  static constexpr std::size_t up_to_unit(std::size_t at) noexcept { return (at + k_unit - 1) / k_unit * k_unit; }
  bool back_pages(std::size_t from, std::size_t to) noexcept;
  bool back_more(Growing part, std::size_t begin, std::size_t end) noexcept;
  bool back_otherwise() noexcept;
  Status back_begins(const SegmentLayout& layout) noexcept;
  Status give_size(int file) const noexcept;
  Status back_all(int file) noexcept;
  Status map(int file, Addr at) noexcept;
  Status open() noexcept;
  void lift_view() noexcept;
  Status map_anew(int file, const SegmentLayout& layout, bool seals) noexcept;
  static Result<SegmentMemory> make_file(const std::string& place, FilesAtEnd files, const char* prefix,
                                         SegmentLayout& layout, const Arch& arch, Addr view);

  std::string path_;
  FilesAtEnd files_ = FilesAtEnd::removed;
  std::byte* view_ = nullptr;
  std::size_t bytes_ = 0;  // of the view
  Addr image_ = 0;
  std::size_t image_bytes_ = 0;          // of an image without a handle and not the view
  void* handle_ = nullptr;               // of dlopen(); null: the image is a mapping of its own
  std::array<std::size_t, 5> backed_{};  // ends of what has pages, of each part
  bool has_all_pages_ = true;
  const char* lack_ = nullptr;
  bool is_sealed_ = false;
  bool is_file_ = false;
  bool has_first_ = false;  // the file that the dynamic linker opened has this name behind its own:
  static constexpr const char* k_first = ".first";
};

/// The sizes by which rooms are alike.
struct RoomSize {
  std::size_t bytes = 0;
  std::size_t parts = 0;
  std::size_t alignment = 16;  ///< a power of two
  friend auto operator<=>(const RoomSize&, const RoomSize&) noexcept = default;
};

/// One thread at a time, except for the constants.
class Segment {
 public:
  /// Bytes of a table that a function has, also when it is empty.
  struct Slot {
    std::uint32_t at = 0;  ///< in the file; of names, in the string table
    std::uint32_t size = 0;
  };
  using Index = std::uint32_t;
  /// A room, and the function at its start; or a part, which serves another function of the room before it. A part
  /// without function is that of the room's last byte.
  struct Function {
    /// Busy: somebody commits, publishes or releases it.
    enum class State : std::uint8_t { empty, allocated, committed, busy, part };
    std::uint32_t at = 0;    ///< in the text
    std::uint32_t size = 0;  ///< of the room
    Slot frames{};           ///< a CIE and its FDE
    Slot name{};
    State state = State::empty;
    bool is_published = false;
    bool was_named = false;
    bool is_open = false;  ///< code is written to the room
    Index parts = 0;       ///< that follow the room
    Index parts_used = 0;
    std::uint32_t alignment = 0;           ///< of the room
    unw_dyn_info_t* registered = nullptr;  ///< of a committed one; see Registration::release()
    bool is_gone() const noexcept { return state == State::empty && !is_published; }
  };

  /// Throws std::bad_alloc; no other function does.
  Segment(SegmentMemory memory, const SegmentLayout& layout);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  bool is_published() const noexcept { return memory_.is_published(); }
  /// False in a forked child.
  bool is_writable() const noexcept { return memory_.writable() != nullptr; }
  SegmentMemory& memory() noexcept { return memory_; }
  const SegmentMemory& memory() const noexcept { return memory_; }
  AddrRange text() const noexcept { return {text_, text_ + layout_.text_bytes}; }
  std::span<std::byte> writable(const Function& function) const noexcept {
    return {memory_.writable() + layout_.text + function.at, function.size};
  }
  Addr start(const Function& function) const noexcept { return text_ + function.at; }

  /// Takes room at the end, with parts. None: there is no more, or the tables may have no room for its functions.
  std::optional<Index> append(const RoomSize& size) noexcept;
  /// Takes exactly this room, at these offsets in the text and behind the last one; the size counts for its parts
  /// alone.
  std::optional<Index> append_at(std::size_t begin, std::size_t end, const RoomSize& size) noexcept;
  /// The room that begins there. None: there is none.
  std::optional<Index> find(Addr start) const noexcept;
  /// The room that has this byte. Precondition: it is one of the text.
  std::optional<Index> find_around(Addr at) const noexcept;
  /// The room itself, or its next part, for a function that begins there. None: there is no part left, or a function
  /// there or behind it is published.
  std::optional<Index> take_entry(Index room, Addr start) noexcept;
  Function& operator[](Index index) noexcept { return functions_[index]; }
  const Function& operator[](Index index) const noexcept { return functions_[index]; }
  std::size_t count() const noexcept { return functions_.size(); }
  std::size_t rooms() const noexcept { return rooms_; }
  /// Whether so many functions may have room for their tables, and whether those of this room may. A room has that of
  /// the functions before it, until one in the segment that needs more has taken of the rest.
  bool has_room_in_tables(std::size_t count = 1) const noexcept;
  bool has_room_in_tables(const Function& function) const noexcept {
    return has_room_in_tables() || (function.frames.size != 0 && !are_tables_full_);
  }
  /// Whether the next functions need another segment soon.
  bool is_half_full() const noexcept;

  /// The address at which the next call frame information will lie.
  Addr next_frame() const noexcept { return memory_.image() + frames_end_; }
  /// Publishes code of `size` bytes. `frames`: a CIE and an FDE, for next_frame() if they have pointers besides the
  /// begin of the code; or nothing. `name`: without NUL. False: the tables have no room for all of it; what has room is
  /// published. Precondition: is_published().
  bool publish(Index index, std::uint64_t size, std::span<const std::byte> frames, std::string_view name) noexcept;
  /// Withdraws all functions of a room.
  void withdraw(Index room) noexcept;

  /// SegmentMemory::renew() with what is there. Error io, also if somebody wrote to the image. Throws std::bad_alloc.
  /// Preconditions: is_published(), and nobody writes code.
  Result<std::string> renew(bool seals);

  // The parent may write other code into a room that is empty, or change code, while a child runs what was there at the
  // fork. The child therefore has copies, which are made before the fork. All three are signal-safe.

  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

  unsigned live = 0;    ///< functions that are not empty
  unsigned open = 0;    ///< those of them that somebody may be writing
  unsigned listed = 0;  ///< empty rooms that others may have
  // Times of CLOCK_MONOTONIC; 0: it has not changed yet.
  std::int64_t renewed_at = 0, stamped_at = 0;

 private:
  template <class Number>
  void store(std::size_t at, Number value) noexcept;
  using Parts = std::array<FilePart, 5>;
  /// All that is in use, but for the dynamic section; the rest is 0.
  Parts parts() const noexcept;
  void note_change() noexcept;
  void copy(std::size_t at, const void* from, std::size_t size) noexcept;
  void store_search_entry(Index index, std::size_t frame) noexcept;
  bool append_frames(Function& function, std::span<const std::byte> frames) noexcept;
  bool may_hold(const Slot& slot, std::span<const std::byte> frames) const noexcept;
  void rewrite_frames(const Function& function, std::span<const std::byte> frames) noexcept;
  template <class Serves>
  bool take_over(Function& function, Slot Function::*slot, Serves serves) noexcept;
  bool back_room(std::size_t count, std::size_t text_end) noexcept;
  void append_tables(Index index) noexcept;
  void withdraw_one(Index index) noexcept;
  std::size_t block_of(Addr offset) const noexcept { return static_cast<std::size_t>(offset >> block_shift_); }
  std::size_t frames_left() const noexcept;
  std::size_t strings_left() const noexcept;
  Slot take_string(std::size_t size) noexcept;
  bool find_room_for_name(Function& function, std::size_t size, bool is_new) noexcept;
  bool publish_frame(Index index, std::span<const std::byte> frames) noexcept;
  bool publish_symbol(Index index, std::uint64_t size, std::string_view name) noexcept;

  SegmentMemory memory_;
  const SegmentLayout layout_;
  const Addr text_;
  const unsigned block_shift_;       // of blocks of the text, which are at most as many as functions
  std::vector<Function> functions_;  // by address
  std::size_t rooms_ = 0;            // of them
  std::vector<Index> blocks_;        // the first function that begins in each one, or behind it
  mutable Index next_ = 0;           // behind the room that was found last, which is often looked for next
  std::byte* copy_ = nullptr;        // during a fork
  std::size_t text_end_ = 0;
  std::size_t frames_end_;          // offset in the file
  std::size_t strings_end_ = 1;     // in the string table
  std::size_t without_frames_ = 0;  // functions that have none yet, for which there is room
  bool are_tables_full_ = false;    // none but those that have room already may use the rest
  std::uint64_t known_text_ = 0;    // bytes, up to the last function that was published
  std::uint64_t generation_ = 0;
};

}  // namespace jitunwind
