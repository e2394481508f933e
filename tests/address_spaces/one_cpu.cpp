// Compiled once for each CPU that is not this machine's, with <libunwind.h> of that target. ONE_CPU_MACRO is the macro
// by which programs ask for it.
#include <libunwind.h>

#include <elf.h>
#include <endian.h>

#include <array>
#include <cstring>
#include <map>

#include "tests/address_spaces/one_cpu.h"
#include "tests/support/cfi_assembler.h"
#include "tests/support/fake_target.h"

namespace jitunwind::test {
namespace {

static_assert(ONE_CPU_MACRO == 1);

#define TEXT_OF(name) TEXT_OF_2(name)
#define TEXT_OF_2(name) #name

const Arch& table() { return arch::UNW_TARGET; }

std::string wrong_numbers() {
  std::string wrong;
  const auto expect = [&](long is, long wanted, const std::string& what) {
    if (is != wanted) wrong += what + " is " + std::to_string(is) + ", not " + std::to_string(wanted) + "\n";
  };
  int last = 0;
  for (const RegisterInfo& reg : table().registers) {
    if (reg.libunwind < 0) continue;
    last = std::max<int>(last, reg.libunwind);
    if (std::strcmp(unw_regname(reg.libunwind), reg.libunwind_name) != 0) wrong += std::string(reg.name) + "\n";
    expect(unw_is_fpreg(reg.libunwind) != 0, reg.reg_class == RegClass::vector, reg.name);
  }
  if (last > UNW_REG_LAST) wrong += "UNW_REG_LAST\n";
  expect(UNW_REG_SP, table().by_dwarf(table().sp)->libunwind, "UNW_REG_SP");
  // AArch64 has the number of the link register there.
  const RegNum ip = table().elf_machine == EM_AARCH64 ? table().ra : table().pc;
  expect(UNW_REG_IP, table().by_dwarf(ip)->libunwind, "UNW_REG_IP");
  expect(UNW_NUM_EH_REGS, static_cast<long>(table().exception_registers.size()), "UNW_NUM_EH_REGS");
  expect(UNW_REG_EH, table().by_dwarf(table().exception_registers[0])->libunwind, "UNW_REG_EH");
  expect(UNW_TDEP_FP, table().by_dwarf(table().fp)->libunwind, "UNW_TDEP_FP");
  return wrong;
}

/// A registered procedure that was called by one with call frame information, that by another.
class Target {
 public:
  Target(bool big_endian, int order) : fake_(with_byte_order(table(), big_endian)) {
    const Addr word = arch().word_size;
    cfa_ = k_stack + 32 + offset(arch().entry_cfa);
    put(arch().ra_in_memory ? cfa_ + offset(arch().entry_ra) : k_stack + 16, k_code + 0x1010);
    put(sp(1) + 64 - offset(arch().caller_sp_bias) - 16, k_code + 0x2010);
    put(sp(2) + 64 - offset(arch().caller_sp_bias) - 16, 0);
    put_list();
    put_table(word);
    unw_accessors_t accessors{};
    accessors.find_proc_info = [](unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int, void* self) {
      return static_cast<Target*>(self)->find(ip, *info);
    };
    accessors.get_dyn_info_list_addr = [](unw_addr_space_t, unw_word_t* at, void* self) {
      *at = static_cast<Target*>(self)->list_;
      return 0;
    };
    accessors.access_mem = [](unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void* self) {
      return static_cast<Target*>(self)->read(at, *value, write);
    };
    accessors.access_reg = [](unw_addr_space_t, unw_regnum_t reg, unw_word_t* value, int write, void* self) {
      const auto& registers = static_cast<Target*>(self)->registers_;
      const auto found = registers.find(reg);
      if (write != 0 || found == registers.end()) return -UNW_EBADREG;
      *value = found->second;
      return 0;
    };
    registers_[table().by_dwarf(table().pc)->libunwind] = k_code + 4u * arch().unit;
    registers_[UNW_REG_SP] = k_stack;
    space_ = unw_create_addr_space(&accessors, order);
  }
  ~Target() { unw_destroy_addr_space(space_); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  std::string walk() {
    unw_cursor_t cursor;
    if (!space_) return "no such space";
    if (const int started = unw_init_remote(&cursor, space_, this); started != 0) return unw_strerror(started);
    std::array<char, 32> name{};
    if (unw_get_proc_name(&cursor, name.data(), name.size(), nullptr) != 0 || name.data() != std::string("registered"))
      return "name: " + std::string(name.data());
    for (Addr frame = 1; frame < 3; ++frame) {
      if (const int moved = unw_step(&cursor); moved <= 0) return "step: " + std::to_string(moved);
      unw_word_t ip = 0, sp_now = 0;
      if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || unw_get_reg(&cursor, UNW_REG_SP, &sp_now) != 0)
        return "registers";
      if (ip != k_code + 0x1000 * frame + 0x10 || sp_now != sp(frame))
        return "frame " + std::to_string(frame) + ": " + std::to_string(ip) + " " + std::to_string(sp_now);
    }
    const int moved = unw_step(&cursor);
    return moved == 0 ? "" : "last step: " + std::to_string(moved);
  }

 private:
  static constexpr Addr k_code = 0x40'0000, k_stack = 0x7000'0000, k_section = 0x3'0000, k_table = 0x5'0000;

  const Arch& arch() const { return fake_.arch; }
  static Addr offset(std::int64_t value) { return static_cast<Addr>(value); }
  Addr sp(Addr frame) const { return cfa_ + offset(arch().caller_sp_bias) + 64 * (frame - 1); }
  void put(Addr at, Addr value) { fake_.memory.put(at, value, arch().word_size); }

  /// The code is sub sp,32, and a store of the link register if there is one.
  void put_list() {
    const int sp_number = UNW_REG_SP, ra = table().by_dwarf(table().ra)->libunwind;
    std::array<std::byte, _U_dyn_region_info_size(3)> room{};
    auto* const region = new (room.data()) unw_dyn_region_info_t{};
    region->insn_count = 16;
    region->op_count = 3;
    region->op[0] = _U_dyn_op(UNW_DYN_ADD, 0, 0, sp_number, -32);
    region->op[1] =
        arch().ra_in_memory ? _U_dyn_op(UNW_DYN_STOP, 0, 0, 0, 0) : _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 0, ra, 16);
    region->op[2] = _U_dyn_op(UNW_DYN_STOP, 0, 0, 0, 0);
    unw_dyn_info_t info{};
    info.start_ip = k_code;
    info.end_ip = k_code + 16u * arch().unit;
    info.u.pi.name_ptr = fake_.put_string("registered" + std::string(5, '\0'));  // whole words
    list_ = fake_.put_list(fake_.put_descriptor(info, fake_.put_regions(region)));
  }

  void put_table(Addr word) {
    CfiSection section(k_section, CfiContext::Format::eh_frame, false, arch().big_endian);
    Bytes rules = section.bytes();
    rules.u8(0x0c).uleb(arch().sp).uleb(64 - offset(arch().caller_sp_bias));
    rules.u8(0x11).uleb(arch().ra).sleb(4);  // [cfa-16]
    const Addr cie = section.cie({.data_alignment = -4, .return_address = arch().ra, .instructions = rules});
    Bytes pairs = section.bytes();
    for (Addr i = 1; i < 3; ++i) {
      const Addr start = k_code + 0x1000 * i;
      const Addr fde = section.fde(cie, section.bytes().number(start, word).number(0x40, word));
      pairs.u32(start - k_section).u32(fde - k_section);
    }
    fake_.memory.put_bytes(k_section, section.data().fill(64, 0).vector());
    fake_.memory.put_bytes(k_table, pairs.vector());
    table_.segbase = k_section;
    table_.table_len = pairs.size() / word;
    table_.table_data = k_table;
  }

  int find(unw_word_t ip, unw_proc_info_t& info) {
    if (ip < k_code + 0x1000 || ip >= k_code + 0x3000) return -UNW_ENOINFO;
    std::memset(&info, 0, sizeof info);
    info.start_ip = ip & ~unw_word_t{0xfff};
    info.end_ip = info.start_ip + 0x40;
    info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    info.unwind_info = &table_;
    info.unwind_info_size = sizeof table_;
    return 0;
  }

  int read(Addr at, unw_word_t& value, int write) {
    MemoryWindow window;
    const auto word = read_word(fake_.memory, window, at, arch(), "");
    if (write != 0 || !word) return -UNW_EINVAL;
    value = *word;
    return 0;
  }

  FakeTarget fake_;
  std::map<int, unw_word_t> registers_;
  Addr cfa_ = 0;
  Addr list_ = 0;
  unw_dyn_remote_table_info_t table_{};
  unw_addr_space_t space_ = nullptr;
};

std::string walk(bool big_endian, int order) { return Target(big_endian, order).walk(); }

#define ONE_CPU UNW_PASTE(one_cpu_, UNW_TARGET)

}  // namespace

OneCpu ONE_CPU() {
  unw_context_t context{};
  unw_cursor_t cursor;
  return {TEXT_OF(UNW_TARGET),
          &table(),
          UNW_VERSION,
          unw_init_local(&cursor, &context),
          unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME),
          wrong_numbers(),
          &walk};
}

}  // namespace jitunwind::test
