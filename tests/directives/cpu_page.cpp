#include "tests/directives/cpu_page.h"

#include <cinttypes>
#include <cstdio>

#include "jitunwind/dyn_info/directives/directives.h"

namespace jitunwind::test {
namespace {

std::string signed_offset(std::int64_t offset) {
  if (offset == 0) return "";
  return (offset < 0 ? " - " : " + ") + std::to_string(offset < 0 ? -offset : offset);
}

std::string or_dash(int value) { return value < 0 ? "-" : std::to_string(value); }

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

template <class Wanted>
std::string names(const Arch& arch, Wanted wanted) {
  std::string list;
  for (const RegisterInfo& reg : arch.registers)
    if (wanted(reg)) list += (list.empty() ? "" : ", ") + std::string(reg.name);
  return list.empty() ? "none" : list;
}

std::string byte_orders(const Arch& arch) {
  const std::string usual = arch.big_endian ? "big" : "little";
  return arch.bi_endian ? usual + ", and " + (arch.big_endian ? "little" : "big") : usual;
}

std::string row(const std::string& what, const std::string& is) { return "| " + what + " | " + is + " |\n"; }

std::string directives_of(const Arch& arch) {
  const std::string word = std::to_string(arch.word_size) + " bytes at ";
  const bool is_signed = arch.sign_state != k_no_reg;
  std::string text = "| | |\n|---|---|\n";
  text += row("unit of `when` and `insn_count`", unit_cell(arch));
  text += row("SP", named_cell(arch, arch.sp));
  text += row("CFA at entry", entry_cell(arch));
  text += row("return address: register to save it as; where at entry", return_address_cell(arch));
  text += row("caller's SP", caller_sp_cell(arch));
  text += row("usual frame pointer", named_cell(arch, arch.fp));
  text += row("preserved registers", names(arch, [](const RegisterInfo& r) { return r.preserved; }));
  text += row("registers that can be saved", names(arch, [&](const RegisterInfo& r) { return can_be_saved(arch, r); }));
  text += row("`ADD` accepts", std::string("SP, the frame pointer") + (is_signed ? ", `RA_SIGN_STATE`" : ""));
  text += row("granularity of `ADD SP` (E_ADD_ALIGN)", std::to_string(arch.sp_granularity));
  text += row("red zone: slots that far below SP (E_SPILL_LOW)", std::to_string(arch.red_zone));
  text += row("`SPILL_SP_REL r,o`", word + "SP + o, SP as the instruction leaves it");
  text += row("`SPILL_FP_REL r,o`", word + "frame pointer + o, o of either sign");
  text += row("`UNW_DYN_ADD_UNKNOWN` in the target's memory", "1 << " + std::to_string(8 * arch.word_size - 1));
  text += row("a word of `table_len`", std::to_string(arch.word_size) + " bytes");
  text += row("segbase, table_data", "[directives.md](../directives.md), \"Table formats\"");
  return text;
}

std::string frames_of(const Arch& arch) {
  const FrameChain& chain = arch.chain;
  std::string text = "| | |\n|---|---|\n";
  text += row("ELF machine", std::to_string(arch.elf_machine));
  text += row("byte order", byte_orders(arch));
  text += row("SP at a call is a multiple of", std::to_string(arch.stack_alignment));
  text += row("bits of a code address that count", hex(arch.address_mask));
  text +=
      row("frame record at the frame pointer",
          chain.exists() ? "caller's frame pointer at " + std::to_string(chain.saved_fp) + ", return address at " +
                               std::to_string(chain.return_address) + ", CFA = frame pointer" + signed_offset(chain.cfa)
                         : "none that all compilers make");
  text += row("`ucontext_t` in a signal frame",
              arch.sigframe_ucontext < 0 ? "not known" : "SP" + signed_offset(arch.sigframe_ucontext));
  std::string handlers;
  for (const RegNum reg : arch.exception_registers)
    handlers += (handlers.empty() ? "" : ", ") + std::string(arch.by_dwarf(reg)->name);
  text += row("registers of landing pads", handlers);
  text += row("instructions are read, for guesses", arch.read_instruction ? "yes" : "no");
  return text;
}

std::string registers_of(const Arch& arch) {
  std::string text =
      "| register | DWARF | libunwind | `unw_regname` | Unwind Express | `ucontext_t` | core file | perf |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const RegisterInfo& reg : arch.registers)
    text += "| " + std::string(reg.name) + " | " + std::to_string(reg.dwarf) + " | " + or_dash(reg.libunwind) + " | " +
            reg.libunwind_name + " | " + (reg.uwx < 0 ? "-" : hex(static_cast<unsigned>(reg.uwx))) + " | " +
            or_dash(reg.ucontext) + " | " + or_dash(reg.prstatus) + " | " + or_dash(reg.perf) + " |\n";
  return text;
}

}  // namespace

std::string named_cell(const Arch& arch, RegNum reg) {
  const RegisterInfo& info = *arch.by_dwarf(reg);
  return std::string(info.name) + ", " + std::to_string(info.libunwind);
}

std::string unit_cell(const Arch& arch) { return std::to_string(arch.unit) + (arch.unit == 1 ? " byte" : " bytes"); }

std::string entry_cell(const Arch& arch) { return "SP" + signed_offset(arch.entry_cfa); }

std::string return_address_cell(const Arch& arch) {
  const std::string name = arch.by_dwarf(arch.ra)->name;
  return named_cell(arch, arch.ra) + "; " +
         (arch.ra_in_memory ? "`[CFA" + std::to_string(arch.entry_ra) + "]`" : "in " + name);
}

std::string caller_sp_cell(const Arch& arch) { return "CFA" + signed_offset(arch.caller_sp_bias); }

bool can_be_saved(const Arch& arch, const RegisterInfo& reg) {
  return reg.column >= 0 && reg.reg_class != RegClass::pseudo && reg.dwarf != arch.sp &&
         (reg.dwarf != arch.pc || reg.dwarf == arch.ra);
}

std::string cpu_page_path(const Arch& arch) {
  return std::string(JITUNWIND_SOURCE_DIR) + "/docs/targets/" + arch.name + ".md";
}

std::string cpu_page(const Arch& arch, const std::string& identifier) {
  return "# " + std::string(arch.name) +
         "\n\n"
         "What directives, frames and registers are on this CPU. The program `write_cpu_pages` makes this page from\n"
         "`unwind_core/arch/tables/" +
         identifier +
         ".cpp`. What directives mean is in [directives.md](../directives.md).\n\n"
         "## Directives\n\n" +
         directives_of(arch) + "\n## Frames\n\n" + frames_of(arch) +
         "\n## Registers\n\n"
         "Numbers of each interface, and byte offsets: in `ucontext_t`, and in a core file's `NT_PRSTATUS` registers\n"
         "(`NT_PRFPREG` for floating-point registers). The last column is a bit of `sample_regs_user`.\n\n" +
         registers_of(arch);
}

}  // namespace jitunwind::test
