// The program headers of a core file by their number, as callers of _UCD_add_backing_file_at_segment() count them.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

/// The load address of a program header's segment. The core has words as long as this machine's, in any byte order.
inline std::optional<std::uint64_t> address_of_segment(const std::string& core, int number) noexcept {
  const ReadableFile file = ReadableFile::regular(core.c_str());
  ElfW(Ehdr) head;
  ElfW(Phdr) segment;
  if (number < 0 || read_at(file.number(), &head, sizeof head, 0) != long{sizeof head}) return std::nullopt;
  const auto value_of = [is_big_endian = head.e_ident[EI_DATA] == ELFDATA2MSB](const auto& field) {
    return ByteReader(std::as_bytes(std::span(&field, 1)), is_big_endian).unsigned_of(sizeof field);
  };
  const std::uint64_t at = value_of(head.e_phoff) + static_cast<std::uint64_t>(number) * sizeof segment;
  // The count of more than PN_XNUM - 1 headers is elsewhere. Bytes that are not a header lack its type, checked below.
  const std::uint64_t count = value_of(head.e_phnum);
  if (count != PN_XNUM && static_cast<std::uint64_t>(number) >= count) return std::nullopt;
  if (read_at(file.number(), &segment, sizeof segment, at) != long{sizeof segment} ||
      value_of(segment.p_type) != PT_LOAD)
    return std::nullopt;
  return value_of(segment.p_vaddr);
}

}  // namespace jitunwind
