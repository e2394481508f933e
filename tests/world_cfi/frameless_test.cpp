// What following instructions says of procedures without a frame, at every instruction of AArch64's C and C++ libraries
// that has call frame information, which the guess does not read: that has to say the same.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/support/bytes_memory.h"
#include "tests/world_cfi/elf_cfi.h"

namespace jitunwind::world {
namespace {

/// The first segment of a shared library, which begins with the file, at address 0, and has its code.
std::vector<std::byte> first_segment(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, &bytes[header.e_phoff + i * sizeof segment], sizeof segment);
    if (segment.p_type != PT_LOAD || segment.p_offset != 0) continue;
    const auto of_segment = bytes.first(segment.p_filesz);
    return {of_segment.begin(), of_segment.end()};
  }
  return {};
}

struct Counts {
  std::size_t frameless = 0;  ///< instructions, by call frame information
  std::size_t found = 0;      ///< of these
  std::size_t wrong = 0;
  std::string first_wrong{};
};

class Library {
 public:
  explicit Library(const std::string& path) : path_(path), elf_(path), bytes_(first_segment(path)) {
    registers_.set(elf_.arch->column(elf_.arch->sp), 0x7fff'0000);
    registers_.set(elf_.arch->column(elf_.arch->ra), return_address());
  }

  Counts count() {
    const CfiContext context{*elf_.arch};
    SectionView view(elf_.eh_frame);
    FdeScan scan(view, context, {elf_.eh_frame.address, elf_.eh_frame.address + elf_.eh_frame.bytes.size()});
    Fde fde;
    while (!scan.at_end()) {
      const auto more = scan.next(fde);
      if (!more || !*more) break;
      FrameRow row;
      row.range.end = fde.range.begin;
      FdeRows rows(fde, context, row);
      for (auto next = rows.next_behind(row.range.end); next && *next; next = rows.next_behind(row.range.end)) add(row);
    }
    return std::move(counts_);
  }

 private:
  /// Behind a call, whichever.
  Addr return_address() const {
    MemoryWindow window;
    for (Addr at = 0x1000; at < bytes_.size(); at += 4)
      if (CodeBefore(at, memory_, window).is_call(*elf_.arch)) return at;
    ADD_FAILURE() << path_ << " calls nothing";
    return 0;
  }

  /// Of code that nobody has called: what its last call has left in the link register.
  Addr behind_last_call(Addr pc) const {
    MemoryWindow window;
    while (!CodeBefore(pc, memory_, window).is_call(*elf_.arch)) pc -= 4;
    return pc;
  }

  void add(const FrameRow& row) {
    const Arch& arch = *elf_.arch;
    // setcontext() is described as what it sets, also where it jumps to __syscall_error() instead (glibc 2.36,
    // sysdeps/unix/sysv/linux/aarch64/setcontext.S).
    if (row.cfa.kind == CfaRule::Kind::offset && row.cfa.reg == 0) return;
    const RegRule::Kind link = row.rule(arch.ra).kind;
    const bool is_frameless = row.cfa.kind == CfaRule::Kind::offset && row.cfa.reg == arch.sp && row.cfa.offset == 0 &&
                              (link == RegRule::Kind::unspecified || link == RegRule::Kind::same);
    for (Addr pc = row.range.begin; pc < row.range.end; pc += 4) {
      MemoryWindow window;
      RegisterFile registers = registers_;
      if (link == RegRule::Kind::undefined) registers.set(arch.column(arch.ra), behind_last_call(pc));
      Lookup lookup(space_, CodeAddress::interrupted(pc), window, &registers, Guesses::confirmed);
      FrameRow guessed;
      const Found found = followed_code_source().find_row(lookup, guessed);
      counts_.frameless += is_frameless;
      if (!found || !*found) continue;
      counts_.found += is_frameless;
      if (!is_frameless && counts_.wrong++ == 0) counts_.first_wrong = path_ + " " + std::to_string(pc);
    }
  }

  std::string path_;
  ElfCfi elf_;
  std::vector<std::byte> bytes_;
  test::BytesMemory memory_{bytes_, 0};
  NoModules modules_;
  AddressSpace space_{*elf_.arch, memory_, modules_, {}, {}};
  RegisterFile registers_;
  Counts counts_{};
};

// covers: LU20
TEST(FramelessProcedures, AreThoseOfTheirCallFrameInformation) {
  for (const char* const path : {AARCH64_LIBRARIES}) {
    const Counts counts = Library(path).count();
    EXPECT_EQ(counts.wrong, 0u) << counts.first_wrong;
    std::printf("%s: %zu of %zu instructions without a frame\n", path, counts.found, counts.frameless);
    EXPECT_GT(counts.found, counts.frameless / 4);
    EXPECT_GT(counts.frameless, 10'000u);
  }
}

}  // namespace
}  // namespace jitunwind::world
