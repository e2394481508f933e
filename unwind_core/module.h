// A module: one loaded ELF object as its process mapped it. It describes the parts and parses no unwind information.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes of a section in host memory, and the target address of the first one. Parsers use only these: a local section
/// is viewed in place, and the maker of the Module has copied any other.
struct SectionBytes {
  std::span<const std::byte> bytes{};
  Addr address = 0;
  bool empty() const noexcept { return bytes.empty(); }
};

/// Identifies one loaded module among all that were ever loaded at its place.
struct ModuleVersion {
  AddrRange range{};
  std::uint64_t version = 0;  ///< 0: not known
  bool is_lasting = false;    ///< it stays loaded until the process ends
  bool is_code = false;       ///< all of `range` is known to be executable
};

class Memory;

/// A loaded file with its bounds and its unwind information, as a lookup of one of its addresses finds them.
struct Module {
  AddrRange range{};      ///< from the first to the last mapped byte
  Addr load_bias = 0;     ///< run-time address - address in the file
  const char* path = "";  ///< as the loader names it; "" when unknown. Lives as long as the module. See copy_path()
  AddrRange text{};       ///< the executable part around the looked-up address; each of its addresses finds it
  AddrRange data{};       ///< what its file says of the last writable part
  SectionBytes eh_frame_hdr{};   ///< PT_GNU_EH_FRAME; bytes reach to the end of its readable segment
  SectionBytes eh_segment{};     ///< that whole segment: GNU ld puts .eh_frame behind the header, gold before it
  SectionBytes eh_frame{};       ///< known if there is no eh_frame_hdr; or that of a CIE outside of eh_segment
  SectionBytes debug_frame{};    ///< decompressed, from the file or its separate debug file
  const char* unread = nullptr;  ///< why unwind information that the file has cannot be read (its compression); static
  SectionBytes exidx{};          ///< PT_ARM_EXIDX, for targets of 32-bit ARM
  std::uint64_t version = 0;     ///< as in ModuleVersion; a finder may leave it 0
  bool is_lasting = false;       ///< as in ModuleVersion
  /// If not null, the module may go at any moment: eh_frame_hdr and eh_segment are read only through this.
  const Memory* memory = nullptr;
  /// Copied with the members above if `memory` or `is_lasting` is set; 0 bytes if there is none or it is longer.
  std::array<std::byte, 32> build_id{};
  std::uint8_t build_id_size = 0;
  void* file_sections = nullptr;  ///< taken by add_file_sections(), for release_file_sections()
};

/// Distinguishes the module from others that were at its place before.
inline ModuleVersion version_of(const Module& module) noexcept {
  return {module.range, module.version, module.is_lasting};
}

struct ProcedureName;

/// How far the name of a symbol reaches.
enum class NameReach : std::uint8_t {
  own,   ///< over the code that belongs to the symbol
  next,  ///< to the next symbol in its section: stripped code gets the name of something before it
};

/// Finds modules of one target.
class ModuleFinder {
 public:
  /// Finds the module that covers `at`; returns false when none does. Fills everything but debug_frame and eh_frame,
  /// which cost file access. The local finder is signal-safe except with a glibc before 2.35.
  virtual bool find(Addr at, Module& out) const noexcept = 0;

  /// The module that covers `at`, if its description lasts as long as the process; otherwise null. Signal-safe.
  virtual const Module* find_lasting([[maybe_unused]] Addr at) const noexcept { return nullptr; }

  /// Fills `eh_frame` (if there is no eh_frame_hdr) and `debug_frame` from the file, and leaves them empty if it has
  /// none. They are valid until they are released, and as long as the module is loaded. Signal-safe for the local
  /// space: it uses open, read, and memory of its own.
  virtual void add_file_sections(Module& module) const noexcept { (void)module; }
  /// Releases the sections. Call it once for each module that they were added to, but not for its copies. Signal-safe.
  virtual void release_file_sections(Module& module) const noexcept { (void)module; }

  /// Copies the module's path, NUL-terminated and cut to fit, for callers that must not read Module::path because the
  /// module is being unloaded. Returns the whole length, or 0 if it is unknown. Signal-safe when find() is.
  virtual std::size_t copy_path(const Module& module, std::span<char> into) const noexcept;

  /// Finds the symbol that names `at` and writes its name as NameSource::find_name does; false when there is none.
  /// Signal-safe for the local space.
  virtual Result<bool> find_symbol(const Module& module, Addr at, NameReach reach, std::span<char> into,
                                   ProcedureName& out) const noexcept {
    (void)module, (void)at, (void)reach, (void)into, (void)out;
    return false;
  }

 protected:
  ~ModuleFinder() = default;  // nobody deletes through it; objects with static storage need no destruction at exit
};

}  // namespace jitunwind
#pragma GCC visibility pop
