// The facts about a CPU and its psABI that the engine needs, as data. tables/ has one file for each CPU; arch_list.def
// is the only list of CPUs in the tree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A register by its DWARF number on the present CPU.
using RegNum = std::uint16_t;
inline constexpr RegNum k_no_reg = 0xffff;

/// The use of a register. Pseudo registers are state of the unwinder's own.
enum class RegClass : std::uint8_t { general, vector, pseudo };

/// One register. `column` is its place in a RegisterFile; registers without one (-1) have a name in rows but no value
/// in a cursor. Offsets are bytes; -1: the register is not in that structure.
struct RegisterInfo {
  RegNum dwarf;
  char name[14];             ///< in the table itself, so that it needs no relocation at start
  char libunwind_name[14];   ///< result of unw_regname
  RegClass reg_class;
  bool preserved;            ///< callee-saved by the psABI (vector: its low 8 bytes)
  std::int8_t column;
  std::int16_t libunwind;    ///< UNW_<ARCH>_* number
  std::int16_t ucontext;     ///< offset in the target's ucontext_t; vector: by ContextRecords
  std::int16_t prstatus;     ///< offset in the NT_PRSTATUS register block (elf_gregset_t); vector: in NT_PRFPREG's
  std::int16_t uwx;          ///< Unwind Express register id
  std::int8_t perf = -1;     ///< bit in perf_event_attr::sample_regs_user (asm/perf_regs.h)
};

/// Machine code with a mask: matches when (code[i] & mask[i]) == bytes[i] for all i. `pc_offset` is a possible place of
/// the pc in the pattern; several entries describe several pcs of one stub.
struct CodePattern {
  std::span<const std::uint8_t> bytes;
  std::span<const std::uint8_t> mask;
  std::uint8_t pc_offset;
  /// Procedure linkage stubs: CFA - SP at that pc. Signal return: additional distance of its ucontext_t from SP at that
  /// pc, beyond Arch::sigframe_ucontext. Unused for calls.
  std::int16_t cfa_offset;
  std::uint8_t displacement = 0;  ///< calls: target - pc is in 4 bytes so many before the pc; 0: not in the code
};

/// Saved frame pointer and return address relative to the frame pointer, for the fallback by frame pointers.
struct FrameChain {
  std::int16_t saved_fp = 0;
  std::int16_t return_address = 0;
  std::int16_t cfa = 0;
  /// False: frames of this CPU are not linked by a frame pointer, or not all in the same way.
  bool exists() const noexcept { return saved_fp != return_address; }
};

/// The frames that sigreturn returns by, of handlers without SA_SIGINFO. They have a struct sigcontext and the two
/// words of the signal mask, at these offsets from the start of the ucontext_t that would have it.
struct SigreturnFrame {
  std::int16_t mask = 0;
  std::int16_t mask_upper = 0;
  bool exists() const noexcept { return mask != 0; }
};

struct ContextRecords;
struct DataRelocations;
struct MachineInstruction;
struct SigningInstructions;
/// The key that signs a return address. Descriptions do not tell it: any.
enum class SigningKey : std::uint8_t { any, a, b };
inline constexpr std::size_t k_max_columns = 56;  ///< for any CPU; the tables are checked against it
/// The number of first columns of which a RegisterFile has values: as many as fit into unw_cursor_t. Rows have all.
inline constexpr std::size_t k_max_values = 44;
/// The first columns, which a ucontext_t always has, if they are also the registers' DWARF numbers; else none.
struct ContextColumns {
  std::uint8_t count = 0;
  std::array<std::int16_t, k_max_values> offsets{};  ///< RegisterInfo::ucontext
};

/// The siginfo of a fault (asm/siginfo.h, asm/signal.h): si_addr, a word, follows 3 numbers of 4 bytes, first si_signo.
struct SiginfoLayout {
  std::uint8_t code = 8;       ///< offset of si_code; the third number is si_errno
  std::uint8_t bus_error = 7;  ///< SIGBUS
};

/// A constant table. Everything has static storage duration; pointers to an Arch may be compared.
struct Arch {
  const char* name;                    ///< "x86-64", "aarch64"
  std::uint16_t elf_machine;           ///< EM_*
  std::uint32_t jump_slot;             ///< relocation of a word through which the procedure linkage table jumps
  std::uint32_t glob_dat;              ///< relocation of any other word that holds a symbol's address
  std::uint8_t word_size;              ///< bytes
  std::uint8_t unit;                   ///< bytes per instruction index of the dynamic directives
  bool big_endian = false;
  bool bi_endian = false;              ///< there are systems of the other byte order, too
  std::uint16_t stack_alignment;       ///< SP at a call; granularity of a directive's ADD on SP: `sp_granularity`
  std::uint16_t sp_granularity;
  std::uint16_t red_zone = 0;          ///< bytes below SP that signal handlers leave alone
  std::int16_t caller_sp_bias = 0;     ///< caller's SP = CFA + bias (0, s390x -160)

  RegNum sp;
  RegNum fp;                           ///< the usual frame pointer
  RegNum ra;                           ///< return address column
  RegNum pc;                           ///< register that holds the pc of an interrupted frame; may be ra itself
  RegNum sign_state = k_no_reg;        ///< pseudo register for the state of ra's signature; k_no_reg: none

  std::int16_t entry_cfa = 0;          ///< at a procedure's first instruction: CFA = SP + entry_cfa
  bool ra_in_memory = false;           ///< at entry: ra = [cfa + entry_ra], else ra is still in its register
  std::int16_t entry_ra = 0;

  /// Significant bits of a code address: signed return addresses have more. A CPU with sign_state has all of them,
  /// since the signing bits are not known here.
  Addr address_mask = ~Addr{0};
  FrameChain chain = {};
  /// SP at the signal trampoline + this = ucontext_t; -1 unknown. A frame of sigreturn, which has only a struct
  /// sigcontext, counts as the frame of a ucontext_t that has it at that place.
  std::int16_t sigframe_ucontext;
  SigreturnFrame sigreturn = {};       ///< for trampolines that have a cfa_offset
  std::uint8_t vector_slot = 8;        ///< bytes of a vector register in a ucontext_t and in NT_PRFPREG's block
  ContextColumns in_context = {};      ///< columns of registers; empty: this CPU's own ucontext_t is not read
  std::span<const RegisterInfo> registers;   ///< sorted by DWARF number
  std::span<const CodePattern> trampolines;  ///< signal return
  std::span<const CodePattern> plt_stubs = {};
  std::span<const CodePattern> calls;        ///< pc_offset is their length: the return address follows them
  std::span<const RegNum> exception_registers;  ///< in the order of UNW_REG_EH
  /// Decodes the instruction at the first byte, which is at `at`. The bytes may be anything; a cut off instruction is
  /// unknown. Null: instructions of this CPU are not read. Signal-safe.
  MachineInstruction (*read_instruction)(std::span<const std::byte> bytes, Addr at) noexcept = nullptr;
  SiginfoLayout siginfo = {};            ///< NT_SIGINFO of core files
  std::span<const char* const> signals = {};  ///< names of asm/signal.h, "HUP" is 1; empty: those of most CPUs
  const ContextRecords* records = nullptr;  ///< further records of a ucontext_t after its registers, if any
  const DataRelocations* relocations = nullptr;  ///< for data in files that are not linked; null: they are not read
  /// A page that is executable but not readable, whose procedures the kernel emulates: they push nothing. 0: none.
  Addr emulated_page = 0;
  const SigningInstructions* signing = nullptr;  ///< for the CPU that the library is compiled for, if it signs addresses

  /// Null: the CPU has no such register. O(log n), signal-safe.
  const RegisterInfo* by_dwarf(unsigned number) const noexcept {
    // Most tables are dense from 0 on: the number is the index.
    if (number < registers.size() && registers[number].dwarf == number) return &registers[number];
    return search_by_dwarf(number);
  }
  const RegisterInfo* by_libunwind(int number) const noexcept {
    const auto index = static_cast<std::size_t>(number);
    if (index < registers.size() && registers[index].libunwind == number) return &registers[index];
    return search_by_libunwind(number);
  }
  /// Finds a register by RegisterInfo::perf.
  const RegisterInfo* by_perf(int number) const noexcept;
  /// Accepts "ra" for the return address column.
  const RegisterInfo* by_name(std::string_view name) const noexcept;
  /// Null: no register has the column.
  const RegisterInfo* by_column(int column) const noexcept;
  /// Column in a RegisterFile, or -1.
  int column(RegNum dwarf) const noexcept { return dwarf < in_context.count ? dwarf : search_column(dwarf); }

  Addr word_mask() const noexcept { return word_size == 8 ? ~Addr{0} : 0xffff'ffff; }  ///< every bit of a word
  /// Calls push the return address, to CFA - word, and SP is the CFA after it is popped. Every bit of it counts.
  bool calls_push() const noexcept { return ra_in_memory && caller_sp_bias == 0; }

  /// The distance in bytes from RegisterInfo's offset of a vector register in such a block to its low 8 bytes.
  std::int16_t low_half() const noexcept { return static_cast<std::int16_t>(big_endian ? vector_slot - 8 : 0); }

  const RegisterInfo* search_by_dwarf(unsigned number) const noexcept;  // by_dwarf()
  int search_column(RegNum dwarf) const noexcept;                       // column()
  const RegisterInfo* search_by_libunwind(int number) const noexcept;   // by_libunwind()
};

/// The CPU with its memory in that byte order. Precondition: the order is its own, or bi_endian.
Arch with_byte_order(const Arch& arch, bool big_endian) noexcept;

/// Every CPU of the tree, in the order of arch_list.def.
std::span<const Arch* const> all_arches() noexcept;
/// Finds a CPU by Arch::name; null: it is unknown.
const Arch* find_arch(std::string_view name) noexcept;
/// Finds a CPU by ELF e_machine and byte order, which may be the other one of a CPU that has both; null: it is unknown.
const Arch* find_arch(unsigned elf_machine, bool big_endian) noexcept;
/// The CPU this library was built for; null: the tree has no table for it.
const Arch* host_arch() noexcept;
/// host_arch() with this machine's bits of addresses, whose number depends on the kernel's configuration. All bits
/// count if the CPU signs nothing. Precondition: host_arch() is not null.
Arch arch_of_this_machine() noexcept;
/// The instructions that sign with this process's keys; null: the CPU or the kernel has none. Signal-safe.
const SigningInstructions* keys_of_this_process() noexcept;

#undef mips  // gcc defines it for that CPU
namespace arch {
#define JITUNWIND_ARCH(identifier) extern const Arch identifier;
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
/// The DWARF number of the general register that instructions of x86-64 name by `encoding`, below 16 (psABI, 3.6.2).
constexpr RegNum x86_64_general(unsigned encoding) noexcept { return 0xfedcba9854673120 >> 4 * encoding & 15; }
}  // namespace arch

}  // namespace jitunwind
#pragma GCC visibility pop
