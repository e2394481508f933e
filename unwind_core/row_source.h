// The interface between the engine and the sources of unwind information: one class and one file for each source.
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
struct AnyRow;
class UnknownCode;
enum class RowAnswer : std::uint8_t;

/// The guesses that may be made at callers of unknown code.
enum class Guesses : std::uint8_t {
  confirmed,  ///< made if the callee's code and the call agree
  bold,       ///< made also for code that only looks like a caller: frames may be missing or wrong
};

/// One question: what is known about the code at `at`? It carries everything that a source may need, and the module,
/// which is looked up at most once. It lives on the stack of one step.
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
  const RegisterFile* registers;  ///< of the frame in question; null if the code need not be on a stack
  unsigned alias_depth = 0;       ///< ALIAS directives followed so far
  Guesses guesses;                ///< the guesses that are wanted
  const UnknownCode* unknown =
      nullptr;                        ///< if not null, no source knows the code; what else is known of it is kept there
  std::uint64_t unknown_version = 0;  ///< the version under which it is kept

  /// The module that covers `at`; null when there is none.
  const Module* module() noexcept;
  /// The module with the sections that only its file has. They are valid as long as this object; see
  /// ModuleFinder::add_file_sections().
  const Module* module_with_file_sections() noexcept;

 private:
  void release_file_sections() noexcept;

  enum class State : unsigned char { unknown, known, complete };
  State state_ = State::unknown;
  const Module* found_ = nullptr;
  std::optional<Module> module_;
};

/// The answer to unw_get_proc_info.
struct ProcedureInfo {
  AddrRange range{};  ///< {0,0}: unknown
  Addr handler = 0;   ///< personality routine, 0 if there is none
  Addr lsda = 0;      ///< language-specific data, 0 if there is none
  Addr gp = 0;
  std::uint32_t flags = 0;
  int format = 0;        ///< UNW_INFO_FORMAT_*
  Addr unwind_info = 0;  ///< FDE, or unw_dyn_info_t
  std::uint64_t unwind_info_size = 0;
  RowOrigin origin = RowOrigin::none;
  Addr user = 0;  ///< for registered code: the pointer that was registered with it (Code::user); 0 if there is none
};

/// A name, and the start of the code that it names.
struct ProcedureName {
  Addr start = 0;
  std::size_t length = 0;  ///< the length of the whole name, without the NUL
  bool truncated = false;  ///< the buffer holds only the beginning of it
};

/// Writes `name` as NameSource::find_name must: cut to into.size() - 1 bytes and NUL-terminated. Writes all of `out`
/// except its start. Writes only `out` if `into` is empty. Signal-safe.
void write_name(std::string_view name, std::span<char> into, ProcedureName& out) noexcept;

/// The answer of a source: it has a result, or the address is not its business. An error means that the source covers
/// the address, but its data is broken. The three cases are never merged.
using Found = Result<bool>;

/// A source that knows how some code is unwound.
class RowSource {
 public:
  /// If the result is true, `out` is complete, including origin and keeps_by. Otherwise keeps_by is unchanged.
  virtual Found find_row(Lookup& lookup, FrameRow& out) const noexcept = 0;
  /// Finds the row for callers that take either form of it. The default is a full one.
  virtual RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept;

  /// Describes the procedure that covers the address.
  virtual Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
    (void)lookup, (void)out;
    return false;
  }

  /// Whether this source was told of code there that is in no module. Then it is code, even if its memory is not
  /// executable at the moment.
  virtual bool was_told_of([[maybe_unused]] Addr at) const noexcept { return false; }

 protected:
  ~RowSource() = default;  // nobody deletes through it; objects with static storage need no destruction at exit
};

/// A source that knows the names of some code.
class NameSource {
 public:
  /// If the result is true, `into` holds the name, cut to into.size() - 1 bytes and NUL-terminated, or is empty.
  virtual Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept = 0;

 protected:
  ~NameSource() = default;  // nobody deletes through it; objects with static storage need no destruction at exit
};

}  // namespace jitunwind
#pragma GCC visibility pop
