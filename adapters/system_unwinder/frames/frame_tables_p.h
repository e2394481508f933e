// Announcement of registered procedures to an unwinder that does not call _Unwind_Find_FDE. It uses __register_frame,
// whose argument is a section of CIEs and FDEs for libgcc and one FDE for LLVM's libunwind. A section of one FDE is
// both.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "jitunwind/adapters/system_unwinder/frames/frame_section_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/above_internal.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// The argument of __register_frame in this process.
enum class FrameContract : std::uint8_t {
  none,            ///< there is no such function, or it has no effect
  section,         ///< sections, several of the same code among them: libgcc 12 and older
  unique_section,  ///< sections, but only one for each begin of code: libgcc 13 and newer ignore others
  fde,             ///< one FDE: LLVM's libunwind
};

/// The contract by which this process's unwinder is told; none: it is not told.
[[gnu::visibility("default")]] extern constinit std::atomic<FrameContract> told_contract;

/// Begins to tell the unwinder of all procedures, unless that was done before. Not signal-safe. Allocates.
JITUNWIND_ABOVE void start_telling() noexcept;

/// Finds the contract by trial: registers two FDEs of a place that is no code, then a copy of both, and looks them up
/// through the unwinder.
FrameContract find_frame_contract() noexcept;

/// One object per process. Not signal-safe; the caller serialises the calls. Allocates.
class FrameTables {
 public:
  explicit FrameTables(FrameContract contract) noexcept : contract_(contract) {}

  void add(std::span<unw_dyn_info_t* const> procedures);
  /// Removes those that are not registered any more.
  void remove(std::span<unw_dyn_info_t* const> procedures);
  void remove_all_gone();

 private:
  using Bytes = std::vector<std::byte>;
  class Collector;
  /// One procedure, with all of its FDEs, each after a CIE of its own.
  struct Entry {
    RegistrationKey key{};
    std::byte* fdes = nullptr;      // if announced one by one: the end of a section follows each
    std::uint32_t size = 0;         // 0: it has none
    FrameSection::Place place = 0;  // in a section of several
  };
  /// The entries in one aligned piece of the address space. libgcc 12 sorts tables by their lowest address and looks
  /// into one of them only, so that tables must not interleave.
  using Entries = std::map<Addr, Entry>;
  struct Piece {
    Entries entries;       // by start of the code
    FrameSection section;  // all entries, if the contract allows a section to replace another one
  };
  using Pieces = std::map<Addr, Piece>;
  static constexpr unsigned k_piece_bits = 16;

  void tell(Piece& piece, Entry& entry, const Bytes& fdes);
  bool remove_if_gone(Piece& piece, Entries::iterator entry) noexcept;
  void publish(Pieces::iterator piece);
  void take_back(Piece& piece, Entry& entry) noexcept;

  const FrameContract contract_;
  Pieces pieces_;
  SectionMemory memory_;
  FramePool pool_;
};

}  // namespace jitunwind
