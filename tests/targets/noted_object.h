// Objects with the notes that lead to a list of registered procedures: docs/registry.md "Finding the list".
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/unwind_core/address.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test {

/// The contents of the notes of an x86-64 object.
struct ListNotes {
  Addr head = 0;
  std::uint32_t layout = 1, word_size = 8;
  std::size_t size = 16;  ///< of the first one's description
  Addr changes = 0;       ///< 0: there is no second note
};

/// `size` bytes, which are loaded at `begin`.
inline RawBytes object_with(const ListNotes& says, Addr begin, std::size_t size) {
  constexpr std::size_t k_head_of_note = 12 + 8, k_field = 8;
  ElfBuilder elf(true, false);
  elf.segments = {{.type = PT_LOAD, .file_size = size, .memory_size = size}, {.type = PT_NOTE}};
  elf.sections = {{".note", SHT_NOTE}};
  const std::size_t offset = elf.offset_of(0);
  Bytes notes;
  const auto add = [&](std::uint32_t type, std::uint32_t number, Addr to, std::size_t description) {
    const Addr field = begin + offset + notes.size() + k_head_of_note + k_field;
    const Bytes said = Bytes().u32(number).u32(says.word_size).u64(to - field);
    notes.add(elf.note("UNWDYN", type, said.string().substr(0, description)));
  };
  add(1, says.layout, says.head, says.size);
  if (says.changes != 0) add(2, 256, says.changes, 16);
  elf.sections[0].data = notes.vector();
  BuiltSegment& segment = elf.segments[1];
  segment.offset = segment.address = offset;
  segment.file_size = segment.memory_size = notes.size();
  RawBytes bytes = elf.build();
  bytes.resize(size);
  return bytes;
}

}  // namespace jitunwind::test
