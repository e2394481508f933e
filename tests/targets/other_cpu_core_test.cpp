// Core files of AArch64 and ARM, in both byte orders: the registers of each thread, those of floating point among them.
#include <elf.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/targets/core_file_internal.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

constexpr RegNum k_x19 = 19, k_v0 = 64, k_v8 = 72, k_v15 = 79;

/// Numbers of a size, in one byte order.
class Writer {
 public:
  explicit Writer(bool big_endian) : big_endian_(big_endian) {}
  Writer& put(std::size_t size, std::uint64_t value) {
    for (std::size_t i = 0; i < size; ++i)
      bytes_.push_back(static_cast<char>(value >> 8 * (big_endian_ ? size - 1 - i : i)));
    return *this;
  }
  /// One of 16 bytes.
  Writer& put_wide(std::uint64_t upper, std::uint64_t lower) {
    return big_endian_ ? put(8, upper).put(8, lower) : put(8, lower).put(8, upper);
  }
  Writer& zeros(std::size_t size) { return bytes_.append(size, '\0'), *this; }
  Writer& append(const std::string& bytes) { return bytes_ += bytes, *this; }
  const std::string& bytes() const { return bytes_; }
  bool big_endian() const { return big_endian_; }

 private:
  bool big_endian_;
  std::string bytes_;
};

struct Thread {
  std::uint32_t id;
  std::uint64_t first_general, first_vector;  ///< of xN and of vN this plus N
  std::size_t vector_bytes;                   ///< that are in the core; 528: all of struct user_fpsimd_state
};

/// `owner`: of at most 7 bytes.
void put_note(Writer& out, std::uint32_t type, const std::string& description, const std::string& owner = "CORE") {
  Writer head(out.big_endian());
  head.put(4, owner.size() + 1).put(4, description.size()).put(4, type);
  out.append(head.bytes()).append(owner + std::string(8 - owner.size(), '\0')).append(description);
}

/// struct elf_prstatus (linux/elfcore.h) with 31 registers, sp, pc and pstate; struct user_fpsimd_state (asm/ptrace.h):
/// 32 registers of 16 bytes, fpsr, fpcr.
std::string core_of(const std::vector<Thread>& threads, bool big_endian) {
  Writer notes(big_endian);
  for (const Thread& thread : threads) {
    Writer status(big_endian), vectors(big_endian);
    status.zeros(32).put(4, thread.id).zeros(76);
    for (unsigned i = 0; i < 34; ++i) status.put(8, thread.first_general + i);
    put_note(notes, NT_PRSTATUS, status.zeros(8).bytes());
    for (unsigned i = 0; i < 32; ++i) vectors.put_wide(0xffff'0000 + i, thread.first_vector + i);
    vectors.zeros(16);
    put_note(notes, NT_PRFPREG, vectors.bytes().substr(0, thread.vector_bytes));
  }
  Writer file(big_endian);
  constexpr char k_magic[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64};
  file.append(std::string(k_magic, sizeof k_magic)).put(1, big_endian ? ELFDATA2MSB : ELFDATA2LSB).put(1, EV_CURRENT);
  file.zeros(9).put(2, ET_CORE).put(2, EM_AARCH64).put(4, EV_CURRENT).put(8, 0).put(8, sizeof(Elf64_Ehdr)).put(8, 0);
  file.put(4, 0).put(2, sizeof(Elf64_Ehdr)).put(2, sizeof(Elf64_Phdr)).put(2, 1).zeros(6);
  file.put(4, PT_NOTE).put(4, 0).put(8, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)).zeros(16);
  file.put(8, notes.bytes().size()).zeros(8).put(8, 4).append(notes.bytes());
  return file.bytes();
}

class CoreOfAArch64 : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(ByteOrders, CoreOfAArch64, testing::Bool(),
                         [](const auto& info) { return info.param ? "Big" : "Little"; });

// covers: HL10 XP04
TEST_P(CoreOfAArch64, HasTheVectorRegistersOfEachThread) {
  const TemporaryFolder folder;
  const bool big_endian = GetParam();
  const std::vector<Thread> threads{{.id = 7, .first_general = 0x1000, .first_vector = 0x7000, .vector_bytes = 528},
                                    {.id = 8, .first_general = 0x2000, .first_vector = 0x8000, .vector_bytes = 528},
                                    {.id = 9, .first_general = 0x3000, .first_vector = 0x9000, .vector_bytes = 136}};
  std::ofstream(folder / "core", std::ios::binary) << core_of(threads, big_endian);
  const auto core = Target::open_core(folder / "core");
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

/// Where a thread stands, and what is on its stack.
struct Stand {
  std::string code, stack;
};

/// In code at whose call the frame pointer leads to a record with a signed return address.
Stand at_a_call(bool big_endian) {
  Writer code(false), stack(big_endian);             // instructions are little-endian
  code.zeros(0x100).put(4, 0x94000000).zeros(0x40);  // bl
  stack.zeros(16).put(8, 0).put(8, k_caller | k_signature).zeros(32);
  return {code.bytes(), stack.bytes()};
}

/// In the kernel's trampoline: the ucontext_t 128 bytes above SP has the pc behind 440 others.
Stand at_a_trampoline(bool big_endian) {
  Writer code(false), stack(big_endian);
  code.zeros(0x40).put(4, 0xd2801168).put(4, 0xd4000001).zeros(0x100);
  stack.zeros(16 + 128 + 440).put(8, k_caller | k_signature).zeros(4096);
  return {code.bytes(), stack.bytes()};
}

/// What the kernel writes that gives addresses of 39 bits, with its note of the bits that sign them, or without.
std::string core_with_signed_address(std::optional<std::uint64_t> signing_bits, bool big_endian, const Stand& stand) {
  Writer notes(big_endian), status(big_endian);
  status.zeros(32).put(4, 7).zeros(76);
  for (unsigned i = 0; i < 34; ++i) status.put(8, i == 29 || i == 31 ? k_stack + 16 : i == 32 ? k_code + 0x40 : 0);
  put_note(notes, NT_PRSTATUS, status.zeros(8).bytes());
  if (signing_bits) {
    Writer masks(big_endian);
    put_note(notes, NT_ARM_PAC_MASK, masks.put(8, *signing_bits).put(8, *signing_bits).bytes(), "LINUX");
  }
  const std::size_t first = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
  Writer file(big_endian);
  constexpr char k_magic[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64};
  file.append(std::string(k_magic, sizeof k_magic)).put(1, big_endian ? ELFDATA2MSB : ELFDATA2LSB).put(1, EV_CURRENT);
  file.zeros(9).put(2, ET_CORE).put(2, EM_AARCH64).put(4, EV_CURRENT).put(8, 0).put(8, sizeof(Elf64_Ehdr)).put(8, 0);
  file.put(4, 0).put(2, sizeof(Elf64_Ehdr)).put(2, sizeof(Elf64_Phdr)).put(2, 3).zeros(6);
  std::size_t offset = first;
  const auto put_segment = [&](std::uint32_t type, std::uint32_t flags, std::uint64_t at, const std::string& bytes) {
    const std::size_t size = bytes.size();
    file.put(4, type)
        .put(4, flags)
        .put(8, offset)
        .put(8, at)
        .put(8, 0)
        .put(8, size)
        .put(8, at == 0 ? 0 : 4096)
        .put(8, 4);
    offset += size;
  };
  put_segment(PT_NOTE, 0, 0, notes.bytes());
  put_segment(PT_LOAD, PF_R | PF_X, k_code, stand.code);
  put_segment(PT_LOAD, PF_R | PF_W, k_stack, stand.stack);
  return file.append(notes.bytes()).append(stand.code).append(stand.stack).bytes();
}

std::vector<Addr> pcs_of(const Target& core) {
  std::vector<Addr> pcs;
  for (const Frame& frame : core.walk(core.threads()[0], Guesses::bold)) pcs.push_back(frame.pc());
  return pcs;
}

// covers: HL10
TEST_P(CoreOfAArch64, SaysByWhichBitsReturnAddressesAreSigned) {
  const TemporaryFolder folder;
  const auto open = [&](std::optional<std::uint64_t> bits) {
    std::ofstream(folder / "core", std::ios::binary)
        << core_with_signed_address(bits, GetParam(), at_a_call(GetParam()));
    return Target::open_core(folder / "core");
  };
  const auto told = open(bits_from(39));
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_EQ(pcs_of(*told), (std::vector<Addr>{k_code + 0x40, k_caller}));
  // Those from bit 48 on are none of the address; the rest leads nowhere. Where nobody says it, nothing is guessed.
  for (const auto bits : {std::optional<std::uint64_t>(), std::optional(bits_from(48))}) {
    const auto core = open(bits);
    ASSERT_TRUE(core) << core.error().text();
    EXPECT_EQ(pcs_of(*core), std::vector<Addr>{k_code + 0x40});
  }
}

// covers: HL10
TEST_P(CoreOfAArch64, EndsAtASignedAddressWhereNobodySaysByWhichBits) {
  const TemporaryFolder folder;
  for (const bool is_told : {false, true}) {
    std::ofstream(folder / "core", std::ios::binary) << core_with_signed_address(
        is_told ? std::optional(bits_from(39)) : std::nullopt, GetParam(), at_a_trampoline(GetParam()));
    const auto core = Target::open_core(folder / "core");
    ASSERT_TRUE(core) << core.error().text();
    Walk walk = core->walk(core->threads()[0]);
    std::vector<Addr> pcs;
    for (const Frame& frame : walk) pcs.push_back(frame.pc());
    EXPECT_EQ(pcs, is_told ? (std::vector<Addr>{k_code + 0x40, k_caller}) : std::vector<Addr>{k_code + 0x40});
    EXPECT_EQ(walk.stop_error().code == ErrorCode::unknown_signature, !is_told) << walk.why();
  }
}

TEST_P(CoreOfAArch64, IsRefusedWhereSigningBitsAreImpossible) {
  const TemporaryFolder folder;
  const auto bit = [](unsigned number) { return std::uint64_t{1} << number; };
  for (const std::uint64_t bits : {std::uint64_t{0}, ~std::uint64_t{0}, bits_from(39) & ~bit(54),
                                   bits_from(39) & ~bit(47), bits_from(39) | bit(55), bits_from(12), bit(40)}) {
    std::ofstream(folder / "core", std::ios::binary)
        << core_with_signed_address(bits, GetParam(), at_a_call(GetParam()));
    const auto core = Target::open_core(folder / "core");
    ASSERT_FALSE(core) << std::hex << bits;
    EXPECT_NE(core.error().text().find("aarch64"), std::string::npos) << core.error().text();
  }
}

/// What the kernel writes of a thread of ARM: struct elf_prstatus with words of 4 bytes and 18 registers; NT_PRFPREG,
/// of a coprocessor that there is no more; d0-d31 and fpscr, unless it has none.
std::string core_of_arm(bool big_endian, bool has_vectors) {
  Writer notes(big_endian), status(big_endian), vectors(big_endian);
  status.zeros(24).put(4, 7).zeros(44);
  for (unsigned i = 0; i < 18; ++i) status.put(4, 0x1000 + i);
  put_note(notes, NT_PRSTATUS, status.zeros(4).bytes());
  put_note(notes, NT_PRFPREG, std::string(116, '\x77'));
  for (unsigned i = 0; i < 32; ++i) vectors.put(8, 0x7'0000'0000 + i);
  if (has_vectors) put_note(notes, NT_ARM_VFP, vectors.put(4, 0).bytes(), "LINUX");
  Writer file(big_endian);
  constexpr char k_magic[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32};
  file.append(std::string(k_magic, sizeof k_magic)).put(1, big_endian ? ELFDATA2MSB : ELFDATA2LSB).put(1, EV_CURRENT);
  file.zeros(9).put(2, ET_CORE).put(2, EM_ARM).put(4, EV_CURRENT).put(4, 0).put(4, sizeof(Elf32_Ehdr)).put(4, 0);
  file.put(4, 0).put(2, sizeof(Elf32_Ehdr)).put(2, sizeof(Elf32_Phdr)).put(2, 1).zeros(6);
  file.put(4, PT_NOTE).put(4, sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr)).zeros(8).put(4, notes.bytes().size()).zeros(8);
  return file.put(4, 4).append(notes.bytes()).bytes();
}

// covers: HL10 XP04
TEST(CoreOfArm, HasTheFloatingPointRegistersOfItsThread) {
  constexpr RegNum k_d7 = 263, k_d8 = 264, k_d15 = 271;
  for (const bool big_endian : {false, true}) {
    const TemporaryFolder folder;
    std::ofstream(folder / "core", std::ios::binary) << core_of_arm(big_endian, true);
    const auto core = Target::open_core(folder / "core");
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
    std::ofstream(folder / "core", std::ios::binary) << core_of_arm(big_endian, false);
    const auto without = Target::open_core(folder / "core");
    ASSERT_TRUE(without) << without.error().text();
    Walk other = without->walk(without->threads()[0]);
    for (RegNum reg = k_d8; reg <= k_d15; ++reg) EXPECT_FALSE((*other.begin()).get(reg)) << reg;
  }
}

/// struct siginfo of each CPU, as asm/siginfo.h has it: si_signo, si_errno, si_code, of MIPS the other way round; then
/// a word, aligned. A fault is what the kernel has found, not what another process has sent.
// covers: XP04
TEST(CoreSignal, HasTheAddressOfAFaultInTheLayoutOfEachCpu) {
  for (const Arch* const table : all_arches()) {
    for (const bool big_endian : {false, true}) {
      Arch arch = *table;
      arch.big_endian = big_endian;
      const bool is_mips = arch.elf_machine == EM_MIPS;
      const auto siginfo = [&](std::uint32_t signal, std::uint32_t code) {
        Writer bytes(big_endian);
        bytes.put(4, signal).put(4, is_mips ? code : 0).put(4, is_mips ? 0 : code).zeros(arch.word_size - 4u);
        return bytes.put(arch.word_size, 0x1234'5678).zeros(128 - 12 - 4 - 8).bytes();
      };
      const auto said = [&](const std::string& bytes) { return fault_address(std::as_bytes(std::span(bytes)), arch); };
      const std::uint32_t bus_error = is_mips ? 10 : 7, child = is_mips ? 18 : 17;
      for (const std::uint32_t signal : {4u, 8u, 11u, bus_error})
        EXPECT_EQ(said(siginfo(signal, 1)), 0x1234'5678u) << arch.name << " " << signal;
      EXPECT_EQ(said(siginfo(17 - bus_error, 1)), std::nullopt) << arch.name << ", SIGBUS of others";
      EXPECT_EQ(said(siginfo(child, 1)), std::nullopt) << arch.name;
      EXPECT_EQ(said(siginfo(11, 0)), std::nullopt) << arch.name << ", SI_USER";
      EXPECT_EQ(said(siginfo(11, ~5u)), std::nullopt) << arch.name << ", SI_TKILL";
      EXPECT_EQ(said(siginfo(11, 0x80)), std::nullopt) << arch.name << ", SI_KERNEL";
      for (std::size_t size = 0; size < 12u + arch.word_size; ++size)
        EXPECT_EQ(said(siginfo(11, 1).substr(0, size)), std::nullopt) << arch.name << " " << size;
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
