// Effects of AArch64 instructions on the stack, registers and control, compared with LLVM's disassembler: for the C and
// C++ libraries of that CPU, and for random words.
#include <elf.h>
#include <gtest/gtest.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using Effect = MachineInstruction::Effect;
constexpr RegNum k_fp = 29, k_link = 30, k_sp = 31;

/// LLVM's view of one instruction.
struct Theirs {
  llvm::MCInst inst;
  const llvm::MCInstrDesc& desc;
  std::string name;
  std::string text{};  ///< "stp x29, x30, [sp, #-32]!"
};

class Llvm {
 public:
  Llvm() {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64Disassembler();
    std::string error;
    const Named named(k_triple);
    const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(named, error);
    if (!target) throw std::runtime_error(error);
    registers_.reset(target->createMCRegInfo(named));
    info_.reset(target->createMCAsmInfo(*registers_, named, {}));
    subtarget_.reset(target->createMCSubtargetInfo(named, "", "+all"));
    instructions_.reset(target->createMCInstrInfo());
    analysis_.reset(target->createMCInstrAnalysis(instructions_.get()));
#if LLVM_VERSION_MAJOR < 23
    const auto given = [](const auto& owner) { return owner.get(); };
#else
    const auto given = [](const auto& owner) -> auto& { return *owner; };
#endif
    context_ =
        std::make_unique<llvm::MCContext>(llvm::Triple(k_triple), given(info_), given(registers_), given(subtarget_));
    disassembler_.reset(target->createMCDisassembler(*subtarget_, *context_));
    printer_.reset(target->createMCInstPrinter(llvm::Triple(k_triple), 0, *info_, *instructions_, *registers_));
  }

  std::optional<Theirs> decode(std::uint32_t word, Addr at) const {
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &word, sizeof word);
    llvm::MCInst inst;
    std::uint64_t size = 0;
    if (disassembler_->getInstruction(inst, size, bytes, at, llvm::nulls()) != llvm::MCDisassembler::Success)
      return std::nullopt;
    return Theirs{inst, instructions_->get(inst.getOpcode()), instructions_->getName(inst.getOpcode()).str()};
  }
  std::string text(const Theirs& one, Addr at) const {
    std::string text;
    llvm::raw_string_ostream out(text);
    printer_->printInst(&one.inst, at, "", *subtarget_, out);
    return replaced(text, Pattern("\t"), " ").substr(1);
  }
  std::optional<Addr> target(const Theirs& one, Addr at) const {
    std::uint64_t to = 0;
    return analysis_->evaluateBranch(one.inst, at, 4, to) ? std::optional<Addr>(to) : std::nullopt;
  }
  /// Returns the written registers among those that calls preserve, the link register and SP, by their places.
  std::uint64_t written(const Theirs& one) const {
    std::uint64_t all = 0;
    for (unsigned i = 0; i < one.desc.getNumDefs(); ++i) all |= places(one.inst.getOperand(i).getReg());
    for (const llvm::MCPhysReg reg : one.desc.implicit_defs()) all |= places(reg);
    return all;
  }

 private:
  /// Maps parts of a register, and registers of a list, to their number.
  std::uint64_t places(llvm::MCRegister reg) const {
    std::uint64_t all = 0;
    if (!reg.isValid()) return all;
    for (const llvm::MCPhysReg one : registers_->sub_and_superregs_inclusive(reg)) {
      const std::int64_t number = registers_->getDwarfRegNum(one, false);
      if (std::string_view(registers_->getName(one)).ends_with("ZR")) continue;  // that of SP
      const bool is_general = number >= 19 && number <= 31, is_vector = number >= 72 && number <= 79;
      if (is_general || is_vector) all |= std::uint64_t{1} << place_of(static_cast<RegNum>(number));
    }
    return all;
  }

  static constexpr const char* k_triple = "aarch64-unknown-linux-gnu";
#if LLVM_VERSION_MAJOR < 22
  using Named = std::string;
#else
  using Named = llvm::Triple;
#endif
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> info_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
  std::unique_ptr<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> disassembler_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
};

std::uint64_t bit(RegNum reg) { return reg == k_no_reg ? 0 : std::uint64_t{1} << place_of(reg); }

SigningKey key_of(const MachineInstruction& i) {
  const bool has_one = i.effect == Effect::sign || i.effect == Effect::authenticate || i.effect == Effect::ret;
  return has_one ? i.key() : SigningKey::any;
}

std::uint64_t written(const MachineInstruction& i) {
  std::uint64_t all = i.written;
  if (i.effect == Effect::set || i.effect == Effect::load) all |= bit(i.reg);
  if (i.effect == Effect::load) all |= bit(i.second);
  const bool moves_base = i.effect == Effect::store || i.effect == Effect::load;
  if (moves_base && i.step != 0) all |= bit(i.base);
  if (i.effect == Effect::call) all |= bit(k_link);
  if (key_of(i) != SigningKey::any) all |= bit(k_link);
  return all;
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::find(names, name) != names.end();
}

/// The effect on SP, the frame pointer and words of the frame according to the disassembler's text, if it has one.
class FrameOperation {
 public:
  explicit FrameOperation(const std::string& text) {
    static const Pattern k_access(R"((stn?p|ldn?p|stt?u?r|ldt?u?r) ([xd]\d+|xzr)(?:, ([xd]\d+|xzr))?, )"
                                  R"(\[(sp|x29)(?:, #(-?\d+))?\](!)?(?:, #(-?\d+))?)");
    static const Pattern k_move(R"((add|sub|mov) (sp|x29), (sp|x29)(?:, #(\d+)(?:, lsl #(\d+))?)?)");
    // Accesses of other sizes that move the base.
    static const Pattern k_moving_access(
        R"((?:stg?p|ldp(?:sw)?|str[bh]?|ldrs?[bhw]?) [^\[]*, \[(sp|x29)(?:\]|, #(-?\d+)\]!)(?:, #(-?\d+))?)");
    Groups parts;
    if (matches(text, parts, k_access)) {
      expected_.effect = parts[1][0] == 's' ? Effect::store : Effect::load;
      expected_.reg = register_of(parts[2]);
      expected_.second = parts[3].empty() ? k_no_reg : register_of(parts[3]);
      expected_.base = parts[4] == "sp" ? k_sp : k_fp;
      expected_.amount = number(parts[5]);
      const bool is_before = !parts[6].empty();
      expected_.step = static_cast<std::int32_t>(is_before ? expected_.amount : number(parts[7]));
    } else if (matches(text, parts, k_moving_access) && (!parts[2].empty() || !parts[3].empty())) {
      expected_.effect = Effect::set;
      expected_.reg = expected_.base = parts[1] == "sp" ? k_sp : k_fp;
      expected_.amount = number(parts[2]) + number(parts[3]);
    } else if (matches(text, parts, k_move)) {
      expected_.effect = Effect::set;
      expected_.reg = parts[2] == "sp" ? k_sp : k_fp;
      expected_.base = parts[3] == "sp" ? k_sp : k_fp;
      expected_.amount = (number(parts[4]) << number(parts[5])) * (parts[1] == "sub" ? -1 : 1);
    }
  }
  RegNum base() const { return expected_.base; }
  bool exists() const { return expected_.effect != Effect::unknown; }
  bool is(const MachineInstruction& i) const {
    return i.effect == expected_.effect && i.reg == expected_.reg && i.second == expected_.second &&
           i.base == expected_.base && i.amount == expected_.amount && i.step == expected_.step;
  }

 private:
  static std::int64_t number(const std::string& text) { return text.empty() ? 0 : std::stoll(text); }
  /// Knows the registers that calls preserve, and the link register.
  static RegNum register_of(const std::string& text) {
    if (text == "xzr") return k_no_reg;
    const auto code = static_cast<RegNum>(std::stoul(text.substr(1)));
    if (text[0] == 'x') return code >= 19 && code <= 30 ? code : k_no_reg;
    return code >= 8 && code <= 15 ? static_cast<RegNum>(64 + code) : k_no_reg;
  }

  MachineInstruction expected_{};
};

/// Returns the flow by LLVM's tables. Unknown: it stops, or it is no instruction of a procedure.
Effect flow_of(const Theirs& theirs) {
  if (is_one_of(theirs.name, {"RETAA", "RETAB"})) return Effect::ret;
  if (theirs.desc.isReturn()) return theirs.text == "ret" ? Effect::ret : Effect::stop;
  if (theirs.desc.isCall()) return Effect::call;
  if (theirs.desc.isConditionalBranch()) return Effect::branch;
  if (theirs.desc.isBranch()) return Effect::jump;
  return Effect::none;
}

SigningKey key_of(const std::string& name) {
  if (is_one_of(name, {"RETAA", "PACIASP", "AUTIASP"})) return SigningKey::a;
  return is_one_of(name, {"RETAB", "PACIBSP", "AUTIBSP"}) ? SigningKey::b : SigningKey::any;
}

class Comparison {
 public:
  void compare(std::uint32_t word, Addr at) {
    auto theirs = llvm_.decode(word, at);
    if (!theirs) return;
    ++instructions;
    const MachineInstruction ours = arch::aarch64.read_instruction(std::as_bytes(std::span(&word, 1)), at);
    EXPECT_EQ(ours.length, 4);
    if (ours.effect == Effect::unknown) {
      ++unknown;
      return;
    }
    theirs->text = llvm_.text(*theirs, at);
    const std::string found = difference(*theirs, ours, at);
    if (found.empty()) return;
    ++different;
    std::ostringstream line;
    line << found << ": " << std::hex << word << " " << theirs->name << " " << theirs->text << "\n";
    if (differences.size() < 20) differences.insert(line.str());
  }

  std::size_t instructions = 0;
  std::size_t unknown = 0;  ///< to us
  std::size_t different = 0;
  std::size_t careful = 0;  ///< of which we say that more is written
  std::set<std::string> differences{};
  std::string text() const {
    std::string all;
    for (const std::string& line : differences) all += line;
    return all;
  }

 private:
  std::string difference(const Theirs& theirs, const MachineInstruction& ours, Addr at) {
    const FrameOperation frame(theirs.text);
    // A register that is moved by 0 stays unchanged.
    const std::uint64_t base = frame.exists() ? bit(frame.base()) : 0;
    if ((llvm_.written(theirs) & ~written(ours) & ~base) != 0) return "register not written";
    if ((written(ours) & ~llvm_.written(theirs)) != 0) ++careful;
    const Effect flow = flow_of(theirs);
    const bool signs = is_one_of(theirs.name, {"PACIASP", "PACIBSP"});
    const bool authenticates = is_one_of(theirs.name, {"AUTIASP", "AUTIBSP"});
    if ((ours.effect == Effect::sign) != signs || (ours.effect == Effect::authenticate) != authenticates ||
        key_of(ours) != key_of(theirs.name))
      return "signature";
    if (frame.exists()) return frame.is(ours) ? "" : "frame operation";
    if (ours.effect == Effect::number) return text_of_number(ours) == theirs.text ? "" : "number";
    if (ours.effect == Effect::set && ours.index != k_no_reg) return text_of_sum(ours) == theirs.text ? "" : "sum";
    if (ours.effect == Effect::set || ours.effect == Effect::load || ours.effect == Effect::store)
      return "no frame operation";
    if (flow == Effect::none) return is_flow(ours.effect) ? "no flow" : "";
    if (flow != ours.effect) return "flow";
    if (flow == Effect::ret || flow == Effect::stop) return "";
    if (theirs.desc.isIndirectBranch() || theirs.name.starts_with("BLR")) {
      const std::string by = replaced(theirs.text, Pattern("^[a-z]+ x?([a-z0-9]+).*"), "$1");
      const RegNum base = by == "zr" ? k_no_reg : static_cast<RegNum>(std::stoul(by));
      return ours.operand.kind == JumpOperand::Kind::value && ours.operand.base == base ? "" : "register of a target";
    }
    return llvm_.target(theirs, at) == ours.target ? "" : "target";
  }
  /// MOVK has a number of 16 bits and a shift, the others have the whole number.
  static std::string text_of_number(const MachineInstruction& i) {
    const std::string reg = "x" + std::to_string(i.reg);
    if (i.base == k_no_reg) return "mov " + reg + ", #" + std::to_string(i.amount);
    const std::uint64_t bits = static_cast<std::uint64_t>(i.amount) >> i.step;
    return "movk " + reg + ", #" + std::to_string(bits) + (i.step == 0 ? "" : ", lsl #" + std::to_string(i.step));
  }
  static std::string text_of_sum(const MachineInstruction& i) {
    return std::string(i.step < 0 ? "sub" : "add") + " sp, sp, x" + std::to_string(i.index);
  }
  static bool is_flow(Effect effect) {
    return effect == Effect::ret || effect == Effect::call || effect == Effect::branch || effect == Effect::jump;
  }

  const Llvm llvm_;
};

TEST(A64Instructions, OfLibrariesAreWhatLlvmSays) {
  Comparison comparison;
  for (const char* const path : {AARCH64_LIBRARIES}) {
    const std::string file = text_of_file(path);
    Elf64_Ehdr head;
    ASSERT_GT(file.size(), sizeof head) << path;
    std::memcpy(&head, file.data(), sizeof head);
    for (std::size_t i = 0; i < head.e_shnum; ++i) {
      Elf64_Shdr section;
      std::memcpy(&section, file.data() + head.e_shoff + i * sizeof section, sizeof section);
      if ((section.sh_flags & SHF_EXECINSTR) == 0) continue;
      for (std::size_t at = 0; at + 4 <= section.sh_size; at += 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, file.data() + section.sh_offset + at, sizeof word);
        comparison.compare(word, section.sh_addr + at);
      }
    }
  }
  std::printf("%zu instructions, %zu unknown, of %zu more is written\n", comparison.instructions, comparison.unknown,
              comparison.careful);
  EXPECT_GT(comparison.instructions, 500'000u);
  EXPECT_EQ(comparison.different, 0u) << comparison.text();
  EXPECT_LT(comparison.unknown, comparison.instructions / 200);
  EXPECT_LT(comparison.careful, comparison.instructions / 10'000);
}

/// LLVM knows those of FEAT_FPRCVT since release 20. Another mode of rounding makes an X register the result.
TEST(A64Instructions, ConvertBetweenVectorRegisters) {
  const auto written_by = [](std::uint32_t word) {
    return written(arch::aarch64.read_instruction(std::as_bytes(std::span(&word, 1)), 0x40'0000));
  };
  constexpr RegNum k_d10 = 74, k_d15 = 79;
  EXPECT_EQ(written_by(0x9e35'03af), bit(k_d15));  // fcvtmu d15, s29
  EXPECT_EQ(written_by(0x9e3d'03ea), bit(k_d10));  // ucvtf d10, d31
  EXPECT_EQ(written_by(0x9e25'03fd), bit(k_fp));   // fcvtau x29, s31
}

TEST(A64Instructions, OfRandomWordsAreWhatLlvmSays) {
  std::mt19937 random(17);
  Comparison comparison;
  for (unsigned i = 0; i < 2'000'000; ++i) {
    auto word = static_cast<std::uint32_t>(random());
    // Every other word gets SP or the frame pointer as the base register of its address.
    constexpr std::uint32_t k_base = 31 << 5;
    if (i % 2 == 0) word = (word & ~k_base) | static_cast<std::uint32_t>(i % 4 == 0 ? k_sp : k_fp) << 5;
    comparison.compare(word, 0x40'0000);
  }
  std::printf("%zu instructions, %zu unknown, of %zu more is written\n", comparison.instructions, comparison.unknown,
              comparison.careful);
  EXPECT_GT(comparison.instructions, 500'000u);
  EXPECT_EQ(comparison.different, 0u) << comparison.text();
  // The unknown ones use vectors of any length, matrices and memory tags.
  EXPECT_LT(comparison.unknown, comparison.instructions / 5);
  EXPECT_LT(comparison.careful, comparison.instructions / 50);
}

}  // namespace
}  // namespace jitunwind::test
