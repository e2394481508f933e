// Stands still in text that it has copied to anonymous memory, as programs do that want huge pages.
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

void copy_to_memory(std::uintptr_t begin, std::size_t size) {
  void* const copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(copy, reinterpret_cast<const void*>(begin), size);
  mprotect(copy, size, PROT_READ | PROT_EXEC);
  mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(begin));
}

// The program comes first.
int copy_text(dl_phdr_info* object, std::size_t, void*) {
  constexpr std::uintptr_t k_page = 4096;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
    copy_to_memory(begin & -k_page, ((end + k_page - 1) & -k_page) - (begin & -k_page));
  }
  return 1;
}

[[noreturn]] __attribute__((noinline)) void stand_still() {
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace

int main() {
  dl_iterate_phdr(copy_text, nullptr);
  stand_still();
}
