#include "jitunwind/adapters/gdb_jit/code_files_p.h"

#include <elf.h>

#include <algorithm>
#include <string_view>

#include "jitunwind/unwind_core/emit/elf_writer_internal.h"

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

/// The places of all parts: header, sections with contents, section headers.
struct Layout {
  explicit Layout(const Arch& arch) noexcept : sizes(arch) {}

  ElfSizes sizes;
  std::vector<Run> runs;
  Place frames, symbols, strings, section_names, headers;
  std::size_t sections() const noexcept { return 1 + runs.size() + 4; }
};

constexpr std::size_t aligned(std::size_t offset) noexcept { return (offset + 7) & ~std::size_t{7}; }

Layout lay_out(const Arch& arch, Procedures sorted) {
  Layout layout(arch);
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
      : layout_(layout), elf_(arch, into) {}

  void write(Procedures sorted) {
    ByteWriter& out = elf_.out();
    elf_.head({.type = ET_EXEC, .sections_at = layout_.headers.offset, .sections = layout_.sections()});
    for (const auto& [procedure, joined] : sorted) out.bytes(procedure->cfi);
    out.u32(0);
    out.pad(8, 0);
    symbols(sorted);
    out.u8(0);
    for (const auto& [procedure, joined] : sorted) {
      if (procedure->name.empty()) continue;
      elf_.text(procedure->name);
      out.u8(0);
    }
    elf_.text(k_section_names);
    out.pad(8, 0);
    section_headers();
  }

 private:
  void symbols(Procedures sorted) noexcept {
    elf_.symbol({});
    std::uint32_t name = 1;
    std::size_t next = 0;
    for (std::size_t run = 0; run < layout_.runs.size(); ++run) {
      for (std::size_t i = 0; i < layout_.runs[run].procedures; ++i) {
        const DebuggedProcedure& procedure = *sorted[next++].procedure;
        if (procedure.name.empty()) continue;
        const auto section = static_cast<std::uint16_t>(1 + run);
        elf_.symbol({procedure.code.begin, procedure.code.size(), name, section, STT_FUNC, STB_GLOBAL});
        name += static_cast<std::uint32_t>(procedure.name.size() + 1);
      }
    }
  }

  void section(std::string_view name, std::uint32_t type, std::uint64_t flags, Addr address, Place place,
               std::uint32_t link = 0, std::uint32_t first_global = 0, std::size_t entry_size = 0) noexcept {
    const auto name_offset = static_cast<std::uint32_t>(name.empty() ? 0 : name_at(name));
    elf_.section(
        {name_offset, type, flags, address, place.offset, place.size, link, first_global, /*alignment*/ 1, entry_size});
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

  const Layout& layout_;
  ElfWriter elf_;
};

}  // namespace

std::vector<std::byte> make_symbol_file(const Arch& arch, std::span<const FileProcedure> procedures) {
  const Layout layout = lay_out(arch, procedures);
  std::vector<std::byte> file(layout.headers.end());
  FileWriter(arch, layout, file).write(procedures);
  return file;
}

}  // namespace jitunwind
