// DWARF call frame information -> rows: CIEs, FDEs and their instructions as .eh_frame (LSB 5.0 core, 10.6) and
// .debug_frame (DWARF 5, 6.4) have them. Knows nothing of modules; finds no sections.
//
//   CfiBytes (where bytes are) -> read_fde / FdeScan -> Fde -> row_at / FdeRows -> FrameRow
//
// Everything here is signal-safe when the CfiBytes are, and bounded by the size of the entry at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unwind_core/byte_reader.h"
#include "unwind_core/error.h"
#include "unwind_core/frame_row.h"
#include "unwind_core/memory/memory.h"
#include "unwind_core/module.h"
#include "unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Where the bytes behind target addresses can be looked at.
class CfiBytes {
 public:
  /// `size` bytes at `at`, unchanged for as long as rows made from them are in use. Error truncated or
  /// unreadable_memory at `at`.
  virtual Result<std::span<const std::byte>> view(Addr at, std::uint64_t size) noexcept = 0;

 protected:
  ~CfiBytes() = default;
};

/// A section in host memory, viewed in place.
class SectionView final : public CfiBytes {
 public:
  explicit SectionView(const SectionBytes& section) noexcept : section_(section) {}
  Result<std::span<const std::byte>> view(Addr at, std::uint64_t size) noexcept override;

 private:
  SectionBytes section_;
};

/// Memory of the target: viewed in place where it is this process's own, else copied to the caller's buffer, which
/// must outlive the rows. Error too_deep when the buffer is full; 4 KiB hold any entry that compilers make.
class MemoryView final : public CfiBytes {
 public:
  MemoryView(const Memory& memory, MemoryWindow& window, std::span<std::byte> buffer) noexcept
      : memory_(memory), window_(window), buffer_(buffer) {}
  Result<std::span<const std::byte>> view(Addr at, std::uint64_t size) noexcept override;

 private:
  const Memory& memory_;
  MemoryWindow& window_;
  std::span<std::byte> buffer_;  // what is still free of it
};

/// What the bytes themselves do not say.
struct CfiContext {
  enum class Format : std::uint8_t { eh_frame, debug_frame };

  const Arch& arch;
  Format format = Format::eh_frame;
  Addr section = 0;    ///< debug_frame: address of the section's first byte, from which CIE offsets count
  Addr load_bias = 0;  ///< debug_frame: added to addresses of code, which there are those of the file
  Addr text_base = 0;  ///< what DW_EH_PE_textrel is relative to; 0: not known, and then it is refused
  Addr data_base = 0;  ///< what DW_EH_PE_datarel is relative to; 0: not known, and then it is refused
};

/// A pointer as decoded: `value` is the pointer itself, or with `indirect` the address in memory where it is.
struct EncodedPointer {
  Addr value = 0;
  bool indirect = false;
};

/// DW_EH_PE_* (LSB 5.0 core, 10.5.1). 0 stays 0 whatever it is relative to. `function` is the base of
/// DW_EH_PE_funcrel, 0: not known. Failures go to the reader: bad_encoding, truncated.
EncodedPointer read_encoded(ByteReader& reader, std::uint8_t encoding, const CfiContext& context,
                            Addr function) noexcept;

/// Reads the pointer itself where it is indirect.
Result<Addr> resolve(const EncodedPointer& pointer, const Arch& arch, const Memory& memory,
                     MemoryWindow& window) noexcept;

struct Cie {
  Addr address = 0;        ///< of its length field
  std::uint64_t size = 0;  ///< length field included
  std::uint8_t version = 0;
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  RegNum return_address = k_no_reg;
  bool has_augmentation_data = false;  ///< "z": FDEs carry a length
  bool signal_frame = false;           ///< "S"
  bool signed_with_b_key = false;      ///< "B" (DWARF for the Arm 64-bit Architecture)
  std::uint8_t pointer_encoding = 0;   ///< "R"; DW_EH_PE_absptr without
  std::uint8_t lsda_encoding = 0xff;   ///< "L"; DW_EH_PE_omit without
  EncodedPointer personality{};        ///< "P"; 0 without
  SectionBytes instructions{};
};

struct Fde {
  Addr address = 0;        ///< of its length field
  std::uint64_t size = 0;  ///< length field included
  Cie cie{};
  AddrRange range{};      ///< of code, load_bias included
  EncodedPointer lsda{};  ///< 0: none
  SectionBytes instructions{};
};

/// The FDE at `at`, with its CIE. bad_structure when there is a CIE or a terminator instead.
Result<Fde> read_fde(CfiBytes& bytes, const CfiContext& context, Addr at) noexcept;

/// The same where `at` was found by a search for `pc`. False: it covers other code.
Found read_fde_for(Addr pc, CfiBytes& bytes, const CfiContext& context, Addr at, Fde& out) noexcept;

/// All FDEs of a range of entries, in the order of their addresses.
class FdeScan {
 public:
  /// `entries` is what part of `bytes` to read; .eh_frame may end earlier, by its terminator.
  FdeScan(CfiBytes& bytes, const CfiContext& context, AddrRange entries) noexcept
      : bytes_(bytes), context_(context), entries_(entries) {}

  /// True: `out` is the next FDE. False: no more. Error: this entry is broken; call again to go on behind it, where
  /// that is possible.
  Result<bool> next(Fde& out) noexcept;
  bool at_end() const noexcept { return entries_.empty(); }

 private:
  CfiBytes& bytes_;
  const CfiContext& context_;
  AddrRange entries_;
  Cie cie_{};  // of the previous FDE; most FDEs share a few
};

/// The rows of an FDE from first to last, computed in the caller's row. About 5 KiB, most of it for remembered states.
class FdeRows {
 public:
  /// All must outlive this; `row` must not be changed as long as next() is called.
  FdeRows(const Fde& fde, const CfiContext& context, FrameRow& row) noexcept;

  /// True: `row` is the next row, FrameRow::range included; it ends where the next begins, the last one with the FDE.
  /// False: no more; `row` is undefined. Error::at is the address of the instruction; row_too_wide, too_deep (nested
  /// DW_CFA_remember_state), bad_opcode, bad_structure, bad_register, truncated.
  Result<bool> next() noexcept;

 private:
  /// States that DW_CFA_remember_state keeps, packed: a head and the rules in use. The first one is the CIE's.
  class SavedStates {
   public:
    SavedStates() noexcept {}  // storage_ stays as it is
    bool empty() const noexcept { return end_ == 0; }
    bool push(const FrameRow& row, std::int64_t plain_offset) noexcept;
    /// False when only the CIE's state is left, which stays.
    bool pop(FrameRow& row, std::int64_t& plain_offset) noexcept;
    RegRule initial_rule(RegNum reg) const noexcept;

   private:
    struct Head {
      CfaRule cfa;
      std::int64_t plain_offset;
      std::size_t previous;  // place of the head below
      std::size_t count;     // of entries behind the head
    };

    std::size_t top_ = 0;
    std::size_t end_ = 0;
    alignas(8) std::byte storage_[4608];
  };

  Status start() noexcept;
  /// One instruction. True: the location has moved, to next_begin_.
  bool execute() noexcept;
  bool execute_extended(std::uint8_t op) noexcept;
  bool advance(std::uint64_t units) noexcept;
  bool set_location() noexcept;
  void define_cfa(std::uint8_t op) noexcept;
  void set_rule(std::uint8_t op) noexcept;
  void toggle_sign_state(std::int64_t bits) noexcept;
  void set(RegNum reg, RegRule rule) noexcept;
  RegNum read_reg() noexcept;
  Expression block() noexcept;
  std::int64_t factored(std::uint64_t operand) const noexcept;
  void fail(ErrorCode code, const char* what) noexcept;

  const Fde& fde_;
  const CfiContext& context_;
  FrameRow& row_;
  ByteReader program_;
  Addr instruction_at_ = 0;
  Addr next_begin_;                // where the next row begins
  std::int64_t plain_offset_ = 0;  // the offset that the CFA has or last had
  bool started_ = false;
  bool failed_ = false;
  Error error_{};
  SavedStates saved_;
};

/// The row that holds at `at`, which must be in the FDE's range; CodeAddress::lookup() of a frame's address. Everything
/// but the origin is set.
Status row_at(const Fde& fde, const CfiContext& context, Addr at, FrameRow& out) noexcept;

/// The same for a row that outlives the bytes: it owns its expressions. row_too_wide where it has no room for them.
Status own_row_at(const Fde& fde, const CfiContext& context, Addr at, FrameRow& out) noexcept;

/// Procedure information that an FDE holds; gp and origin are left alone.
Status describe(const Fde& fde, const Arch& arch, const Memory& memory, MemoryWindow& window,
                ProcedureInfo& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
