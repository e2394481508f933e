// .eh_frame and .debug_frame as sources: modules made by hand in every layout, and this process compared with libgcc's
// own search.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/cfi/rows_of.h"
#include "tests/support/fake_memory.h"

// The structure of libgcc's unwind-dw2-fde.h; libgcc_s.so.1 exports the function as GCC_3.0.
struct dwarf_eh_bases {
  void* tbase;
  void* dbase;
  void* func;
};
using FindFde = const void* (*)(void* pc, dwarf_eh_bases* bases);

namespace jitunwind::test {
namespace {

constexpr Addr k_base = 0x400000;

/// One module that has everything between 4 and 5 MiB.
class OneModule final : public ModuleFinder {
 public:
  Module module;
  Module file_sections;  // what add_file_sections gives
  bool find(Addr at, Module& out) const noexcept override {
    if (at < k_base || at >= 0x500000) return false;
    out = module;
    return true;
  }
  void add_file_sections(Module& out) const noexcept override {
    out.eh_frame = file_sections.eh_frame;
    out.debug_frame = file_sections.debug_frame;
  }
};

struct Space {
  OneModule modules;
  FakeMemory memory;
  MemoryWindow window;
  AddressSpace space{arch::x86_64, memory, modules, {}, {}};

  /// Returns the row as text, "none", or the error's line.
  std::string row(const RowSource& source, CodeAddress at) {
    Lookup lookup(space, at, window);
    FrameRow row;
    const Found found = source.find_row(lookup, row);
    if (!found) return error_line(found.error());
    if (!*found) return "none";
    EXPECT_TRUE(row.range.contains(at.lookup()));
    return std::string(origin_name(row.origin)) + " " + to_text(row, arch::x86_64);
  }
  std::string eh_row(Addr pc) { return row(eh_frame_source(), CodeAddress::interrupted(pc)); }
};

/// Two procedures, [1000, 1010) and [1010, 1020) from k_base; the second is a signal frame with personality and LSDA.
struct TwoProcedures {
  CfiSection section{k_base + 0x10000};
  Addr cie = section.cie({});
  Addr signal_cie = section.cie({.augmentation = "zPLS", .augmentation_data = Bytes{0x00}.u64(0x777).u8(0x00)});
  Addr first = section.fde(cie, k_base + 0x1000, 16, {0x41, 0x0e, 16});
  Addr second = section.fde(signal_cie, Bytes().u64(k_base + 0x1010).u64(16).block(Bytes().u64(0x888)));
  Addr end = section.terminator();

  /// Header at k_base + 0xf000 with a table of the two.
  Bytes hdr(unsigned table_encoding = 0x3b) const {
    const Addr at = k_base + 0xf000;
    Bytes bytes;
    bytes.u8(1).u8(0x1b).u8(0x03).u8(table_encoding).u32(section.section().address - (at + 4)).u32(2);
    for (const Addr value : {k_base + 0x1000, first, k_base + 0x1010, second}) bytes.u32(value - at);
    return bytes;
  }
};

void expect_two_procedures(Space& space) {
  EXPECT_EQ(space.eh_row(k_base + 0xfff), "none");
  EXPECT_EQ(space.eh_row(k_base + 0x1000), "eh_frame cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(space.eh_row(k_base + 0x1001), "eh_frame cfa=rsp+16 ra=[cfa-8]");
  EXPECT_EQ(space.eh_row(k_base + 0x1010), "eh_frame cfa=rsp+8 ra=[cfa-8] signal");
  EXPECT_EQ(space.eh_row(k_base + 0x1020), "none");
  EXPECT_EQ(space.eh_row(0x100), "none") << "no module";
  // A call as the last instruction returns to the next procedure, and belongs to its own.
  EXPECT_EQ(space.row(eh_frame_source(), CodeAddress::returned_to(k_base + 0x1010)), "eh_frame cfa=rsp+16 ra=[cfa-8]");
}

TEST(FrameSectionSources, EhFrameThroughItsTable) {
  TwoProcedures code;
  const Bytes hdr = code.hdr();
  Bytes segment = Bytes(hdr).fill(0x1000 - hdr.size(), 0).add(code.section.data());
  Space one_segment;
  one_segment.modules.module.eh_frame_hdr = {segment.vector(), k_base + 0xf000};
  expect_two_procedures(one_segment);

  Space apart;
  apart.modules.module.eh_frame_hdr = {hdr.vector(), k_base + 0xf000};
  apart.modules.module.eh_segment = code.section.section();
  expect_two_procedures(apart);
  apart.modules.module.eh_segment = {};
  apart.modules.module.eh_frame = code.section.section();
  expect_two_procedures(apart);
  apart.modules.module.eh_frame = {};
  EXPECT_EQ(apart.eh_row(k_base + 0x1000), "error unreadable_memory: call frame information");
}

/// [1000, 1100) from k_base, with an empty FDE of the same start, and others in its range.
struct OneAroundOthers {
  static constexpr Addr k_start = k_base + 0x1000, k_hdr = k_base + 0xf000, k_inner_size = 4, k_inner_every = 8;
  static constexpr int k_inner = 20;
  CfiSection section{k_base + 0x10000};
  Addr cie = section.cie({});
  Addr outer = section.fde(cie, k_start, 0x100, {0x0e, 32});
  Addr empty = section.fde(cie, k_start, 0, {0x0e, 48});
  std::vector<Addr> inner;
  Bytes hdr;

  explicit OneAroundOthers(bool empty_is_last) {
    for (int i = 0; i < k_inner; ++i) inner.push_back(section.fde(cie, start_of(i), k_inner_size, {0x0e, 64}));
    section.terminator();
    hdr.u8(1).u8(0x1b).u8(0x03).u8(0x3b).u32(section.section().address - (k_hdr + 4)).u32(2 + k_inner);
    for (const Addr fde : {empty_is_last ? outer : empty, empty_is_last ? empty : outer}) pair(k_start, fde);
    for (int i = 0; i < k_inner; ++i) pair(start_of(i), inner[static_cast<std::size_t>(i)]);
  }
  static Addr start_of(int i) { return k_start + 0x10 + k_inner_every * static_cast<Addr>(i); }
  void pair(Addr start, Addr fde) { hdr.u32(start - k_hdr).u32(fde - k_hdr); }
};

TEST(FrameSectionSources, TheFdeThatCoversCountsAmongEmptyAndNestedOnes) {
  for (const bool empty_is_last : {true, false}) {
    OneAroundOthers code(empty_is_last);
    Space space;
    space.modules.module.eh_frame_hdr = {code.hdr.vector(), code.k_hdr};
    space.modules.module.eh_segment = code.section.section();
    const char* const outer = "eh_frame cfa=rsp+32 ra=[cfa-8]";
    EXPECT_EQ(space.eh_row(code.k_start - 1), "none");
    EXPECT_EQ(space.eh_row(code.k_start), outer);
    EXPECT_EQ(space.eh_row(code.start_of(0) - 1), outer);
    for (int i = 0; i < code.k_inner; ++i) {
      EXPECT_EQ(space.eh_row(code.start_of(i)), "eh_frame cfa=rsp+64 ra=[cfa-8]");
      EXPECT_EQ(space.eh_row(code.start_of(i) + code.k_inner_size), outer);
    }
    EXPECT_EQ(space.eh_row(code.k_start + 0xff), outer);
    EXPECT_EQ(space.eh_row(code.k_start + 0x100), "none");

    space.memory.put_bytes(code.k_hdr, code.hdr.vector());
    space.memory.put_bytes(code.section.section().address, code.section.section().bytes);
    space.modules.module.memory = &space.memory;  // which may go at any moment
    Lookup lookup(space.space, CodeAddress::interrupted(code.k_start + 0xff), space.window);
    ProcedureInfo info;
    ASSERT_TRUE(*eh_frame_source().find_procedure(lookup, info));
    EXPECT_EQ(info.range, (AddrRange{code.k_start, code.k_start + 0x100}));
  }
}

TEST(FrameSectionSources, EhFrameWithoutTable) {
  TwoProcedures code;
  Bytes hdr = code.hdr();
  for (const unsigned encoding : {0xffu, 0x31u}) {  // omitted; uleb128, which cannot be searched
    Bytes without = Bytes(hdr).put(3, encoding, 1);
    Space space;
    space.modules.module.eh_frame_hdr = {without.vector(), k_base + 0xf000};
    space.modules.module.eh_segment = code.section.section();
    expect_two_procedures(space);
    space.modules.module.eh_segment = {};
    space.modules.file_sections.eh_frame = code.section.section();
    expect_two_procedures(space);
  }
  Bytes empty = Bytes(hdr).put(8, 0, 4);
  Space space;
  space.modules.module.eh_frame_hdr = {empty.vector(), k_base + 0xf000};
  space.modules.module.eh_segment = code.section.section();
  expect_two_procedures(space);
}

TEST(FrameSectionSources, EhFrameWithoutHeader) {
  TwoProcedures code;
  Space space;
  EXPECT_EQ(space.eh_row(k_base + 0x1000), "none") << "a module without any unwind information";
  space.modules.file_sections.eh_frame = code.section.section();
  expect_two_procedures(space);
}

TEST(FrameSectionSources, BrokenIsNotNone) {
  TwoProcedures code;
  Bytes hdr = code.hdr();
  Space space;
  space.modules.module.eh_segment = code.section.section();
  Bytes version = Bytes(hdr).put(0, 7, 1);
  space.modules.module.eh_frame_hdr = {version.vector(), k_base + 0xf000};
  EXPECT_EQ(space.eh_row(k_base + 0x1000), "error unsupported_version: version of .eh_frame_hdr");
  Bytes astray = Bytes(hdr).put(16, code.cie - (k_base + 0xf000), 4);  // the table leads to a CIE
  space.modules.module.eh_frame_hdr = {astray.vector(), k_base + 0xf000};
  EXPECT_EQ(space.eh_row(k_base + 0x1000), "error bad_structure: no FDE at this address");
  EXPECT_EQ(space.eh_row(k_base + 0x1010), "eh_frame cfa=rsp+8 ra=[cfa-8] signal") << "the others are whole";

  // The section is read as a whole, so one bad CIE does not hide the FDEs behind it, but it may explain why there is
  // none.
  CfiSection section(k_base + 0x10000);
  const Addr bad = section.cie({.version = 9});
  section.fde(bad, k_base + 0x2000, 16, {});
  section.fde(section.cie({}), k_base + 0x3000, 16, {});
  Space scanned;
  scanned.modules.file_sections.eh_frame = section.section();
  EXPECT_EQ(scanned.eh_row(k_base + 0x3000), "eh_frame cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(scanned.eh_row(k_base + 0x2000), "error unsupported_version: version of a CIE");
}

// Memory below the red zone belongs to nobody.
// covers: LU11
TEST(FrameSectionSources, NoReturnAddressIsBelowTheStack) {
  CfiSection section(k_base + 0x10000);
  const Addr cie = section.cie({});
  section.fde(cie, k_base + 0x2000, 16, {0x13, 15});  // DW_CFA_def_cfa_offset_sf: -120
  section.fde(cie, k_base + 0x3000, 16, {0x13, 16});
  Space space;
  space.modules.file_sections.eh_frame = section.section();
  EXPECT_EQ(space.eh_row(k_base + 0x2000), "eh_frame cfa=rsp-120 ra=[cfa-8]");
  EXPECT_EQ(space.eh_row(k_base + 0x3000), "error bad_frame: return address below the stack");
}

TEST(FrameSectionSources, Procedures) {
  TwoProcedures code;
  Space space;
  space.modules.file_sections.eh_frame = code.section.section();
  Lookup lookup(space.space, CodeAddress::interrupted(k_base + 0x1018), space.window);
  ProcedureInfo info;
  const Found found = eh_frame_source().find_procedure(lookup, info);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(info.range, (AddrRange{k_base + 0x1010, k_base + 0x1020}));
  EXPECT_EQ(info.handler, 0x777u);
  EXPECT_EQ(info.lsda, 0x888u);
  EXPECT_EQ(info.unwind_info, code.second);
  EXPECT_EQ(info.unwind_info + info.unwind_info_size, code.end);
  EXPECT_EQ(info.format, 1);
  EXPECT_EQ(info.origin, RowOrigin::eh_frame);
  Lookup nowhere(space.space, CodeAddress::interrupted(k_base + 0x5000), space.window);
  const Found none = eh_frame_source().find_procedure(nowhere, info);
  EXPECT_TRUE(none && !*none);
}

// Addresses in the file are those before loading.
TEST(FrameSectionSources, DebugFrameOfALoadedFile) {
  CfiSection section(0, CfiContext::Format::debug_frame);
  const Addr cie = section.cie({.version = 4});
  section.fde(cie, 0x1000, 16, section.bytes().u8(0x01).u64(0x1004).u8(0x0e).u8(16));
  Space space;
  space.modules.module.load_bias = k_base;
  const auto row = [&](Addr pc) { return space.row(debug_frame_source(), CodeAddress::interrupted(pc)); };
  EXPECT_EQ(row(k_base + 0x1000), "none");
  space.modules.file_sections.debug_frame = section.section();
  EXPECT_EQ(row(k_base + 0xfff), "none");
  EXPECT_EQ(row(k_base + 0x1000), "debug_frame cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row(k_base + 0x1003), "debug_frame cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row(k_base + 0x1004), "debug_frame cfa=rsp+16 ra=[cfa-8]") << "DW_CFA_set_loc is moved, too";
  EXPECT_EQ(row(k_base + 0x1010), "none");
  EXPECT_EQ(row(0x1000), "none");
  Lookup lookup(space.space, CodeAddress::interrupted(k_base + 0x1000), space.window);
  ProcedureInfo info;
  ASSERT_TRUE(debug_frame_source().find_procedure(lookup, info).value());
  EXPECT_EQ(info.range, (AddrRange{k_base + 0x1000, k_base + 0x1010}));
  EXPECT_EQ(info.origin, RowOrigin::debug_frame);
}

/// Some addresses of every executable page of every loaded object have the same FDE as in libgcc, or none as in libgcc.
TEST(FrameSectionSources, LibgccFindsTheSameFdes) {
  struct Walk {
    LocalMemory memory;
    MemoryWindow window;
    AddressSpace space{*host_arch(), memory, local_modules(), {}, {}};
    FindFde find_fde = nullptr;
    std::size_t found = 0, none = 0, objects = 0;

    void compare(Addr pc) {
      Lookup lookup(space, CodeAddress::interrupted(pc), window);
      ProcedureInfo info;
      const Found ours = eh_frame_source().find_procedure(lookup, info);
      ASSERT_TRUE(ours) << ours.error().what;
      dwarf_eh_bases bases{};
      const void* const theirs = find_fde(reinterpret_cast<void*>(pc), &bases);
      ASSERT_EQ(*ours, theirs != nullptr) << std::hex << pc;
      ++(*ours ? found : none);
      if (!*ours) return;
      EXPECT_EQ(info.unwind_info, reinterpret_cast<Addr>(theirs));
      EXPECT_EQ(info.range.begin, reinterpret_cast<Addr>(bases.func));
      FrameRow row;
      const Found has_row = eh_frame_source().find_row(lookup, row);
      EXPECT_TRUE(has_row && *has_row && row.range.contains(pc));
    }
  } walk;
  // The function is looked up by libgcc's handle, because another definition may precede it.
  void* const libgcc = ::dlopen("libgcc_s.so.1", RTLD_LAZY);
  ASSERT_NE(libgcc, nullptr);
  walk.find_fde = reinterpret_cast<FindFde>(::dlsym(libgcc, "_Unwind_Find_FDE"));
  ASSERT_NE(walk.find_fde, nullptr);
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        Walk& w = *static_cast<Walk*>(to);
        ++w.objects;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const Addr begin = info->dlpi_addr + segment.p_vaddr;
          for (Addr pc = begin; pc < begin + segment.p_memsz; pc += 97) w.compare(pc);
        }
        return 0;
      },
      &walk);
  std::printf("%zu objects, %zu addresses in FDEs, %zu in none\n", walk.objects, walk.found, walk.none);
  EXPECT_GT(walk.found, 10000u);
  EXPECT_GT(walk.none, 10u);
}

}  // namespace
}  // namespace jitunwind::test
