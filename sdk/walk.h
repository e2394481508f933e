// Walks of the calling thread's stack in C++: a range over frames.
//
//   for (const jitunwind::Frame& frame : jitunwind::walk_here()) std::puts(frame.name().c_str());
//
// The stack space that each signal-safe function needs: docs/contracts.md "Stack".
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/cursor.h"

/// Writes the return addresses of the calling function and its callers, as many as fit. Unless `callers_only` is set,
/// the address behind this call comes first. Returns how many were written. Signal-safe, thread-safe.
extern "C" int jitunwind_backtrace(void** addresses, int size, int callers_only) noexcept;

#pragma GCC visibility push(default)
namespace jitunwind {

/// One frame of a walk. A copy stays valid after the walk has moved on, as long as its code and its stack exist. Its
/// name and its procedure may be asked for even while another thread unloads that code.
class Frame {
 public:
  explicit Frame(const Cursor& cursor) noexcept : cursor_(cursor) {}
  /// The arguments are those of cursor_at().
  Frame(const void* ucontext, Cursor::Top top, Guesses guesses) noexcept;

  /// The return address, or the pc itself where the frame was interrupted by a signal.
  Addr pc() const noexcept { return cursor_.pc(); }
  Addr sp() const noexcept { return cursor_.sp(); }
  CodeAddress address() const noexcept { return cursor_.address(); }
  /// 0 for the innermost frame.
  std::uint32_t depth() const noexcept { return cursor_.depth(); }

  /// The demangled name: the registered one, else that of the symbol which covers the code. Returns "" if there is
  /// none, as for stripped code: names of neighbouring code are not used. Allocates: not signal-safe.
  std::string name() const;
  /// Writes the name as it is in the symbol table or the registration, NUL-terminated and cut to fit; writes nothing if
  /// `into` is empty. Signal-safe. Error no_info: there is no name.
  Result<ProcedureName> raw_name(std::span<char> into) const noexcept { return cursor_.name(into); }
  /// pc - start of the named procedure; 0 when unknown. Signal-safe.
  std::uint64_t offset() const noexcept;

  /// The source that found this frame's row; is_guess() says whether the row is only a guess. Signal-safe.
  RowOrigin origin() const noexcept { return cursor_.origin(); }
  bool is_guess() const noexcept { return jitunwind::is_guess(origin()); }
  /// True for the kernel's signal trampoline: the next frame was interrupted and is not in a call. Signal-safe.
  bool is_signal_frame() const noexcept;
  /// Row of this frame. Error no_info when there is none. Signal-safe.
  Status row(FrameRow& out) const noexcept { return cursor_.find_row(out); }
  /// Finds the procedure of this frame. Signal-safe. Error no_info: no source knows the code, or it has been unloaded.
  Result<ProcedureInfo> procedure() const noexcept;
  /// The pointer that the code was registered with (Code::user); null if there is none. The registering side owns what
  /// it points to: whoever frees that when the code is cancelled waits for readers that may still use it. Signal-safe.
  void* user() const noexcept;

  /// Reads a register by its DWARF number; see Cursor::get. Signal-safe.
  Result<std::uint64_t> get(RegNum reg) const noexcept { return cursor_.get(reg); }
  SaveLocation location(RegNum reg) const noexcept { return cursor_.location(reg); }

  const Cursor& cursor() const noexcept { return cursor_; }
  Cursor& cursor() noexcept { return cursor_; }  ///< stepped, this is another frame

 private:
  friend class Walk;
  Cursor cursor_;
};

/// A single-pass range over the frames of one stack, innermost first. Signal-safe, allocates nothing, and may be left
/// at any frame. After the loop stop_reason() and why() say whether the stack is complete.
class Walk {
 public:
  explicit Walk(const Cursor& cursor) noexcept : frame_(cursor) {}
  /// Starts where cursor_at() does, without a copy of the cursor.
  Walk(const void* ucontext, Cursor::Top top, Guesses guesses) noexcept : frame_(ucontext, top, guesses) {}

  /// An input iterator; incrementing it moves the walk itself.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // from <string>: <iterator> also has the stream iterators
    using value_type = Frame;
    using difference_type = std::ptrdiff_t;
    using pointer = const Frame*;
    using reference = const Frame&;

    Iterator() noexcept = default;
    explicit Iterator(Walk& walk) noexcept : walk_(&walk) {}
    reference operator*() const noexcept { return walk_->frame_; }
    pointer operator->() const noexcept { return &walk_->frame_; }
    Iterator& operator++() noexcept {
      if (!walk_->advance()) walk_ = nullptr;
      return *this;
    }
    void operator++(int) noexcept { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.walk_ == b.walk_; }

   private:
    Walk* walk_ = nullptr;
  };

  /// Iteration begins at the walk's current frame.
  Iterator begin() noexcept { return Iterator(*this); }
  Iterator end() noexcept { return Iterator(); }

  /// none while there may be more frames.
  StopReason stop_reason() const noexcept { return frame_.cursor_.stop_reason(); }
  const Error& stop_error() const noexcept { return frame_.cursor_.stop_error(); }
  /// "complete", or one sentence that names the pc, the reason, the place, and the code if it has a name. Allocates.
  std::string why() const;

 private:
  bool advance() noexcept {
    const auto moved = frame_.cursor_.step();
    return moved && *moved;
  }

  Frame frame_;
};

/// Makes a cursor at the frame that a ucontext_t was captured in: with `interrupted` a signal handler's third argument,
/// with `returned_to` that of jitunwind_capture_context. Copies the registers. Cursor::set() writes to a handler's
/// context, too, which must outlive the cursor. `guesses`: Cursor::set_guesses(). Signal-safe. The context is of the
/// calling thread, of a stopped thread, or of one that does not leave these frames meanwhile; else frames are whatever
/// the stack holds. A walk ends at unmapped memory; memory that is unmapped while it is read faults.
Cursor cursor_at(const void* ucontext, Cursor::Top top, Guesses guesses = Guesses::confirmed) noexcept;

inline Frame::Frame(const void* ucontext, Cursor::Top top, Guesses guesses) noexcept
    : cursor_(cursor_at(ucontext, top, guesses)) {}

/// Walks the calling function's frame and its callers. Signal-safe.
[[gnu::always_inline]] inline Walk walk_here(Guesses guesses = Guesses::confirmed) noexcept {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  return Walk(context, Cursor::Top::returned_to, guesses);
}

/// Walks, from a signal handler, the code that the signal interrupted and its callers. `ucontext` is the handler's
/// third argument. Signal-safe.
inline Walk walk_interrupted(const void* ucontext, Guesses guesses = Guesses::confirmed) noexcept {
  return Walk(ucontext, Cursor::Top::interrupted, guesses);
}

/// Writes the pc of a frame, given as for cursor_at(), and the return addresses of its callers, as many as fit. Returns
/// how many were written. Signal-safe. Steps probe the stack in each walk; this relies on what was found readable of
/// the thread's own stack: programs that unmap stack pages call forget_walked_stacks() of sdk/local_space.h.
std::size_t backtrace(const void* ucontext, Cursor::Top top, std::span<void*> addresses) noexcept;

/// Writes the return addresses of the calling function and its callers, as many as fit. Returns how many were written.
/// Signal-safe. It relies on the readable stack like the overload above.
[[gnu::always_inline]] inline std::size_t backtrace(std::span<void*> addresses) noexcept {
  constexpr std::size_t k_most = INT_MAX;
  const int size = static_cast<int>(addresses.size() < k_most ? addresses.size() : k_most);
  int count = jitunwind_backtrace(addresses.data(), size, 1);
  asm volatile("" : "+r"(count));  // prevents a tail call, which would leave out another frame
  return static_cast<std::size_t>(count);
}

}  // namespace jitunwind
#pragma GCC visibility pop
