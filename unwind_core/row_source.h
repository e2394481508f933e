// The seam between the engine and everything that knows how to unwind some code: one class, one file a source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/rows/frame_row.h"
#include "jitunwind/unwind_core/rows/registers.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct AddressSpace;
struct CompactAnswer;

/// At the callers of code that nothing knows.
enum class Guesses : std::uint8_t {
  confirmed,  ///< made where what the callee does and what was called say the same
  bold,       ///< and where it merely looks like a caller: frames may be missing, or wrong
};

/// One question: what is known about the code at `at`? Carries what every source may need and the module, which is
/// looked up at most once. Lives on the stack of one step.
class Lookup {
 public:
  Lookup(const AddressSpace& s, CodeAddress a, MemoryWindow& w, const RegisterFile* r = nullptr,
         Guesses g = Guesses::confirmed) noexcept
      : space(s), at(a), window(w), registers(r), guesses(g) {}
  ~Lookup() {
    if (state_ == State::complete) release_file_sections();
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  const AddressSpace& space;
  CodeAddress at;
  MemoryWindow& window;
  const RegisterFile* registers;      ///< of the frame in question; null when asked about code that is not on a stack
  unsigned alias_depth = 0;           ///< ALIAS directives followed so far
  Guesses guesses;                    ///< which are wanted, where nothing is known
  std::uint64_t unknown_version = 0;  ///< not 0: nothing knows the code, and more of it is kept under this
  CompactAnswer* compact = nullptr;   ///< null: not wanted

  /// The module that covers `at`; null when there is none.
  const Module* module() noexcept;
  /// The same with the sections that only its file has, which are there for as long as this; see
  /// ModuleFinder::add_file_sections().
  const Module* module_with_file_sections() noexcept;

 private:
  void release_file_sections() noexcept;

  enum class State : unsigned char { unknown, known, complete };
  State state_ = State::unknown;
  const Module* found_ = nullptr;
  std::optional<Module> module_;
};

/// What unw_get_proc_info reports.
struct ProcedureInfo {
  AddrRange range{};  ///< {0,0}: unknown
  Addr handler = 0;   ///< personality routine, 0: none
  Addr lsda = 0;      ///< language specific data, 0: none
  Addr gp = 0;
  std::uint32_t flags = 0;
  int format = 0;        ///< UNW_INFO_FORMAT_*
  Addr unwind_info = 0;  ///< FDE, or unw_dyn_info_t
  std::uint64_t unwind_info_size = 0;
  RowOrigin origin = RowOrigin::none;
  Addr user = 0;  ///< of registered code: the pointer that was registered with it (Code::user), 0: none
};

/// A name and where the thing it names begins.
struct ProcedureName {
  Addr start = 0;
  std::size_t length = 0;  ///< of the whole name, without the NUL
  bool truncated = false;  ///< the buffer holds a beginning of it
};

/// Writes `name` as NameSource::find_name must: cut to into.size() - 1 bytes, NUL-terminated, `out` but for its start.
/// Where `into` is empty only `out` is written. Signal-safe.
void write_name(std::string_view name, std::span<char> into, ProcedureName& out) noexcept;

/// Found, or not this source's business. An error means: this source covers the address, but what it has is broken.
/// The three are never merged.
using Found = Result<bool>;

/// What knows how some code is unwound.
class RowSource {
 public:
  /// On true `out` is complete, origin and keeps_by included. Else keeps_by is as it was.
  virtual Found find_row(Lookup& lookup, FrameRow& out) const noexcept = 0;

  /// What is known of the procedure that covers the address.
  virtual Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
    (void)lookup, (void)out;
    return false;
  }

  /// Whether this source was told of code there that is in no module: it is code then, whatever its memory may be used
  /// for at the moment.
  virtual bool was_told_of(Addr at) const noexcept {
    (void)at;
    return false;
  }

 protected:
  ~RowSource() = default;  // nobody owns one by it; those with static storage have nothing to do at exit
};

/// What knows names of some code.
class NameSource {
 public:
  /// On true `into` holds the name, cut to into.size() - 1 bytes and NUL-terminated; nothing where it is empty.
  virtual Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept = 0;

 protected:
  ~NameSource() = default;  // nobody owns one by it; those with static storage have nothing to do at exit
};

}  // namespace jitunwind
#pragma GCC visibility pop
