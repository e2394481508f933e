// The call frame information of an ELF file, found by libelf through section headers: not by the code under test.
#pragma once

#include <string>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/module.h"

struct Elf;

namespace jitunwind::world {

class ElfCfi {
 public:
  /// Sections are empty if the file lacks them, or is not an ELF file of a known CPU. Objects that must still be
  /// relocated do not count; arch is null then.
  explicit ElfCfi(const std::string& path);
  ~ElfCfi();
  ElfCfi(const ElfCfi&) = delete;
  ElfCfi& operator=(const ElfCfi&) = delete;

  const Arch* arch = nullptr;
  SectionBytes eh_frame{};
  SectionBytes eh_frame_hdr{};
  SectionBytes debug_frame{};

 private:
  bool has_relocations() const;
  void read_sections();

  int file_ = -1;
  Elf* elf_ = nullptr;
};

}  // namespace jitunwind::world
