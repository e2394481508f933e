// Walking the stack of this thread in C++: a range over frames.
//
//   for (const jitunwind::Frame& frame : jitunwind::walk_here()) std::puts(frame.name().c_str());
//
// How much each signal-safe function takes of the stack that it is called on: docs/contracts.md "Stack".
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/cursor.h"

/// The address behind this call, unless `callers_only`, and the return addresses of the calling function and its
/// callers, as many as fit. Returns how many. Signal-safe, thread-safe.
extern "C" int jitunwind_backtrace(void** addresses, int size, int callers_only) noexcept;

#pragma GCC visibility push(default)
namespace jitunwind {

/// One frame of a walk. A copy stays valid after the walk has moved on, as long as the code and the stack it speaks of.
/// Its name and its procedure may be asked for even while another thread unloads that code.
class Frame {
 public:
  explicit Frame(const Cursor& cursor) noexcept : cursor_(cursor) {}
  /// As cursor_at() says.
  Frame(const void* ucontext, Cursor::Top top, Guesses guesses) noexcept;

  /// The return address, or the pc itself where the frame was interrupted by a signal.
  Addr pc() const noexcept { return cursor_.pc(); }
  Addr sp() const noexcept { return cursor_.sp(); }
  CodeAddress address() const noexcept { return cursor_.address(); }
  /// 0 for the innermost frame.
  std::uint32_t depth() const noexcept { return cursor_.depth(); }

  /// Demangled name: as it was registered, else that of the symbol which covers the code. "" when there is none, as of
  /// stripped code: no name of other code is taken. Allocates: not signal-safe.
  std::string name() const;
  /// The name as it is in the symbol table or the registration. Writes a NUL-terminated name, cut to fit; nothing where
  /// `into` is empty. Signal-safe. Error no_info when there is none.
  Result<ProcedureName> raw_name(std::span<char> into) const noexcept { return cursor_.name(into); }
  /// pc - start of the named procedure; 0 when unknown. Signal-safe.
  std::uint64_t offset() const noexcept;

  /// What told how to leave this frame, and whether that is only a guess. Signal-safe.
  RowOrigin origin() const noexcept { return cursor_.origin(); }
  bool is_guess() const noexcept { return jitunwind::is_guess(origin()); }
  /// The kernel's signal trampoline: the next frame was interrupted, not calling. Signal-safe.
  bool is_signal_frame() const noexcept;
  /// Row of this frame. Error no_info when there is none. Signal-safe.
  Status row(FrameRow& out) const noexcept { return cursor_.find_row(out); }
  /// Signal-safe. Error no_info when nothing knows the code, or it is unloaded by now.
  Result<ProcedureInfo> procedure() const noexcept;
  /// The pointer that the code was registered with (Code::user), null where there is none. What it points to is the
  /// registering side's: whoever frees it when the code is cancelled waits for who may be looking at it. Signal-safe.
  void* user() const noexcept;

  /// By DWARF number; see Cursor::get. Signal-safe.
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
  /// From cursor_at(), without a copy.
  Walk(const void* ucontext, Cursor::Top top, Guesses guesses) noexcept : frame_(ucontext, top, guesses) {}

  /// An input iterator: going on with it moves the walk itself.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // of <string>: <iterator> has the streams' as well
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

  /// From where the walk stands.
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

/// A cursor at the frame a ucontext_t was captured in: of the signal handler's third argument with `interrupted`, of
/// jitunwind_capture_context with `returned_to`. Copies the registers; the handler's context is also written to by
/// Cursor::set(), so that the cursor must not outlive the handler. `guesses`: Cursor::set_guesses(). Signal-safe.
/// The context is one of the calling thread, of a thread that is stopped, or of one that does not leave these frames
/// meanwhile. Else frames are what the stack happens to hold; at memory that was gone before, the walk ends; memory
/// that goes while it is read faults.
Cursor cursor_at(const void* ucontext, Cursor::Top top, Guesses guesses = Guesses::confirmed) noexcept;

inline Frame::Frame(const void* ucontext, Cursor::Top top, Guesses guesses) noexcept
    : cursor_(cursor_at(ucontext, top, guesses)) {}

/// The calling function's frame and its callers. Signal-safe.
[[gnu::always_inline]] inline Walk walk_here(Guesses guesses = Guesses::confirmed) noexcept {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  return Walk(context, Cursor::Top::returned_to, guesses);
}

/// From a signal handler: the code that the signal interrupted, and its callers. `ucontext` is the handler's third
/// argument. Signal-safe.
inline Walk walk_interrupted(const void* ucontext, Guesses guesses = Guesses::confirmed) noexcept {
  return Walk(ucontext, Cursor::Top::interrupted, guesses);
}

/// The pc of the frame a ucontext_t was captured in, as for cursor_at(), and the return addresses of its callers, as
/// many as fit. Returns how many. Signal-safe. The context is one that cursor_at() may have. Unlike steps, which probe
/// the stack in each walk, it relies on what was found readable of the thread's own stack before: see
/// forget_walked_stacks() in sdk/local_space.h for stacks that pages are taken from.
std::size_t backtrace(const void* ucontext, Cursor::Top top, std::span<void*> addresses) noexcept;

/// Return addresses of the calling function and its callers, as many as fit. Returns how many. Signal-safe. Of the
/// stack it relies on what the other one does.
[[gnu::always_inline]] inline std::size_t backtrace(std::span<void*> addresses) noexcept {
  constexpr std::size_t k_most = INT_MAX;
  const int size = static_cast<int>(addresses.size() < k_most ? addresses.size() : k_most);
  int count = jitunwind_backtrace(addresses.data(), size, 1);
  asm volatile("" : "+r"(count));  // not a tail call: the frame it leaves out would be another
  return static_cast<std::size_t>(count);
}

}  // namespace jitunwind
#pragma GCC visibility pop
