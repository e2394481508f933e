// Registered procedures told to an unwinder that does not ask: by __register_frame, whose argument is a section of CIEs
// and FDEs for libgcc and one FDE for LLVM's libunwind. A section of one FDE is both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "jitunwind/adapters/system_unwinder/frames/frame_pool_p.h"
#include "jitunwind/adapters/system_unwinder/frames/frame_section_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// What __register_frame takes in this process.
enum class FrameContract : std::uint8_t {
  none,            ///< there is no such function, or the unwinder does not know what was registered with it
  section,         ///< sections, several of the same code among them: libgcc 12 and older
  unique_section,  ///< sections, but none whose code begins where another's does: libgcc 13 and newer ignore it
  fde,             ///< one FDE: LLVM's libunwind
};

/// Tries it out: registers two FDEs of a place that is no code, then a copy of both, and asks the unwinder for them.
FrameContract find_frame_contract() noexcept;

/// One set a process. Not signal-safe; the caller sees to it that there is one thread at a time. Allocates.
class FrameTables {
 public:
  explicit FrameTables(FrameContract contract) noexcept : contract_(contract) {}

  void add(std::span<unw_dyn_info_t* const> procedures);
  /// Takes those out that are not registered any more.
  void remove(std::span<unw_dyn_info_t* const> procedures);
  void remove_all_gone();

 private:
  using Bytes = std::vector<std::byte>;
  class Collector;
  /// One procedure, with as many FDEs as it has, each behind a CIE of its own.
  struct Entry {
    RegistrationKey key{};
    std::byte* fdes = nullptr;      // where they are told one by one: each in front of the end of a section
    std::uint32_t size = 0;         // 0: it has none
    FrameSection::Place place = 0;  // in a section of several
  };
  /// What begins in one aligned piece of the address space. libgcc 12 keeps tables by their lowest address and looks
  /// into one of them only, so tables must not interleave.
  using Entries = std::map<Addr, Entry>;
  struct Piece {
    Entries entries;       // by start of the code
    FrameSection section;  // of all of them, where one may take another's place
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
