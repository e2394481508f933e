#include "jitunwind/unwind_core/modules/loaded_object_internal.h"

#include <elf.h>
#include <sys/auxv.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

AddrRange run_time_range(const LoadedObject& object, const ElfW(Phdr) & header, Addr size) noexcept {
  const Addr begin = object.bias + header.p_vaddr;
  return {begin, begin + size};
}

/// Sets .eh_frame_hdr, and the segment around it.
[[gnu::hot]] void read_eh_frame_parts(const LoadedObject& object, Addr eh_frame_hdr, Module& out) noexcept {
  for (const ElfW(Phdr) & header : object.headers) {
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_R)) continue;
    const AddrRange from_file = run_time_range(object, header, header.p_filesz);
    if (!from_file.contains(eh_frame_hdr)) continue;
    out.eh_segment = bytes_of(from_file);
    out.eh_frame_hdr = bytes_of({eh_frame_hdr, from_file.end});
  }
}

/// `count` program headers in memory, which the object's own code could have overwritten or unmapped; empty when they
/// are not readable.
[[gnu::hot]] std::span<const ElfW(Phdr)> headers_at(Addr at, std::size_t count, MemoryWindow& window) noexcept {
  const std::byte* const bytes = LocalMemory().view(at, count * sizeof(ElfW(Phdr)), window);
  if (!bytes || at % alignof(ElfW(Phdr)) != 0) return {};
  return {reinterpret_cast<const ElfW(Phdr)*>(bytes), count};
}

}  // namespace

[[gnu::hot]] LoadedObject listed_object(const dl_phdr_info& info) noexcept {
  const char* name = info.dlpi_name;
#ifndef __GLIBC__
  // musl calls the main program by its first argument, which may lead from another folder than the present one.
  if (reinterpret_cast<std::uintptr_t>(info.dlpi_phdr) == ::getauxval(AT_PHDR)) name = "";
#endif
  return {info.dlpi_addr, name, {info.dlpi_phdr, info.dlpi_phnum}};
}

[[gnu::hot]] SectionBytes bytes_of(AddrRange range) noexcept {
  return {{pointer_to<const std::byte>(range.begin), static_cast<std::size_t>(range.size())}, range.begin};
}

[[gnu::hot]] const char* path_of(const char* name) noexcept { return name && *name ? name : "/proc/self/exe"; }

[[gnu::hot]] std::span<const ElfW(Phdr)> headers_of(AddrRange map, MemoryWindow& window) noexcept {
  const Addr main_headers = ::getauxval(AT_PHDR);
  if (map.contains(main_headers)) return headers_at(main_headers, ::getauxval(AT_PHNUM), window);
  ElfW(Ehdr) header;
  if (!read_object(LocalMemory(), window, map.begin, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr)))
    return {};
  return headers_at(map.begin + header.e_phoff, header.e_phnum, window);
}

[[gnu::hot]] bool read_module(const LoadedObject& object, Addr at, Module& out) noexcept {
  out = {};
  out.load_bias = object.bias;
  out.path = path_of(object.name);
  Addr eh_frame_hdr = 0;
  out.range = {~Addr{0}, 0};
  for (const ElfW(Phdr) & header : object.headers) {
    if (header.p_type == PT_GNU_EH_FRAME) eh_frame_hdr = object.bias + header.p_vaddr;
    if (header.p_type != PT_LOAD || header.p_memsz == 0) continue;
    const AddrRange loaded = run_time_range(object, header, header.p_memsz);
    out.range = {std::min(out.range.begin, page_of(loaded.begin)), std::max(out.range.end, loaded.end)};
    if (header.p_flags & PF_X && loaded.contains(at)) out.text = loaded;
  }
  if (!out.range.contains(at)) return false;
  if (eh_frame_hdr != 0) read_eh_frame_parts(object, eh_frame_hdr, out);
  return true;
}

[[gnu::hot]] std::span<const std::byte> build_id_of(const LoadedObject& object, Addr begin,
                                                    MemoryWindow& window) noexcept {
  constexpr bool k_big_endian = std::endian::native == std::endian::big;
  for (const ElfW(Phdr) & header : object.headers) {
    const Addr at = object.bias + header.p_vaddr;
    if (header.p_type != PT_NOTE || at < begin || header.p_filesz > k_page_size ||
        at + header.p_filesz > begin + k_page_size)
      continue;
    const std::byte* const notes = LocalMemory().view(at, header.p_filesz, window);
    if (!notes) continue;
    const auto id = find_note({notes, header.p_filesz}, k_big_endian, header.p_align, ELF_NOTE_GNU, NT_GNU_BUILD_ID);
    if (!id.empty()) return id;
  }
  return {};
}

[[gnu::hot]] void keep_build_id(std::span<const std::byte> id, Module& module) noexcept {
  if (id.size() > module.build_id.size()) return;
  std::ranges::copy(id, module.build_id.begin());
  module.build_id_size = static_cast<std::uint8_t>(id.size());
}

}  // namespace jitunwind
