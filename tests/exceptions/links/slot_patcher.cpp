#include "tests/exceptions/links/slot_patcher.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {

constexpr const char* k_name = "_Unwind_Find_FDE";

template <class T>
T* at(const dl_phdr_info& info, std::uint64_t value) {
  // glibc has made run-time addresses of them.
  return reinterpret_cast<T*>(value < info.dlpi_addr ? value + info.dlpi_addr : value);
}

int look(dl_phdr_info* info, std::size_t, void* found) {
  if (std::strstr(info->dlpi_name, "libgcc_s") == nullptr) return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  const ElfW(Rela)* relocations = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  std::size_t bytes = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_JMPREL) relocations = at<const ElfW(Rela)>(*info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_PLTRELSZ) bytes = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_SYMTAB) symbols = at<const ElfW(Sym)>(*info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB) names = at<const char>(*info, dynamic->d_un.d_ptr);
  }
  for (std::size_t i = 0; i < bytes / sizeof *relocations; ++i) {
    const char* const name = names + symbols[relocations[i].r_info >> 32].st_name;
    if (std::strcmp(name, k_name) == 0)
      *static_cast<std::uintptr_t**>(found) =
          reinterpret_cast<std::uintptr_t*>(info->dlpi_addr + relocations[i].r_offset);
  }
  return 1;
}

}  // namespace

std::uintptr_t* find_slot() {
  std::uintptr_t* slot = nullptr;
  dl_iterate_phdr(look, &slot);
  return slot;
}

FindFde* find_definition() {
  void* const libgcc = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return libgcc != nullptr ? reinterpret_cast<FindFde*>(dlsym(libgcc, k_name)) : nullptr;
}

bool is_writable(const void* at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char rights[5]{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    if (address >= begin && address < end) return rights[1] == 'w';
  }
  return false;
}

void store(std::uintptr_t* slot, std::uintptr_t value) {
  const bool writable = is_writable(slot);
  void* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~std::uintptr_t{4095});
  if (!writable) mprotect(page, 4096, PROT_READ | PROT_WRITE);
  __atomic_store_n(slot, value, __ATOMIC_SEQ_CST);
  if (!writable) mprotect(page, 4096, PROT_READ);
}
