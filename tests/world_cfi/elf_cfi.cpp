#include "tests/world_cfi/elf_cfi.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <string_view>

namespace jitunwind::world {
ElfCfi::ElfCfi(const std::string& path) {
  ::elf_version(EV_CURRENT);
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) return;
  elf_ = ::elf_begin(file_, ELF_C_READ_MMAP, nullptr);
  GElf_Ehdr header;
  if (!elf_ || ::elf_kind(elf_) != ELF_K_ELF || !::gelf_getehdr(elf_, &header)) return;
  if (header.e_type == ET_REL && has_relocations()) return;
  const bool big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
  const bool wide = header.e_ident[EI_CLASS] == ELFCLASS64;
  const Arch* const found = find_arch(header.e_machine, big_endian);
  if (!found || found->word_size != (wide ? 8 : 4)) return;
  arch = found;
  read_sections();
}

ElfCfi::~ElfCfi() {
  if (elf_) ::elf_end(elf_);
  if (file_ >= 0) ::close(file_);
}

bool ElfCfi::has_relocations() const {
  for (Elf_Scn* section = ::elf_nextscn(elf_, nullptr); section; section = ::elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) && (header.sh_type == SHT_RELA || header.sh_type == SHT_REL)) return true;
  }
  return false;
}

void ElfCfi::read_sections() {
  std::size_t names = 0;
  if (::elf_getshdrstrndx(elf_, &names) != 0) return;
  for (Elf_Scn* section = ::elf_nextscn(elf_, nullptr); section; section = ::elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (!::gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS) continue;
    const char* const name_or_null = ::elf_strptr(elf_, names, header.sh_name);
    const std::string_view name = name_or_null ? name_or_null : "";
    SectionBytes* const into = name == ".eh_frame"       ? &eh_frame
                               : name == ".eh_frame_hdr" ? &eh_frame_hdr
                               : name == ".debug_frame"  ? &debug_frame
                                                         : nullptr;
    if (!into) continue;
    if ((header.sh_flags & SHF_COMPRESSED) != 0) ::elf_compress(section, 0, 0);
    const Elf_Data* const data = ::elf_rawdata(section, nullptr);
    if (!data || !data->d_buf) continue;
    *into = {{static_cast<const std::byte*>(data->d_buf), data->d_size}, header.sh_addr};
  }
}

}  // namespace jitunwind::world
