// How a library that is loaded late comes to the JITs whose announcements wait for it.
#pragma once

#include <link.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "jitunwind/unwind_core/image/elf_internal.h"
#define JITUNWIND_JIT_OFF  // the types alone
#include "jitunwind/adapters/jit_header/include/jitunwind_jit.h"

namespace jitunwind::jit_header {

/// Programs and shared objects that have the header have a note: the distance to a function that is to be called with
/// ju_jit_functions(), which it asks for the table if announcements wait for it.
using Come = void (*)(ju_jit_functions_t*);
/// The types of such notes: the header has one, the crate of Rust the other. An object may have both.
enum class ComeOf : std::uint32_t { header = 1, crate = 2 };

struct ComeSearch {
  ComeOf of;
  std::size_t skipped;
  Come found = nullptr;
};

inline bool is_loaded(const dl_phdr_info& object, const ElfW(Phdr) & note) noexcept {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && note.p_vaddr >= segment.p_vaddr && note.p_filesz <= segment.p_filesz &&
        note.p_vaddr - segment.p_vaddr <= segment.p_filesz - note.p_filesz)
      return true;
  }
  return false;
}

/// The function of this object; null: it has not got the header, or the crate.
inline Come come_of(const dl_phdr_info& object, ComeOf of) noexcept {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    if (header.p_type != PT_NOTE || !is_loaded(object, header)) continue;
    const auto* const notes = reinterpret_cast<const std::byte*>(object.dlpi_addr + header.p_vaddr);
    const auto distance = find_note({notes, header.p_filesz}, std::endian::native == std::endian::big, header.p_align,
                                    "jitunwind", static_cast<std::uint32_t>(of));
    std::int32_t value;
    if (distance.size() != sizeof value) continue;
    std::memcpy(&value, distance.data(), sizeof value);
    return reinterpret_cast<Come>(reinterpret_cast<std::uintptr_t>(distance.data()) +
                                  static_cast<std::uintptr_t>(std::intptr_t{value}));
  }
  return nullptr;
}

/// The functions are called when the linker's list is not read any more. Each has a search of its own, so that nothing
/// is allocated.
inline void come_to_those_that_wait(ju_jit_functions_t* functions) noexcept {
  const auto find = [](dl_phdr_info* object, std::size_t, void* to) {
    auto& search = *static_cast<ComeSearch*>(to);
    const Come come = come_of(*object, search.of);
    if (come == nullptr || search.skipped-- != 0) return 0;
    search.found = come;
    return 1;
  };
  for (const ComeOf of : {ComeOf::header, ComeOf::crate}) {
    for (std::size_t called = 0;; ++called) {
      ComeSearch search{of, called};
      dl_iterate_phdr(find, &search);
      if (search.found == nullptr) break;
      search.found(functions);
    }
  }
}

}  // namespace jitunwind::jit_header
