// Our encoder's output as readelf and llvm-dwarfdump read it: random procedures in an ELF object made by hand.
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/cfi/random_rows.h"
#include "tests/world_cfi/compare.h"

namespace jitunwind::world {
using test::OffsetRow;

namespace {

/// An object with one section, .eh_frame, at address 0.
void write_object(const std::string& path, const Arch& arch, const std::vector<std::byte>& eh_frame) {
  const char names[] = "\0.eh_frame\0.shstrtab";
  Elf64_Shdr sections[3] = {};
  sections[1] = {.sh_name = 1,
                 .sh_type = SHT_PROGBITS,
                 .sh_flags = SHF_ALLOC,
                 .sh_addr = 0,
                 .sh_offset = sizeof(Elf64_Ehdr),
                 .sh_size = eh_frame.size(),
                 .sh_link = 0,
                 .sh_info = 0,
                 .sh_addralign = 8,
                 .sh_entsize = 0};
  sections[2] = {.sh_name = 11,
                 .sh_type = SHT_STRTAB,
                 .sh_flags = 0,
                 .sh_addr = 0,
                 .sh_offset = sections[1].sh_offset + eh_frame.size(),
                 .sh_size = sizeof names,
                 .sh_link = 0,
                 .sh_info = 0,
                 .sh_addralign = 1,
                 .sh_entsize = 0};
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = arch.elf_machine;
  header.e_version = EV_CURRENT;
  header.e_shoff = sections[2].sh_offset + sizeof names;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  std::ofstream out(path, std::ios::binary);
  const auto write = [&](const void* from, std::size_t size) {
    out.write(static_cast<const char*>(from), static_cast<std::streamsize>(size));
  };
  write(&header, sizeof header);
  write(eh_frame.data(), eh_frame.size());
  write(names, sizeof names);
  write(sections, sizeof sections);
}

// readelf prints the low 32 bits of offsets.
constexpr unsigned k_offset_bits = 32;

/// Procedures one behind the other; every 20th has its own CIE, for its signal mark, personality and LSDA.
std::vector<std::byte> random_section(const Arch& arch, unsigned procedures) {
  std::mt19937_64 random(7);
  std::vector<std::byte> bytes(std::size_t{procedures} * 4096);
  EhFrameWriter writer(arch, bytes);
  Addr begin = 0x100000;
  bool signal_frame = false;
  for (unsigned i = 0; i < procedures; ++i) {
    if (i % 20 == 0) {
      signal_frame = i % 60 == 0;
      writer.begin_cie({.personality = i % 40 == 0 ? 0x7000u + i : 0u,
                        .has_lsda = i % 80 == 0,
                        .signal_frame = signal_frame,
                        .data_alignment = -1});
    }
    ExpressionPool pool;
    std::vector<OffsetRow> rows = test::RandomRows(random, arch, pool, k_offset_bits).procedure();
    const AddrRange code{begin, begin + rows.back().offset + 64};
    writer.begin_fde(code, i % 3 == 0 ? 0 : 0x8000 + i);
    for (OffsetRow& r : rows) {
      r.row.signal_frame = signal_frame;
      (void)r.row.set(arch.sign_state, {});  // neither shows it, binutils 2.40 stops at toggles of it
      const Status written = writer.row(r.offset, r.row);
      EXPECT_TRUE(written) << written.error().what;
    }
    writer.end_fde();
    begin = code.end;
  }
  writer.terminate();
  EXPECT_TRUE(writer.fits());
  bytes.resize(writer.size());
  return bytes;
}

class EncodedCfi : public testing::TestWithParam<const Arch*> {};

TEST_P(EncodedCfi, ReadTheSameByOthers) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("jitunwind_encoded_" + std::to_string(::getpid()) + ".o")).string();
  constexpr unsigned k_procedures = 3000;
  write_object(path, *GetParam(), random_section(*GetParam(), k_procedures));
  for (const Tool tool : {Tool::readelf, Tool::dwarfdump}) {
    const Figures figures = compare_file(path, tool);
    for (const std::string& message : figures.messages) ADD_FAILURE() << message;
    for (const auto& [kind, e] : figures.explained) ADD_FAILURE() << kind << ": " << e.witness;
    EXPECT_EQ(figures.unexplained, 0u);
    EXPECT_EQ(figures.fdes, k_procedures);
    EXPECT_GT(figures.rows, 3 * k_procedures);
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(, EncodedCfi, testing::Values(&arch::x86_64, &arch::aarch64), [](const auto& info) {
  return info.param == &arch::x86_64 ? std::string("x86_64") : std::string("aarch64");
});

}  // namespace
}  // namespace jitunwind::world
