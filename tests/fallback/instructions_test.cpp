// Effects of instructions of x86-64 and of 32-bit x86 on the stack, registers and control, compared with Zydis: for
// everything that is loaded into this program, for 32-bit libraries, and for random bytes.
#include <Zydis/Zydis.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "tests/support/emulated.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using Effect = MachineInstruction::Effect;

/// A mode of the processor.
struct Mode {
  const char* name;
  const Arch& arch;
  ZydisMachineMode machine;
  ZydisStackWidth stack;
  ZydisRegister first, last;  ///< general registers
  std::array<RegNum, 16> dwarf;

  unsigned bits() const { return 8u * arch.word_size; }
  MachineInstruction read(std::span<const std::byte> bytes, Addr at) const { return arch.read_instruction(bytes, at); }
  RegNum general(ZydisRegister reg) const {
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(machine, reg);
    return whole >= first && whole <= last ? dwarf[static_cast<std::size_t>(whole - first)] : k_no_reg;
  }
};
/// Registers in the order of Zydis.
const Mode k_64{"x86-64",
                arch::x86_64,
                ZYDIS_MACHINE_MODE_LONG_64,
                ZYDIS_STACK_WIDTH_64,
                ZYDIS_REGISTER_RAX,
                ZYDIS_REGISTER_R15,
                {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}};
const Mode k_32{"x86",
                arch::x86,
                ZYDIS_MACHINE_MODE_LEGACY_32,
                ZYDIS_STACK_WIDTH_32,
                ZYDIS_REGISTER_EAX,
                ZYDIS_REGISTER_EDI,
                {0, 1, 2, 3, 4, 5, 6, 7}};
void PrintTo(const Mode* mode, std::ostream* out) { *out << mode->name; }

struct Decoded {
  const Mode& mode;
  ZydisDecodedInstruction info;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  bool is(ZydisMnemonic mnemonic) const { return info.mnemonic == mnemonic; }
  bool has_prefix(unsigned byte) const {
    return std::any_of(info.raw.prefixes, info.raw.prefixes + info.raw.prefix_count,
                       [byte](const auto& prefix) { return prefix.value == byte; });
  }
  const ZydisDecodedOperand& operator[](std::size_t i) const { return operands[i]; }
  RegNum general(ZydisRegister reg) const { return mode.general(reg); }
};

std::optional<Decoded> decode(const Mode& mode, std::span<const std::byte> bytes) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, mode.machine, mode.stack);
  Decoded d{mode, {}, {}};
  const auto status = ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &d.info, d.operands.data());
  return ZYAN_SUCCESS(status) ? std::optional(d) : std::nullopt;
}

std::uint64_t bit(RegNum reg) { return reg == k_no_reg ? 0 : std::uint64_t{1} << reg; }

std::uint64_t written(const Decoded& d) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < d.info.operand_count; ++i)
    if ((d[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 && d[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
      all |= bit(d.general(d[i].reg.value));
  return all;
}

std::uint64_t written(const Mode& mode, const MachineInstruction& i) {
  std::uint64_t all = i.written;
  if (i.effect == Effect::pop || i.effect == Effect::load || i.effect == Effect::set) all |= bit(i.reg);
  if (i.effect == Effect::exchange) all |= bit(i.reg) | bit(i.base);
  for (const Effect moves : {Effect::push, Effect::pop, Effect::enter, Effect::leave, Effect::call, Effect::ret})
    if (i.effect == moves) all |= bit(mode.arch.sp);
  if (i.effect == Effect::enter || i.effect == Effect::leave) all |= bit(mode.arch.fp);
  return all;
}

/// Returns the flow of the kinds that Zydis tells by category.
Effect flow_of(const Decoded& d) {
  switch (d.info.meta.category) {
    case ZYDIS_CATEGORY_CALL:
      return Effect::call;
    case ZYDIS_CATEGORY_RET:
      return Effect::ret;
    case ZYDIS_CATEGORY_COND_BR:
      return d.is(ZYDIS_MNEMONIC_XEND) ? Effect::none : Effect::branch;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return d.is(ZYDIS_MNEMONIC_XABORT) ? Effect::none : Effect::jump;  // it goes to the target of xbegin, or on
    case ZYDIS_CATEGORY_PUSH:
      return Effect::push;
    case ZYDIS_CATEGORY_POP:
      return Effect::pop;
    default:
      return Effect::none;
  }
}

bool is_flow(Effect effect) {
  for (const Effect flow : {Effect::call, Effect::ret, Effect::branch, Effect::jump, Effect::push, Effect::pop})
    if (effect == flow) return true;
  return false;
}

/// Compares the targets of jumps and calls.
std::string target_difference(const Decoded& d, const MachineInstruction& i, Addr at) {
  const ZydisDecodedOperand& to = d[0];
  if (to.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    ZyanU64 target = 0;
    ZydisCalcAbsoluteAddress(&d.info, &to, at, &target);
    return i.target == (target & d.mode.arch.word_mask()) ? "" : "target";
  }
  if (d.info.address_width != d.mode.bits() || d.has_prefix(0x67))
    return i.operand.kind == JumpOperand::Kind::none ? "" : "operand";
  if (to.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    const bool same = i.operand.kind == JumpOperand::Kind::value && i.operand.base == d.general(to.reg.value);
    return same ? "" : "register of a target";
  }
  const bool by_pc = to.mem.base == ZYDIS_REGISTER_RIP;
  const bool same =
      i.operand.kind == JumpOperand::Kind::memory && i.operand.base == (by_pc ? k_no_reg : d.general(to.mem.base)) &&
      i.operand.index == d.general(to.mem.index) && (i.operand.index == k_no_reg || i.operand.scale == to.mem.scale) &&
      i.operand.offset == to.mem.disp.value + (by_pc ? static_cast<std::int64_t>(at + d.info.length) : 0);
  return same ? "" : "memory of a target";
}

/// Compares the effect on SP, the frame pointer and words of the frame.
bool is_right_frame_operation(const Decoded& d, const MachineInstruction& i) {
  const auto is_slot = [&](const ZydisDecodedOperand& o) {
    return o.type == ZYDIS_OPERAND_TYPE_MEMORY && d.general(o.mem.base) == i.base && o.mem.disp.value == i.amount &&
           (i.index == k_no_reg ? o.mem.index == ZYDIS_REGISTER_NONE : d.general(o.mem.index) == i.index);
  };
  const auto is_reg = [&](const ZydisDecodedOperand& o, RegNum reg) {
    return o.type == ZYDIS_OPERAND_TYPE_REGISTER && d.general(o.reg.value) == reg && o.size == d.mode.bits();
  };
  const bool is_move = d.is(ZYDIS_MNEMONIC_MOV);
  switch (i.effect) {
    case Effect::store:
      return is_move && is_slot(d[0]) && is_reg(d[1], i.reg);
    case Effect::load:
      return is_move && is_reg(d[0], i.reg) && is_slot(d[1]);
    case Effect::push:
    case Effect::pop:
      return d.is(ZYDIS_MNEMONIC_CALL) || i.reg == k_no_reg || is_reg(d[0], i.reg);
    default:
      break;
  }
  if (d.is(ZYDIS_MNEMONIC_LEA)) return is_reg(d[0], i.reg) && is_slot(d[1]);
  if (is_move) return is_reg(d[0], i.reg) && is_reg(d[1], i.base) && i.amount == 0;
  const std::int64_t added = d[1].imm.value.s * (d.is(ZYDIS_MNEMONIC_ADD) ? 1 : -1);
  return (d.is(ZYDIS_MNEMONIC_ADD) || d.is(ZYDIS_MNEMONIC_SUB)) && is_reg(d[0], i.reg) && i.base == i.reg &&
         i.amount == added;
}

bool moves_sp_by_a_number(const Decoded& d) {
  return (d.is(ZYDIS_MNEMONIC_ADD) || d.is(ZYDIS_MNEMONIC_SUB)) && d[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         d[0].size == d.mode.bits() && d.general(d[0].reg.value) == d.mode.arch.sp &&
         d[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/// Registers that are written although Zydis does not say so: the kernel leaves a result, and strings move on.
std::uint64_t unnamed_to_zydis(const Decoded& d) {
  const bool is_system_call = d.is(ZYDIS_MNEMONIC_SYSCALL) || d.is(ZYDIS_MNEMONIC_INT);
  const bool is_string =
      d.info.meta.category == ZYDIS_CATEGORY_STRINGOP || d.info.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
  const std::uint64_t indexes = bit(d.mode.dwarf[6]) | bit(d.mode.dwarf[7]);
  return is_system_call ? 1 : is_string ? indexes : 0;
}

/// Returns "" if both agree, or if ours knows nothing.
std::string difference(const Decoded& d, const MachineInstruction& i, Addr at) {
  if (i.length == 0) return "";
  if (i.length != d.info.length) return "length";
  if (i.effect == Effect::unknown) return "";
  const std::uint64_t theirs = written(d), ours = written(d.mode, i);
  if ((theirs & ~ours) != 0) return "register written";
  if ((ours & ~theirs & ~unnamed_to_zydis(d)) != 0) return "register that is not written";
  const Effect flow = flow_of(d);
  const bool is_thunk = flow == Effect::call && i.effect == Effect::push && i.target == 0;  // a call of what comes next
  if ((is_flow(flow) || is_flow(i.effect)) && flow != i.effect && !is_thunk) return "flow";
  const bool goes = i.effect == Effect::call || i.effect == Effect::branch || i.effect == Effect::jump;
  if (goes) return target_difference(d, i, at);
  const bool has_frame = i.effect == Effect::store || i.effect == Effect::load || i.effect == Effect::set ||
                         i.effect == Effect::push || i.effect == Effect::pop;
  if (has_frame && !is_right_frame_operation(d, i)) return "frame operation";
  return moves_sp_by_a_number(d) && i.effect != Effect::set ? "SP" : "";
}

std::string text_of(const Decoded& d, std::span<const std::byte> bytes, Addr at) {
  std::ostringstream out;
  for (const std::byte byte : bytes.first(d.info.length)) out << std::hex << std::to_integer<unsigned>(byte) << " ";
  ZydisDisassembledInstruction text;
  return ZYAN_SUCCESS(ZydisDisassembleIntel(d.mode.machine, at, bytes.data(), bytes.size(), &text))
             ? out.str() + text.text
             : out.str();
}

struct Comparison {
  const Mode& mode;
  std::size_t instructions = 0;
  std::size_t unknown = 0;  ///< to us
  std::set<std::string> differences{};

  /// Returns the number of bytes to continue behind.
  std::size_t compare(std::span<const std::byte> bytes, Addr at) {
    const auto theirs = decode(mode, bytes);
    if (!theirs) return 1;
    ++instructions;
    const MachineInstruction ours = mode.read(bytes, at);
    if (ours.effect == Effect::unknown) ++unknown;
    const std::string found = difference(*theirs, ours, at);
    if (!found.empty() && differences.size() < 20) differences.insert(found + ": " + text_of(*theirs, bytes, at));
    return theirs->info.length;
  }
  std::string text() const {
    std::ostringstream out;
    for (const std::string& difference : differences) out << difference << "\n";
    return out.str();
  }
};

/// Compares code that would run at `begin`.
void compare_code(std::span<const std::byte> code, Addr begin, Comparison& into) {
  for (std::size_t at = 0; at < code.size();)
    at += into.compare(code.subspan(at, std::min<std::size_t>(15, code.size() - at)), begin + at);
}

int compare_segments(dl_phdr_info* info, std::size_t, void* into) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const Addr begin = info->dlpi_addr + header.p_vaddr;
    compare_code({reinterpret_cast<const std::byte*>(begin), header.p_memsz}, begin, *static_cast<Comparison*>(into));
  }
  return 0;
}

void expect_all_the_same(const Comparison& comparison) {
  EXPECT_GT(comparison.instructions, 500'000u);
  EXPECT_TRUE(comparison.differences.empty()) << comparison.text();
  // The unknown ones are data between functions, and instructions for transactions.
  EXPECT_LT(comparison.unknown, comparison.instructions / 1000);
}

TEST(Instructions, OfLoadedCodeAreWhatZydisSays) {
  Comparison comparison{k_64};
  ::dl_iterate_phdr(&compare_segments, &comparison);
  expect_all_the_same(comparison);
}

#ifdef LIBRARIES_OF_X86
TEST(Instructions, OfLibrariesOf32BitsAreWhatZydisSays) {
  Comparison comparison{k_32};
  std::istringstream paths(LIBRARIES_OF_X86);
  for (std::string path; std::getline(paths, path, ',');) {
    const std::string file = text_of_file(path);
    Elf32_Ehdr head;
    ASSERT_GT(file.size(), sizeof head) << path;
    std::memcpy(&head, file.data(), sizeof head);
    for (std::size_t i = 0; i < head.e_phnum; ++i) {
      Elf32_Phdr segment;
      std::memcpy(&segment, file.data() + head.e_phoff + i * sizeof segment, sizeof segment);
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      compare_code(std::as_bytes(std::span(file).subspan(segment.p_offset, segment.p_filesz)), segment.p_vaddr,
                   comparison);
    }
  }
  expect_all_the_same(comparison);
}
#endif

class RandomInstructions : public testing::TestWithParam<const Mode*> {};

TEST_P(RandomInstructions, AreWhatZydisSays) {
  constexpr std::array<std::uint8_t, 12> k_first{0x0f, 0x62, 0xc4, 0xc5, 0x48, 0x66,
                                                 0xf2, 0xf3, 0x41, 0x4c, 0xff, 0x67};
  std::mt19937_64 random(17);
  Comparison comparison{*GetParam()};
  for (std::size_t i = 0; i < repetitions(3'000'000); ++i) {
    std::array<std::byte, 16> bytes;
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(bytes.data() + at, &word, sizeof word);
    }
    // Every second one begins with a byte that few instructions begin with.
    if (i % 2 == 0) bytes[0] = std::byte{k_first[static_cast<std::size_t>(bytes[15]) % k_first.size()]};
    if (i % 4 == 0) bytes[1] = std::byte{0x0f};
    comparison.compare(std::span(bytes).first(15), 0x400000);
  }
  EXPECT_GT(comparison.instructions, repetitions(2'000'000));
  // Instructions of the operating system alone may be treated as writing less than they do.
  std::erase_if(comparison.differences, [](const std::string& text) {
    for (const char* name : {"encls", "enclv", "pbndkb", "pconfig", "rdmsrlist", "wrmsrlist"})
      if (text.find(name) != std::string::npos) return true;
    return false;
  });
  EXPECT_TRUE(comparison.differences.empty()) << comparison.text();
  EXPECT_LT(comparison.unknown, comparison.instructions / 10);
}

INSTANTIATE_TEST_SUITE_P(Modes, RandomInstructions, testing::Values(&k_64, &k_32),
                         [](const auto& info) { return info.param == &k_64 ? "Of64Bits" : "Of32Bits"; });

TEST(Instructions, ThatAreCutOffAreUnknown) {
  // sub rsp,0x12345678 loses its first byte, and is a sub of esp then.
  constexpr std::array<std::uint8_t, 7> k_code{0x48, 0x81, 0xec, 0x78, 0x56, 0x34, 0x12};
  for (const Mode* const mode : {&k_64, &k_32}) {
    const auto bytes = std::as_bytes(std::span(k_code)).subspan(mode == &k_64 ? 0 : 1);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_EQ(mode->read(bytes.first(size), 0).effect, Effect::unknown) << mode->name << " " << size;
    EXPECT_EQ(mode->read(bytes, 0).amount, -0x12345678) << mode->name;
  }
}

// Instructions of one mode alone, and instructions that an operand of 16 bits cuts off.
TEST(Instructions, OfOneModeAreNotThoseOfTheOther) {
  struct Case {
    std::vector<std::uint8_t> bytes;
    Effect in_64, in_32;
  };
  const Case cases[] = {
      {{0x40, 0x55}, Effect::push, Effect::none},        // push rbp; inc eax
      {{0x60}, Effect::unknown, Effect::push},           // pusha
      {{0x1f}, Effect::unknown, Effect::pop},            // pop ds
      {{0x82, 0xc4, 4}, Effect::unknown, Effect::none},  // add ah,4
      {{0x66, 0xeb, 4}, Effect::jump, Effect::unknown},
      {{0x66, 0xc3}, Effect::ret, Effect::unknown},
      {{0xc5, 0x04, 0x24}, Effect::unknown, Effect::none},  // lds eax,[esp]
      {{0x67, 0x8b, 0x44, 0x24, 0x08}, Effect::none, Effect::none},
  };
  for (const Case& one : cases) {
    const auto bytes = std::as_bytes(std::span(one.bytes));
    EXPECT_EQ(k_64.read(bytes, 0).effect, one.in_64) << one.bytes[0];
    EXPECT_EQ(k_32.read(bytes, 0).effect, one.in_32) << one.bytes[0];
  }
}

}  // namespace
}  // namespace jitunwind::test
