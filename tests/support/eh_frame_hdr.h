// The .eh_frame_hdr of the C library as the dynamic linker reports it.
#pragma once

#include <libunwind.h>
#include <link.h>

#include <cstring>

namespace jitunwind::test {

/// The header's address and size, and the code of its module.
struct Hdr {
  unw_word_t at = 0, size = 0, begin = 0, end = 0;
};

inline Hdr hdr_of_libc() {
  Hdr hdr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        if (!std::strstr(info->dlpi_name, "libc.so.6")) return 0;
        Hdr& found = *static_cast<Hdr*>(into);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& p = info->dlpi_phdr[i];
          const unw_word_t begin = info->dlpi_addr + p.p_vaddr;
          if (p.p_type == PT_GNU_EH_FRAME) found.at = begin, found.size = p.p_memsz;
          if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0) found.begin = begin, found.end = begin + p.p_memsz;
        }
        return 1;
      },
      &hdr);
  return hdr;
}

}  // namespace jitunwind::test
