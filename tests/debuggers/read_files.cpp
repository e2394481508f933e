#include "tests/debuggers/read_files.h"

#include <gelf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace debuggers_test {

using namespace jitunwind;

namespace {

/// The contents of a file's sections. They must agree with each other.
struct ReadFile {
  Symbols symbols;
  std::vector<AddrRange> text, frames;
};

void read_symbols(Elf_Scn* section, const GElf_Shdr& header, Elf* elf, ReadFile& file) {
  Elf_Data* const data = elf_getdata(section, nullptr);
  for (int i = 1; i < static_cast<int>(header.sh_size / header.sh_entsize); ++i) {
    GElf_Sym symbol;
    ASSERT_NE(gelf_getsym(data, i, &symbol), nullptr);
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    ASSERT_NE(name, nullptr);
    EXPECT_TRUE(file.symbols.emplace(symbol.st_value, Known{name, symbol.st_size}).second) << name << " twice";
    GElf_Shdr text;
    gelf_getshdr(elf_getscn(elf, symbol.st_shndx), &text);
    EXPECT_GE(symbol.st_value, text.sh_addr) << name;
    EXPECT_LE(symbol.st_value + symbol.st_size, text.sh_addr + text.sh_size) << name;
  }
}

void read_frames(const std::byte* begin, std::size_t size, ReadFile& file) {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  SectionView bytes({{begin, size}, at});
  const CfiContext context{.arch = *find_arch(EM_X86_64, false)};
  FdeScan scan(bytes, context, {at, at + size});
  for (Fde fde;;) {
    const Result<bool> next = scan.next(fde);
    ASSERT_TRUE(next) << next.error().what;
    if (!*next) break;
    file.frames.push_back(fde.range);
  }
}

ReadFile read_file(const jit_code_entry& entry) {
  ReadFile file;
  std::vector<char> copy(entry.symfile_size);
  std::memcpy(copy.data(), entry.symfile_addr, copy.size());
  Elf* const elf = elf_memory(copy.data(), copy.size());
  EXPECT_EQ(elf_kind(elf), ELF_K_ELF);
  std::size_t names = 0;
  EXPECT_EQ(elf_getshdrstrndx(elf, &names), 0);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    EXPECT_NE(gelf_getshdr(section, &header), nullptr);
    const std::string name = elf_strptr(elf, names, header.sh_name);
    if (name == ".text") {
      EXPECT_EQ(header.sh_type, static_cast<GElf_Word>(SHT_NOBITS));
      file.text.push_back({header.sh_addr, header.sh_addr + header.sh_size});
    }
    if (name == ".symtab") read_symbols(section, header, elf, file);
    if (name != ".eh_frame") continue;
    EXPECT_EQ(header.sh_flags, 0u) << "makes GDB's time quadratic";
    read_frames(entry.symfile_addr + header.sh_offset, header.sh_size, file);
  }
  elf_end(elf);
  return file;
}

}  // namespace

Symbols debugger_reads(std::size_t* sections) { return debugger_reads(__jit_debug_descriptor, sections); }

Symbols debugger_reads(const jit_descriptor& descriptor, std::size_t* sections) {
  // Another thread delivers waiting files one by one: the list is read before or after that.
  const WritingScope writing;
  const ObserversScope scope;
  elf_version(EV_CURRENT);
  Symbols all;
  std::map<Addr, Addr> text;
  const jit_code_entry* before = nullptr;
  unsigned joints = 0;  // of this list with the others
  for (const jit_code_entry* entry = descriptor.first_entry; entry != nullptr; entry = entry->next_entry) {
    joints += entry->prev_entry != before ? 1u : 0u;
    before = entry;
    ReadFile file = read_file(*entry);
    EXPECT_EQ(file.frames.size(), file.symbols.size());
    for (const AddrRange& range : file.frames)
      EXPECT_EQ(file.symbols.count(range.begin) ? file.symbols[range.begin].size : 0, range.size());
    for (const AddrRange& range : file.text)
      EXPECT_TRUE(text.emplace(range.begin, range.end).second) << "sections at one address";
    for (auto& [at, known] : file.symbols) EXPECT_TRUE(all.emplace(at, known).second) << known.name << " twice";
  }
  EXPECT_LE(joints, 1u);
  Addr end = 0;
  for (const auto& [begin, its_end] : text) {
    EXPECT_GE(begin, end) << "sections overlap";
    end = its_end;
  }
  if (sections != nullptr) *sections = text.size();
  return all;
}

}  // namespace debuggers_test
