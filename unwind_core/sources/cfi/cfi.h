// DWARF call frame information -> rows: CIEs, FDEs and their instructions as .eh_frame (LSB 5.0 core, 10.6) and
// .debug_frame (DWARF 5, 6.4) have them. Knows nothing of modules; finds no sections.
//
//   CfiBytes (where bytes are) -> read_fde / FdeScan -> Fde -> row_at (one address) or FdeRows (all of them) ->
//   FrameRow
//
// Everything here is signal-safe when the CfiBytes are, and bounded by the size of the entry at hand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A longer entry in memory is refused: every page of it is proven readable, which a lying length must not turn into a
/// long wait. A procedure with a million rows has some 5 MiB.
inline constexpr std::uint64_t k_max_cfi_entry = 1u << 24;

/// Finds the CIE of an FDE in .eh_frame. The FDE's field at `at` counts bytes back from itself. It has a sign, as
/// libgcc takes it, so that a CIE may follow its FDE; the LSB (5.0 core, 10.6.1.2) has it unsigned.
constexpr Addr cie_before(Addr at, std::uint32_t field) noexcept {
  return at - static_cast<Addr>(std::int64_t{static_cast<std::int32_t>(field)});
}

/// A view of the bytes behind target addresses.
class CfiBytes {
 public:
  /// `size` bytes at `at`, unchanged for as long as rows made from them are in use. Error truncated or
  /// unreadable_memory at `at`.
  Result<std::span<const std::byte>> view(Addr at, std::uint64_t size) noexcept {
    const std::uint64_t offset = at - in_place_.address;
    const std::uint64_t available = in_place_.bytes.size();
    if (offset <= available && size <= available - offset) [[likely]]
      return in_place_.bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    return view_elsewhere(at, size);
  }

 protected:
  CfiBytes() noexcept = default;
  /// `in_place`: most of them, in host memory.
  explicit CfiBytes(const SectionBytes& in_place) noexcept : in_place_(in_place) {}
  ~CfiBytes() = default;

 private:
  virtual Result<std::span<const std::byte>> view_elsewhere(Addr at, std::uint64_t size) noexcept = 0;

  SectionBytes in_place_{};
};

/// A section in host memory, viewed in place, and one more with CIEs that are not in it.
class SectionView final : public CfiBytes {
 public:
  explicit SectionView(const SectionBytes& section, const SectionBytes& with_cies = {}) noexcept
      : CfiBytes(section), with_cies_(with_cies) {}

 private:
  Result<std::span<const std::byte>> view_elsewhere(Addr at, std::uint64_t size) noexcept override;

  SectionBytes with_cies_;
};

/// Memory of the target: viewed in place where it is this process's own, else copied to the caller's buffer, which must
/// outlive the rows. Error too_deep when the buffer is full; 4 KiB hold any entry that compilers make. Memory that
/// cannot be viewed cannot be read without a buffer.
class MemoryView final : public CfiBytes {
 public:
  MemoryView(const Memory& memory, MemoryWindow& window, std::span<std::byte> buffer) noexcept
      : memory_(memory), window_(window), buffer_(buffer) {}

 private:
  Result<std::span<const std::byte>> view_elsewhere(Addr at, std::uint64_t size) noexcept override;

  const Memory& memory_;
  MemoryWindow& window_;
  std::span<std::byte> buffer_;  // what is still free of it
};

/// Facts that the bytes themselves do not say.
struct CfiContext {
  enum class Format : std::uint8_t { eh_frame, debug_frame };

  const Arch& arch;
  Format format = Format::eh_frame;
  Addr section = 0;    ///< debug_frame: address of the section's first byte, from which CIE offsets count
  Addr load_bias = 0;  ///< debug_frame: added to addresses of code, which there are those of the file
  Addr text_base = 0;  ///< what DW_EH_PE_textrel is relative to; 0: not known, and then it is refused
  Addr data_base = 0;  ///< what DW_EH_PE_datarel is relative to; 0: not known, and then it is refused
  /// An FDE of which the code begins 0 bytes behind text_base is one, as GDB takes it. libgcc takes it for an FDE of no
  /// code.
  bool text_begins_code = false;
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

/// A common information entry (DWARF 5, 6.4.1; LSB 5.0 core, 10.6.1.1).
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

/// A frame description entry, with its CIE (LSB 5.0 core, 10.6.1.2).
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

/// The FDE at `at`, which a search for `pc` has found. False: it covers other code.
Found read_fde_for(Addr pc, CfiBytes& bytes, const CfiContext& context, Addr at, Fde& out) noexcept;

/// The FDE of a section that begins with its CIE and ends behind the FDE, in the form that compilers write, as JITs
/// announce them one by one. `bytes` are the section and what is behind it. `out` is complete but for instructions.
/// False: it has to be read in the general way.
bool read_lone_fde(const SectionBytes& bytes, const Arch& arch, Fde& out) noexcept;

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
  Cie cie_{};  // of the previous entry; most FDEs share a few
};

/// The interpreter of call frame instructions, which computes rows in the caller's row. FdeRows makes it.
class CfiProgram {
 public:
  CfiProgram(const CfiProgram&) = delete;
  CfiProgram& operator=(const CfiProgram&) = delete;

  /// True: `row` is the next row that ends behind `at`, FrameRow::range included; it ends where the next begins, the
  /// last one with the FDE. Calls with FDE::range.begin, and then with each row's end, give all rows. False: no more;
  /// `row` is undefined. Error::at is the address of the instruction; row_too_wide, too_deep (nested
  /// DW_CFA_remember_state), bad_opcode, bad_structure, bad_register, truncated.
  Result<bool> next_behind(Addr at) noexcept {
    if (run_behind(at)) return true;
    if (failed_) return error_;
    return false;
  }

 protected:
  /// `room` is for remembered states.
  CfiProgram(const Fde& fde, const CfiContext& context, FrameRow& row, std::span<std::byte> room) noexcept
      : cie_(fde.cie),
        range_(fde.range),
        instructions_(fde.instructions),
        context_(context),
        row_(row),
        program_(cie_.instructions.bytes, context.arch.big_endian, cie_.instructions.address),
        next_begin_(fde.range.begin),
        saved_(room) {}
  ~CfiProgram() = default;

 private:
  /// States that DW_CFA_remember_state keeps, packed: a head and the rules in use. Below them is the CIE's.
  class SavedStates {
   public:
    explicit SavedStates(std::span<std::byte> storage) noexcept : storage_(storage) {}
    /// False: there is no room.
    bool set_initial(const FrameRow& row, std::int64_t plain_offset) noexcept;
    bool has_initial() const noexcept { return !initial_.empty(); }
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

    static constexpr std::size_t k_none = ~std::size_t{0};

    static Head load(const std::byte* state, FrameRow& row, std::int64_t& plain_offset) noexcept;

    std::size_t top_ = k_none;
    std::size_t end_ = 0;
    std::span<const std::byte> initial_;
    std::span<std::byte> storage_;
  };

  bool run_behind(Addr at) noexcept;
  void start() noexcept;
  void run_initial_instructions() noexcept;
  /// One instruction. True: the location has moved, to next_begin_. Failures end the program.
  bool execute() noexcept;
  bool execute_extended(std::uint8_t op) noexcept;
  bool advance(std::uint64_t units) noexcept;
  bool set_location() noexcept;
  void set_cfa(RegNum reg, std::int64_t offset) noexcept;
  void set_cfa_register(RegNum reg) noexcept;
  void set_cfa_offset(std::int64_t offset) noexcept;
  void set_rule(std::uint8_t op) noexcept;
  void toggle_sign_state(std::int64_t bits) noexcept;
  void set(RegNum reg, const RegRule& rule) noexcept;
  RegNum read_reg() noexcept;
  Expression block() noexcept;
  std::int64_t factored(std::uint64_t operand) const noexcept;
  std::int64_t read_offset() noexcept { return static_cast<std::int64_t>(program_.uleb()); }
  std::int64_t read_factored_offset() noexcept { return factored(program_.uleb()); }
  std::int64_t read_signed_factored_offset() noexcept { return factored(static_cast<std::uint64_t>(program_.sleb())); }
  void fail(ErrorCode code, const char* what) noexcept;
  bool has_failed() noexcept;

  const Cie& cie_;
  AddrRange range_;
  SectionBytes instructions_;
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

/// All rows of an FDE. `k_room` bytes are for remembered states. `fde` and `context` must outlive this; `row` must not
/// be changed as long as next_behind() is called.
template <std::size_t k_room>
class FdeRowsIn : public CfiProgram {
 public:
  FdeRowsIn(const Fde& fde, const CfiContext& context, FrameRow& row) noexcept : CfiProgram(fde, context, row, room_) {}

 private:
  alignas(8) std::byte room_[k_room];  // stays as it is
};

/// These have room for what any compiler makes: about 5 KiB.
using FdeRows = FdeRowsIn<4608>;
/// These have room that is enough for nearly all FDEs. Pages of a stack that were never touched cost more than rows.
using FdeRowsOfFewStates = FdeRowsIn<512>;

/// The row that holds at `at`, which must be in the FDE's range; CodeAddress::lookup() of a frame's address. Everything
/// but origin and keeps_by is set. A caller that keeps the row longer than the bytes calls FrameRow::own_expressions().
Status row_at(const Fde& fde, const CfiContext& context, Addr at, FrameRow& out) noexcept;

/// The row of the entry at `entry` in memory that a search has found for `at`, which is read into 4 KiB of the stack.
/// The row owns its expressions. `code` is what the entry covers. False: not `at`. row_too_wide: the row has no room
/// for its expressions; too_deep: the entry is longer than any that compilers make.
Found own_row_of_entry(Addr entry, const CfiContext& context, Addr at, const Memory& memory, MemoryWindow& window,
                       FrameRow& out, AddrRange& code) noexcept;

/// Procedure information that an FDE holds; gp and origin are left alone.
Status read_procedure(const Fde& fde, const Arch& arch, const Memory& memory, MemoryWindow& window,
                      ProcedureInfo& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
