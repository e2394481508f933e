// Files in GDB's list, as engines make them.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

#include "jitunwind/sdk/dialects/jit_object.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/listen/gdb_list.h"
#include "tests/support/cfi_assembler.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test {

/// A file with 256 bytes of code, of which two functions of 16 bytes have names: "f" at 0, "g" at 0x40.
struct JitFile {
  ElfBuilder elf{true, false};
  JitFile(const RawBytes& eh_frame, Addr code, Addr symbol = 0) {
    elf.type = ET_REL;
    elf.machine = static_cast<std::uint16_t>(host_arch()->elf_machine);
    elf.sections = {
        {".text", SHT_NOBITS, {}, code, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 16, 0x100},
        {".eh_frame", SHT_PROGBITS, eh_frame, 0, SHF_ALLOC},
        {".strtab", SHT_STRTAB, elf.bytes().text("").text("f").text("g").vector()},
        {".symtab", SHT_SYMTAB,
         elf.symbols({{1, symbol, 16, STT_FUNC, STB_GLOBAL, 1}, {3, symbol + 0x40, 16, STT_FUNC, STB_GLOBAL, 1}}), 0, 0,
         3, sizeof(Elf64_Sym)}};
  }
  RawBytes build() const { return elf.build(); }
  Result<JitObject> read() const { return JitObject::read(build(), *host_arch()); }
};

/// The frames that PHP writes: pointers relative to the code, although the file does not give its own address.
inline RawBytes frames_like_phps() {
  CfiSection section(0);
  const Addr cie = section.cie(host_cie("zR", Bytes{0x23}));
  section.fde(cie, section.bytes().u32(0).u32(16).u8(0).add(saved_register()));
  section.terminator();
  return section.data().vector();
}

}  // namespace jitunwind::test
