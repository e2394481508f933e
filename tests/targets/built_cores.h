// Core files that tests make, for any CPU.
#pragma once

#include <elf.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "jitunwind/sdk/target.h"
#include "tests/support/command.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test::built {

/// A core file in the kernel's layout: a segment of notes, then memory.
class Core {
 public:
  Core(std::uint16_t machine, bool is_64, bool big_endian) : elf_(is_64, big_endian) {
    elf_.type = ET_CORE;
    elf_.machine = machine;
    add_memory({.type = PT_NOTE, .flags = 0}, {});
  }
  Bytes bytes() const { return elf_.bytes(); }
  void add_note(std::uint32_t kind, const Bytes& description, const char* owner = "CORE") {
    RawBytes& notes = elf_.sections[0].data;
    const Bytes note = elf_.note(owner, kind, description.string());
    notes.insert(notes.end(), note.vector().begin(), note.vector().end());
  }
  void add_memory(BuiltSegment segment, const Bytes& contents) {
    segment.section = elf_.sections.size();
    elf_.segments.push_back(segment);
    elf_.sections.push_back({.name = "", .data = contents.vector()});
  }
  Result<Target, TargetError> open() const {
    const TemporaryFolder folder;
    write(folder / "core");
    return Target::open_core(folder / "core");
  }
  void write(const std::string& path) const {
    const RawBytes file = elf_.build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  }

 private:
  ElfBuilder elf_;
};

struct Thread {
  std::uint32_t id;
  std::uint64_t first_general, first_vector;  ///< of xN and of vN this plus N
  std::size_t vector_bytes;                   ///< that are in the core; 528: all of struct user_fpsimd_state
};

/// The core has struct elf_prstatus (linux/elfcore.h) with 31 registers, sp, pc and pstate, and struct
/// user_fpsimd_state (asm/ptrace.h): 32 registers of 16 bytes, fpsr, fpcr.
inline Core core_of(const std::vector<Thread>& threads, bool big_endian) {
  Core core(EM_AARCH64, true, big_endian);
  for (const Thread& thread : threads) {
    Bytes status = core.bytes().fill(32, 0).u32(thread.id).fill(76, 0), vectors = core.bytes();
    for (unsigned i = 0; i < 34; ++i) status.u64(thread.first_general + i);
    core.add_note(NT_PRSTATUS, status.fill(8, 0));
    for (unsigned i = 0; i < 32; ++i) {
      const std::uint64_t upper = 0xffff'0000 + i, lower = thread.first_vector + i;
      vectors.u64(big_endian ? upper : lower).u64(big_endian ? lower : upper);
    }
    vectors.fill(16, 0).vector().resize(thread.vector_bytes);
    core.add_note(NT_PRFPREG, vectors);
  }
  return core;
}

}  // namespace jitunwind::test::built
