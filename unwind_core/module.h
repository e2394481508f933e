// A module: one loaded ELF object as its process mapped it. Says where its parts are; parses no unwind information.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes of a section in host memory, and the target address of the first of them. Parsers work on these alone: a local
/// section is viewed in place, any other was copied by whoever made the Module.
struct SectionBytes {
  std::span<const std::byte> bytes{};
  Addr address = 0;
  bool empty() const noexcept { return bytes.empty(); }
};

/// One loaded module, told from all that were loaded before it where it is now.
struct ModuleVersion {
  AddrRange range{};
  std::uint64_t version = 0;  ///< 0: cannot be told
  bool is_lasting = false;    ///< it stays loaded until the process ends
  bool is_code = false;       ///< all of `range` is known to be executable
};

class Memory;

/// A loaded file: its bounds and its unwind information, as one address of it finds them.
struct Module {
  AddrRange range{};      ///< from the first to the last mapped byte
  Addr load_bias = 0;     ///< run-time address - address in the file
  const char* path = "";  ///< as the loader names it; "" when unknown. Lives as long as the module. See copy_path()
  AddrRange text{};       ///< executable, around the address that it was found by; each of these addresses finds it
  SectionBytes eh_frame_hdr{};   ///< PT_GNU_EH_FRAME; bytes reach to the end of its readable segment
  SectionBytes eh_segment{};     ///< that whole segment: GNU ld puts .eh_frame behind the header, gold before it
  SectionBytes eh_frame{};       ///< known only where there is no eh_frame_hdr; else found through it
  SectionBytes debug_frame{};    ///< decompressed, from the file or its separate debug file
  const char* unread = nullptr;  ///< why unwind information that the file has cannot be read: its compression. Static
  SectionBytes exidx{};          ///< PT_ARM_EXIDX of a target of ARM
  std::uint64_t version = 0;     ///< as in ModuleVersion; a finder may leave it 0
  bool is_lasting = false;       ///< likewise
  /// Not null: it may go at any moment, so that eh_frame_hdr and eh_segment are read through this and never in place.
  const Memory* memory = nullptr;
  /// With `memory` or `is_lasting`: its build id, copied together with all the above; 0 bytes: none, or a longer one.
  std::array<std::byte, 32> build_id{};
  std::uint8_t build_id_size = 0;
  void* file_sections = nullptr;  ///< what add_file_sections() has taken, for release_file_sections()
};

/// What tells it from a module that was at its place before.
inline ModuleVersion version_of(const Module& module) noexcept {
  return {module.range, module.version, module.is_lasting};
}

struct ProcedureName;

/// How far a symbol names code.
enum class NameReach : std::uint8_t {
  own,   ///< what belongs to it
  next,  ///< to the next one in its section: of stripped code the name of something before it
};

/// Finds modules of one target.
class ModuleFinder {
 public:
  /// False when no module covers `at`. The local one is signal-safe where the C library has _dl_find_object.
  /// Fills everything but debug_frame and eh_frame, which cost file access.
  virtual bool find(Addr at, Module& out) const noexcept = 0;

  /// The module that covers `at`, if it is described for as long as the process runs; null: find() it. Signal-safe.
  virtual const Module* find_lasting(Addr at) const noexcept {
    (void)at;
    return nullptr;
  }

  /// Fills `eh_frame` (where there is no eh_frame_hdr) and `debug_frame` from the file. Signal-safe for the local
  /// space: open, read, and memory of its own. Leaves them empty where there is none. They stay there until they are
  /// released, and longer: for as long as the module is loaded.
  virtual void add_file_sections(Module& module) const noexcept { (void)module; }
  /// Once for each module that they were added to; not for its copies. Signal-safe.
  virtual void release_file_sections(Module& module) const noexcept { (void)module; }

  /// The module's path, NUL-terminated, for whoever may not look at Module::path: that of a module which is being
  /// unloaded. Returns its whole length, 0 where it is not known; it is cut to fit. Signal-safe where find() is.
  virtual std::size_t copy_path(const Module& module, std::span<char> into) const noexcept;

  /// The symbol that names `at`, written as NameSource::find_name does; false when there is none. Signal-safe for the
  /// local space.
  virtual Result<bool> find_symbol(const Module& module, Addr at, NameReach reach, std::span<char> into,
                                   ProcedureName& out) const noexcept {
    (void)module, (void)at, (void)reach, (void)into, (void)out;
    return false;
  }

 protected:
  ~ModuleFinder() = default;  // nobody owns one by it; those with static storage have nothing to do at exit
};

}  // namespace jitunwind
#pragma GCC visibility pop
