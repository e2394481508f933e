// Core files of AArch64 and ARM, in both byte orders: the registers of each thread, including floating-point registers.
#include <elf.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/targets/core_file_internal.h"
#include "tests/support/cfi_assembler.h"
#include "tests/targets/built_cores.h"

namespace jitunwind::test {
namespace {

using built::Core, built::Thread, built::core_of;

constexpr RegNum k_x19 = 19, k_v0 = 64, k_v8 = 72, k_v15 = 79, k_vg = 46;

class CoreOfAArch64 : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(ByteOrders, CoreOfAArch64, testing::Bool(),
                         [](const auto& info) { return info.param ? "Big" : "Little"; });

// covers: HL10 XP04
TEST_P(CoreOfAArch64, HasTheVectorRegistersOfEachThread) {
  const bool big_endian = GetParam();
  const std::vector<Thread> threads{{.id = 7, .first_general = 0x1000, .first_vector = 0x7000, .vector_bytes = 528},
                                    {.id = 8, .first_general = 0x2000, .first_vector = 0x8000, .vector_bytes = 528},
                                    {.id = 9, .first_general = 0x3000, .first_vector = 0x9000, .vector_bytes = 136}};
  const auto core = core_of(threads, big_endian).open();
  ASSERT_TRUE(core) << core.error().text();
  EXPECT_STREQ(core->arch().name, "aarch64");
  ASSERT_EQ(core->threads().size(), threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    Walk walk = core->walk(core->threads()[i]);
    const Frame& frame = *walk.begin();
    EXPECT_EQ(core->threads()[i].id, static_cast<pid_t>(threads[i].id));
    EXPECT_EQ(frame.pc(), threads[i].first_general + 32);
    ASSERT_TRUE(frame.get(k_x19));
    EXPECT_EQ(*frame.get(k_x19), threads[i].first_general + k_x19);
    EXPECT_FALSE(frame.get(k_v0)) << "calls do not preserve it";
    for (RegNum reg = k_v8; reg <= k_v15; ++reg) {
      const auto value = frame.get(reg);
      EXPECT_EQ(bool{value}, threads[i].vector_bytes >= 16u * (reg - k_v0) + (big_endian ? 16 : 8)) << reg;
      if (value) {
        EXPECT_EQ(*value, threads[i].first_vector + reg - k_v0) << reg;
      }
    }
  }
}

constexpr std::uint64_t k_code = 0x10'0000, k_stack = 0x20'0000, k_caller = k_code + 0x104;
constexpr std::uint64_t k_signature = std::uint64_t{0x5a5a} << 39 & ((std::uint64_t{1} << 55) - 1);

std::uint64_t bits_from(unsigned lowest) {
  return ((std::uint64_t{1} << 55) - 1) & ~((std::uint64_t{1} << lowest) - 1);
}

/// The code at a thread's pc, and its stack.
struct Stand {
  Bytes code, stack;
};

/// A call whose frame pointer refers to a record with a signed return address. Instructions are little-endian.
Stand at_a_call(bool big_endian) {
  Bytes stack = Bytes::in_order(big_endian).fill(16, 0).u64(0).u64(k_caller | k_signature).fill(32, 0);
  return {Bytes().fill(0x100, 0).u32(0x94000000).fill(0x40, 0), stack};  // bl
}

/// The kernel's trampoline: the ucontext_t is 128 bytes above SP, and its pc is at offset 440.
Stand at_a_trampoline(bool big_endian) {
  Bytes stack = Bytes::in_order(big_endian).fill(16 + 128 + 440, 0).u64(k_caller | k_signature).fill(4096, 0);
  return {Bytes().fill(0x40, 0).u32(0xd2801168).u32(0xd4000001).fill(0x100, 0), stack};
}

/// A core of a kernel with addresses of 39 bits, with or without its note of the signature bits.
Core core_with_signed_address(std::optional<std::uint64_t> signing_bits, bool big_endian, const Stand& stand) {
  Core core(EM_AARCH64, true, big_endian);
  Bytes status = core.bytes().fill(32, 0).u32(7).fill(76, 0);
  for (unsigned i = 0; i < 34; ++i) status.u64(i == 29 || i == 31 ? k_stack + 16 : i == 32 ? k_code + 0x40 : 0);
  core.add_note(NT_PRSTATUS, status.fill(8, 0));
  if (signing_bits) core.add_note(NT_ARM_PAC_MASK, core.bytes().u64(*signing_bits).u64(*signing_bits), "LINUX");
  core.add_memory({.flags = PF_R | PF_X, .address = k_code, .memory_size = 4096}, stand.code);
  core.add_memory({.flags = PF_R | PF_W, .address = k_stack, .memory_size = 4096}, stand.stack);
  return core;
}

std::vector<Addr> pcs_of(const Target& core) {
  std::vector<Addr> pcs;
  for (const Frame& frame : core.walk(core.threads()[0], Guesses::bold)) pcs.push_back(frame.pc());
  return pcs;
}

// covers: HL10
TEST_P(CoreOfAArch64, SaysByWhichBitsReturnAddressesAreSigned) {
  const auto open = [](std::optional<std::uint64_t> bits) {
    return core_with_signed_address(bits, GetParam(), at_a_call(GetParam())).open();
  };
  const auto told = open(bits_from(39));
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_EQ(pcs_of(*told), (std::vector<Addr>{k_code + 0x40, k_caller}));
  // A mask from bit 48 on leaves signature bits in the address, which leads nowhere. If there is no note, nothing is
  // guessed.
  for (const auto bits : {std::optional<std::uint64_t>(), std::optional(bits_from(48))}) {
    const auto core = open(bits);
    ASSERT_TRUE(core) << core.error().text();
    EXPECT_EQ(pcs_of(*core), std::vector<Addr>{k_code + 0x40});
  }
}

// covers: HL10
TEST_P(CoreOfAArch64, EndsAtASignedAddressWhereNobodySaysByWhichBits) {
  for (const bool is_told : {false, true}) {
    const auto bits = is_told ? std::optional(bits_from(39)) : std::nullopt;
    const auto core = core_with_signed_address(bits, GetParam(), at_a_trampoline(GetParam())).open();
    ASSERT_TRUE(core) << core.error().text();
    Walk walk = core->walk(core->threads()[0]);
    std::vector<Addr> pcs;
    for (const Frame& frame : walk) pcs.push_back(frame.pc());
    EXPECT_EQ(pcs, is_told ? (std::vector<Addr>{k_code + 0x40, k_caller}) : std::vector<Addr>{k_code + 0x40});
    EXPECT_EQ(walk.stop_error().code == ErrorCode::unknown_signature, !is_told) << walk.why();
  }
}

TEST_P(CoreOfAArch64, IsRefusedWhereSigningBitsAreImpossible) {
  const auto bit = [](unsigned number) { return std::uint64_t{1} << number; };
  for (const std::uint64_t bits : {std::uint64_t{0}, ~std::uint64_t{0}, bits_from(39) & ~bit(54),
                                   bits_from(39) & ~bit(47), bits_from(39) | bit(55), bits_from(12), bit(40)}) {
    const auto core = core_with_signed_address(bits, GetParam(), at_a_call(GetParam())).open();
    ASSERT_FALSE(core) << std::hex << bits;
    EXPECT_NE(core.error().text().find("aarch64"), std::string::npos) << core.error().text();
  }
}

/// struct user_sve_header (asm/ptrace.h), with registers behind it.
struct Vectors {
  std::uint32_t kind;
  std::uint16_t bytes, flags;
};
constexpr std::uint32_t k_sve = 0x405, k_streaming = 0x40b;
constexpr std::uint16_t k_fpsimd_only = 0, k_registers = 1;

/// A core whose thread is behind a call in a frame of two scalable registers, with these notes. Compilers describe such
/// frames so: CFA = SP + 16 + 16 * vg.
Core core_in_scalable_frame(const std::vector<Vectors>& notes, std::uint64_t vg, bool big_endian) {
  Core core(EM_AARCH64, true, big_endian);
  Bytes status = core.bytes().fill(32, 0).u32(7).fill(76, 0);
  for (unsigned i = 0; i < 34; ++i) status.u64(i == 31 ? k_stack : i == 32 ? k_code + 0x810 : 0);
  core.add_note(NT_PRSTATUS, status.fill(8, 0));
  for (const Vectors& v : notes)
    core.add_note(v.kind, core.bytes().u32(16).u32(16).u16(v.bytes).u16(256).u16(v.flags).u16(0).fill(64, 0xee),
                  "LINUX");
  core.add_note(NT_FILE, core.bytes().u64(1).u64(4096).u64(k_code).u64(k_code + 4096).u64(0).text("/no/such/file"));
  ElfBuilder elf(true, big_endian);
  elf.machine = EM_AARCH64;
  elf.segments = {{.flags = PF_R | PF_X, .file_size = 4096, .memory_size = 4096, .alignment = 4096}};
  Bytes object = core.bytes();
  object.vector() = object_with_frames(elf, k_code, [](CfiSection& frames) {
    CieSpec outer{.return_address = 30, .instructions{0x0c, 31, 0, 0x9e, 1}};  // cfa=sp ra=[cfa-8]
    const Addr cie = frames.cie(outer);
    frames.fde(cie, k_code + 0x800, 0x100, {0x0f, 10, 0x8f, 0, 0x92, 46, 0, 0x40, 0x1e, 0x23, 16, 0x22});
    outer.instructions = {0x0c, 31, 0, 0x07, 30};  // ra undefined
    frames.fde(frames.cie(outer), k_code + 0x900, 0x100, {});
  });
  object.vector().resize(4096);
  core.add_memory({.flags = PF_R | PF_X, .address = k_code, .memory_size = 4096}, object);
  core.add_memory({.flags = PF_R | PF_W, .address = k_stack, .memory_size = 4096},
                  core.bytes().fill(16 + 16 * vg - 8, 0).u64(k_code + 0x910).fill(512, 0));
  return core;
}

// covers: HL10
TEST_P(CoreOfAArch64, HasTheLengthOfScalableVectorsOfItsThread) {
  const struct {
    std::vector<Vectors> notes;
    std::uint64_t vg;
  } known[] = {
      {{{k_sve, 16, k_fpsimd_only}}, 2},
      {{{k_sve, 32, k_registers}}, 4},
      {{{k_sve, 256, k_registers}, {k_streaming, 64, k_fpsimd_only}}, 32},
      {{{k_sve, 32, k_fpsimd_only}, {k_streaming, 64, k_registers}}, 8},
      {{{k_streaming, 64, k_registers}, {k_sve, 32, k_fpsimd_only}}, 8},
      {{{k_streaming, 32, k_registers}}, 4},
  };
  for (const auto& [notes, vg] : known) {
    const auto core = core_in_scalable_frame(notes, vg, GetParam()).open();
    ASSERT_TRUE(core) << core.error().text();
    Walk walk = core->walk(core->threads()[0]);
    const auto length = (*walk.begin()).get(k_vg);
    ASSERT_TRUE(length) << vg;
    EXPECT_EQ(*length, vg);
    EXPECT_EQ(pcs_of(*core), (std::vector<Addr>{k_code + 0x810, k_code + 0x910})) << vg;
  }
  // An impossible length counts as none, and the streaming one does not count outside of that mode.
  for (const std::vector<Vectors>& notes : {std::vector<Vectors>{},
                                            {{k_sve, 24, k_registers}},
                                            {{k_sve, 16384, k_registers}},
                                            {{k_streaming, 32, 0}},
                                            {{k_sve, 0, k_registers}},
                                            {{0x40c, 32, k_registers}}}) {
    const auto core = core_in_scalable_frame(notes, 4, GetParam()).open();
    ASSERT_TRUE(core) << core.error().text();
    Walk walk = core->walk(core->threads()[0]);
    for (const Frame& frame : walk) EXPECT_FALSE(frame.get(k_vg));
    EXPECT_EQ(walk.stop_error().code, ErrorCode::undefined_register) << walk.why();
  }
}

/// A core with the kernel's notes of an ARM thread: struct elf_prstatus with words of 4 bytes and 18 registers;
/// NT_PRFPREG of a coprocessor that no longer exists; d0-d31 and fpscr, if `has_vectors` is set.
Core core_of_arm(bool big_endian, bool has_vectors) {
  Core core(EM_ARM, false, big_endian);
  Bytes status = core.bytes().fill(24, 0).u32(7).fill(44, 0), vectors = core.bytes();
  for (unsigned i = 0; i < 18; ++i) status.u32(0x1000 + i);
  core.add_note(NT_PRSTATUS, status.fill(4, 0));
  core.add_note(NT_PRFPREG, core.bytes().fill(116, 0x77));
  for (unsigned i = 0; i < 32; ++i) vectors.u64(0x7'0000'0000 + i);
  if (has_vectors) core.add_note(NT_ARM_VFP, vectors.u32(0), "LINUX");
  return core;
}

// covers: HL10 XP04
TEST(CoreOfArm, HasTheFloatingPointRegistersOfItsThread) {
  constexpr RegNum k_d7 = 263, k_d8 = 264, k_d15 = 271;
  for (const bool big_endian : {false, true}) {
    const auto core = core_of_arm(big_endian, true).open();
    ASSERT_TRUE(core) << core.error().text();
    ASSERT_EQ(core->threads().size(), 1u);
    Walk walk = core->walk(core->threads()[0]);
    const Frame& frame = *walk.begin();
    EXPECT_EQ(frame.pc(), 0x100eu) << "bit 0 of 0x100f says T32";
    EXPECT_EQ(frame.sp(), 0x100du);
    EXPECT_FALSE(frame.get(k_d7));
    for (RegNum reg = k_d8; reg <= k_d15; ++reg) {
      ASSERT_TRUE(frame.get(reg)) << reg;
      EXPECT_EQ(*frame.get(reg), 0x7'0000'0000u + reg - 256);
    }
    const auto without = core_of_arm(big_endian, false).open();
    ASSERT_TRUE(without) << without.error().text();
    Walk other = without->walk(without->threads()[0]);
    for (RegNum reg = k_d8; reg <= k_d15; ++reg) EXPECT_FALSE((*other.begin()).get(reg)) << reg;
  }
}

/// struct siginfo of each CPU is as in asm/siginfo.h: si_signo, si_errno, si_code (MIPS swaps the last two), then an
/// aligned word. Only a fault that the kernel has found counts, not a signal that another process has sent.
// covers: XP04
TEST(CoreSignal, HasTheAddressOfAFaultInTheLayoutOfEachCpu) {
  for (const Arch* const table : all_arches()) {
    for (const bool big_endian : {false, true}) {
      Arch arch = *table;
      arch.big_endian = big_endian;
      const bool is_mips = arch.elf_machine == EM_MIPS;
      const auto siginfo = [&](std::uint32_t signal, std::uint32_t code) {
        Bytes bytes = Bytes::in_order(big_endian, arch.word_size).u32(signal).u32(is_mips ? code : 0);
        bytes.u32(is_mips ? 0 : code).fill(arch.word_size - 4u, 0).word(0x1234'5678);
        return bytes.fill(128 - 12 - 4 - 8, 0).vector();
      };
      const auto said = [&](std::span<const std::byte> bytes) { return fault_address(bytes, arch); };
      const std::uint32_t bus_error = is_mips ? 10 : 7, child = is_mips ? 18 : 17;
      for (const std::uint32_t signal : {4u, 8u, 11u, bus_error})
        EXPECT_EQ(said(siginfo(signal, 1)), 0x1234'5678u) << arch.name << " " << signal;
      EXPECT_EQ(said(siginfo(17 - bus_error, 1)), std::nullopt) << arch.name << ", SIGBUS of others";
      EXPECT_EQ(said(siginfo(child, 1)), std::nullopt) << arch.name;
      EXPECT_EQ(said(siginfo(11, 0)), std::nullopt) << arch.name << ", SI_USER";
      EXPECT_EQ(said(siginfo(11, ~5u)), std::nullopt) << arch.name << ", SI_TKILL";
      EXPECT_EQ(said(siginfo(11, 0x80)), std::nullopt) << arch.name << ", SI_KERNEL";
      const RawBytes whole = siginfo(11, 1);
      for (std::size_t size = 0; size < 12u + arch.word_size; ++size)
        EXPECT_EQ(said(std::span(whole).first(size)), std::nullopt) << arch.name << " " << size;
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
