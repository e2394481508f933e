// Register files from and to the target's ucontext_t, by the offsets of the CPU's table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/registers.h"

/// Stores the registers of the calling function, as they are right after the call, into a ucontext_t of this CPU.
/// Returns 0. Writes nothing of the signal mask. Must not be called through a pointer taken from another thread's
/// stack. Signal-safe, thread-safe.
extern "C" int jitunwind_capture_context(void* ucontext) noexcept;

#pragma GCC visibility push(default)
namespace jitunwind {

/// Size that holds a captured ucontext_t of any CPU that can capture.
inline constexpr std::size_t k_context_size = 1024;

/// Offsets of pc, SP and frame pointer in a ucontext_t, in bytes from its start.
struct UcontextOffsets {
  Addr pc, sp, fp;
};
/// Precondition: the CPU has such a structure.
inline UcontextOffsets ucontext_offsets(const Arch& arch) noexcept {
  const auto of = [&](RegNum reg) { return static_cast<Addr>(std::int64_t{arch.by_dwarf(reg)->ucontext}); };
  return {of(arch.pc), of(arch.sp), of(arch.fp)};
}

/// How long scalable vectors are in this process, which expressions of call frame information ask for. Signal-safe.
void add_vector_words(const Arch& arch, RegisterFile& registers) noexcept;
/// That, and the low 8 bytes of vector registers, still in themselves, if the first record has them. Signal-safe.
void add_vectors_of_ucontext(const std::byte* ucontext, const Arch& arch, RegisterFile& registers) noexcept;

/// Registers still in themselves (SaveLocation::Kind::reg), of a ucontext_t of the host's own. Signal-safe.
inline RegisterFile registers_from_ucontext(const void* ucontext, const Arch& arch) noexcept {
  const auto* const bytes = static_cast<const std::byte*>(ucontext);
  RegisterFile registers;
  if (arch.word_size == sizeof(std::uint64_t)) [[likely]]
    registers.set_from_context<std::uint64_t>(arch.in_context, bytes);
  else
    registers.set_from_context<std::uint32_t>(arch.in_context, bytes);
  if (arch.records) add_vectors_of_ucontext(bytes, arch, registers);
  return registers;
}

/// Those of an elf_gregset_t of the target, as NT_PRSTATUS has. Error truncated: it is too short. Signal-safe.
Result<RegisterFile> registers_from_prstatus(std::span<const std::byte> registers, const Arch& arch) noexcept;

/// Adds the low 8 bytes of the vector registers that calls preserve, of an elf_fpregset_t as NT_PRFPREG has one. Error
/// truncated: it is too short. Signal-safe.
Status add_fp_registers(std::span<const std::byte> block, const Arch& arch, RegisterFile& registers) noexcept;

/// Stores the registers that have a value; the others stay. `ucontext` is writable host memory. Vector registers are
/// stored in the first record if it is theirs, or there is none yet: then it is made. Signal-safe.
void registers_to_ucontext(const RegisterFile& registers, const Arch& arch, void* ucontext) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
