#include "jitunwind/adapters/gdb_jit/symbol_file_p.h"

#include <elf.h>

#include <algorithm>
#include <string_view>

#include "jitunwind/unwind_core/emit/byte_writer.h"

namespace jitunwind {
namespace {

using Procedures = std::span<const FileProcedure>;

/// The procedures of one section.
struct Run {
  AddrRange code{};
  std::size_t procedures = 0;
};

std::vector<Run> find_runs(Procedures sorted) {
  std::vector<Run> runs;
  for (const auto& [procedure, joined] : sorted) {
    if (runs.empty() || !joined) runs.push_back({procedure->code, 0});
    runs.back().code.end = std::max(runs.back().code.end, procedure->code.end);
    ++runs.back().procedures;
  }
  return runs;
}

constexpr char k_section_name_bytes[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
constexpr std::string_view k_section_names{k_section_name_bytes, sizeof k_section_name_bytes};  // includes the last NUL
constexpr std::size_t name_at(std::string_view name) { return k_section_names.find(name); }

struct Place {
  std::size_t offset = 0;
  std::size_t size = 0;
  std::size_t end() const noexcept { return offset + size; }
};

/// The sizes of one class of ELF files.
struct ElfSizes {
  std::size_t header, symbol, section_header;
};
constexpr ElfSizes sizes_for(const Arch& arch) noexcept {
  if (arch.word_size == 8) return {sizeof(Elf64_Ehdr), sizeof(Elf64_Sym), sizeof(Elf64_Shdr)};
  return {sizeof(Elf32_Ehdr), sizeof(Elf32_Sym), sizeof(Elf32_Shdr)};
}

/// The places of all parts: header, sections with contents, section headers.
struct Layout {
  ElfSizes sizes{};
  std::vector<Run> runs;
  Place frames, symbols, strings, section_names, headers;
  std::size_t sections() const noexcept { return 1 + runs.size() + 4; }
};

constexpr std::size_t aligned(std::size_t offset) noexcept { return (offset + 7) & ~std::size_t{7}; }

Layout lay_out(const Arch& arch, Procedures sorted) {
  Layout layout;
  layout.sizes = sizes_for(arch);
  layout.runs = find_runs(sorted);
  layout.frames = {layout.sizes.header, 4};  // the end mark
  layout.symbols.size = layout.sizes.symbol;
  layout.strings.size = 1;
  for (const auto& [procedure, joined] : sorted) {
    layout.frames.size += procedure->cfi.size();
    if (procedure->name.empty()) continue;
    layout.symbols.size += layout.sizes.symbol;
    layout.strings.size += procedure->name.size() + 1;
  }
  layout.symbols.offset = aligned(layout.frames.end());
  layout.strings.offset = layout.symbols.end();
  layout.section_names = {layout.strings.end(), k_section_names.size()};
  layout.headers = {aligned(layout.section_names.end()), layout.sections() * layout.sizes.section_header};
  return layout;
}

class FileWriter {
 public:
  FileWriter(const Arch& arch, const Layout& layout, std::span<std::byte> into) noexcept
      : arch_(arch), layout_(layout), out_(into, arch.big_endian) {}

  void write(Procedures sorted) {
    header();
    for (const auto& [procedure, joined] : sorted) out_.bytes(procedure->cfi);
    out_.u32(0);
    out_.pad(8, 0);
    symbols(sorted);
    out_.u8(0);
    for (const auto& [procedure, joined] : sorted) {
      if (procedure->name.empty()) continue;
      text(procedure->name);
      out_.u8(0);
    }
    text(k_section_names);
    out_.pad(8, 0);
    section_headers();
  }

 private:
  bool has_wide_words() const noexcept { return arch_.word_size == 8; }
  void word(std::uint64_t value) noexcept { out_.unsigned_of(value, arch_.word_size); }
  void text(std::string_view t) noexcept { out_.bytes(std::as_bytes(std::span(t))); }

  void header() noexcept {
    text({ELFMAG, SELFMAG});
    out_.u8(has_wide_words() ? ELFCLASS64 : ELFCLASS32);
    out_.u8(arch_.big_endian ? ELFDATA2MSB : ELFDATA2LSB);
    out_.u8(EV_CURRENT);
    out_.pad(EI_NIDENT, 0);
    out_.u16(ET_EXEC);
    out_.u16(arch_.elf_machine);
    out_.u32(EV_CURRENT);
    word(0);  // entry
    word(0);  // program headers
    word(layout_.headers.offset);
    out_.u32(0);
    out_.u16(layout_.sizes.header);
    out_.u16(0);
    out_.u16(0);
    out_.u16(layout_.sizes.section_header);
    out_.u16(layout_.sections());
    out_.u16(layout_.sections() - 1);
  }

  void symbol(std::size_t name, unsigned info, std::size_t section, AddrRange code) noexcept {
    const auto place = [&] { word(code.begin), word(code.size()); };
    out_.u32(name);
    if (!has_wide_words()) place();
    out_.u8(info);
    out_.u8(STV_DEFAULT);
    out_.u16(section);
    if (has_wide_words()) place();
  }

  void symbols(Procedures sorted) noexcept {
    symbol(0, 0, SHN_UNDEF, {});
    std::size_t name = 1, next = 0;
    for (std::size_t run = 0; run < layout_.runs.size(); ++run) {
      for (std::size_t i = 0; i < layout_.runs[run].procedures; ++i) {
        const DebuggedProcedure& procedure = *sorted[next++].procedure;
        if (procedure.name.empty()) continue;
        symbol(name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1 + run, procedure.code);
        name += procedure.name.size() + 1;
      }
    }
  }

  void section(std::string_view name, Elf64_Word type, std::uint64_t flags, Addr address, Place place,
               unsigned link = 0, unsigned first_global = 0, std::size_t entry_size = 0) noexcept {
    out_.u32(name.empty() ? 0 : name_at(name));
    out_.u32(type);
    word(flags);
    word(address);
    word(place.offset);
    word(place.size);
    out_.u32(link);
    out_.u32(first_global);
    word(1);
    word(entry_size);
  }

  void section_headers() noexcept {
    section({}, SHT_NULL, 0, 0, {});
    for (const Run& run : layout_.runs)
      section(".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, run.code.begin,
              {layout_.sizes.header, static_cast<std::size_t>(run.code.size())});
    // The section is not SHF_ALLOC, because its address would be that of every other file's: GDB's time for sorting
    // sections by address would grow with the square of their number. Its pointers are absolute and need no address.
    section(".eh_frame", SHT_PROGBITS, 0, 0, layout_.frames);
    const auto strings = static_cast<unsigned>(layout_.sections() - 2);
    section(".symtab", SHT_SYMTAB, 0, 0, layout_.symbols, strings, 1, layout_.sizes.symbol);
    section(".strtab", SHT_STRTAB, 0, 0, layout_.strings);
    section(".shstrtab", SHT_STRTAB, 0, 0, layout_.section_names);
  }

  const Arch& arch_;
  const Layout& layout_;
  ByteWriter out_;
};

}  // namespace

std::vector<std::byte> make_symbol_file(const Arch& arch, std::span<const FileProcedure> procedures) {
  const Layout layout = lay_out(arch, procedures);
  std::vector<std::byte> file(layout.headers.end());
  FileWriter(arch, layout, file).write(procedures);
  return file;
}

}  // namespace jitunwind
