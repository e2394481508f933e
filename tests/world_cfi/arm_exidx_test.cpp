// .ARM.exidx: every entry of Debian's C and C++ libraries for ARM as readelf reads it.
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <libelf.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/exidx_row.h"

namespace jitunwind::world {
namespace {

/// The allocated sections of a file, found by libelf.
class Sections final : public Memory {
 public:
  explicit Sections(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    ::elf_version(EV_CURRENT);
    elf_ = ::elf_begin(file_, ELF_C_READ_MMAP, nullptr);
    for (Elf_Scn* section = ::elf_nextscn(elf_, nullptr); section; section = ::elf_nextscn(elf_, section)) {
      GElf_Shdr header;
      if (!::gelf_getshdr(section, &header) || (header.sh_flags & SHF_ALLOC) == 0 || header.sh_type == SHT_NOBITS)
        continue;
      const Elf_Data* const data = ::elf_rawdata(section, nullptr);
      const SectionBytes bytes{{static_cast<const std::byte*>(data->d_buf), data->d_size}, header.sh_addr};
      all_.push_back(bytes);
      if (header.sh_type == SHT_ARM_EXIDX) exidx = bytes;
    }
  }
  ~Sections() {
    ::elf_end(elf_);
    ::close(file_);
  }
  Sections(const Sections&) = delete;
  Sections& operator=(const Sections&) = delete;
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    for (const SectionBytes& section : all_) {
      if (at < section.address || at - section.address >= section.bytes.size()) continue;
      const auto from = section.bytes.subspan(static_cast<std::size_t>(at - section.address));
      const std::size_t size = std::min(from.size(), into.size());
      std::copy_n(from.begin(), size, into.begin());
      return size;
    }
    return 0;
  }

  SectionBytes exidx{};

 private:
  const int file_;
  Elf* elf_ = nullptr;
  std::vector<SectionBytes> all_;
};

/// The meaning of readelf's words: "vsp = r7", "vsp = vsp + 8", "pop {r4, r14}", "pop {D8}", "pop {D8-D9}".
struct Reading {
  std::string base = "sp";
  std::int64_t offset = 0;
  std::map<std::string, std::int64_t> saved;
  bool is_complete = false;  ///< down to "finish"

  static std::string place(const std::string& from, std::int64_t distance) {
    return distance == 0 ? from : from + (distance > 0 ? "+" : "") + std::to_string(distance);
  }
  /// Takes a line with the bytes of an instruction, "0xb1 0x08", and its meaning.
  void take(const std::string& line) {
    std::istringstream words(line);
    std::string word, to, from, sign;
    while (words >> word && word.starts_with("0x")) continue;
    if (word == "finish") is_complete = true;
    if (word == "vsp" && words >> to >> from) {
      if (from == "vsp") {
        std::int64_t size = 0;
        words >> sign >> size;
        offset += sign == "-" ? -size : size;
      } else {
        base = from;
        offset = 0;
      }
    }
    if (word != "pop") return;
    for (std::string reg; words >> reg;) {
      std::erase_if(reg, [](char c) { return c == '{' || c == '}' || c == ','; });
      const bool is_double = reg[0] == 'D' || reg[0] == 'd';
      const std::size_t range = reg.find('-');
      const int first = std::stoi(reg.substr(1)), last = range == reg.npos ? first : std::stoi(reg.substr(range + 2));
      for (int number = first; number <= last; ++number, offset += is_double ? 8 : 4)
        saved[(is_double ? "d" : "r") + std::to_string(number)] = offset;
    }
  }
  /// If SP was saved, its slot gives the CFA, and the other slots are given relative to the base.
  std::string text() const {
    const auto sp = saved.find("r13");
    const bool saves_sp = sp != saved.end(), saves_all = saved.size() == 16;
    std::string row = "cfa=" + (saves_sp ? "[" + place(base, sp->second) + "]" : place(base, offset));
    for (const auto& [reg, at] : saved) {
      if (reg == "r13") continue;
      const std::string name = reg == "r14" ? "ra" : reg != "r15" ? reg : saves_all ? "pc" : "ra";
      row += " " + name + "=[" + (saves_sp ? place(base, at) : place("cfa", at - offset)) + "]";
    }
    if (saves_all) row += " signal";
    ExpressionPool pool;
    const auto parsed = parse_row(row, arch::arm, pool);
    return parsed ? to_text(parsed->row, arch::arm) : row;
  }
};

void compare(const std::string& path, std::size_t least) {
  const Sections sections(path);
  std::istringstream lines(test::output_of("readelf --wide -u '" + path + "' 2>/dev/null"));
  std::size_t compared = 0, ends = 0;
  Addr function = 0;
  Reading reading;
  const auto check = [&] {
    if (!reading.is_complete) return;
    ++compared;
    EXPECT_EQ(test::exidx_row(sections.exidx, sections, function), reading.text())
        << path << " " << std::hex << function;
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      check();
      function = std::stoul(line, nullptr, 16);
      reading = {};
      if (line.find("cantunwind") == line.npos) continue;
      ++ends;
      EXPECT_EQ(test::exidx_row(sections.exidx, sections, function), "cfa=sp ra=undefined");
    } else if (line.starts_with("  0x")) {
      if (!reading.is_complete) reading.take(line);
    }
  }
  check();
  EXPECT_GT(compared, least);
  EXPECT_GT(ends, least / 10);
}

// covers: XP04
TEST(ArmExidx, IsReadAsReadelfReadsIt) {
  for (const auto& [name, least] : {std::pair{"libc.so.6", 400}, std::pair{"libstdc++.so.6", 500}})
    compare(std::string("/usr/arm-linux-gnueabihf/lib/") + name, static_cast<std::size_t>(least));
}

}  // namespace
}  // namespace jitunwind::world
