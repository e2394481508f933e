// Registered procedures as sources of rows, procedures and names: directives, tables, ALIAS between them and into
// static code, and rows that outlive their procedure.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "tests/rows/row_case.h"
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {
namespace {

using rows::CaseProcedure;
using rows::CaseRegion;
using rows::k_code;

const Arch& k_arch = arch::x86_64;

struct Registered {
  explicit Registered(unw_dyn_info_t& i) : info(i) { EXPECT_TRUE(register_procedure(&info)); }
  ~Registered() { EXPECT_TRUE(cancel_procedure(&info)); }
  unw_dyn_info_t& info;
};

class DynSources : public testing::Test {
 protected:
  Found find_row(Addr at, FrameRow& row, const AddressSpace* in = nullptr) {
    MemoryWindow window;
    Lookup lookup(in ? *in : space, CodeAddress::interrupted(at), window);
    return dyn_row_source().find_row(lookup, row);
  }
  std::string row_text(Addr at, const AddressSpace* in = nullptr) {
    FrameRow row;
    const Found found = find_row(at, row, in);
    if (!found) return "error " + finding_name(found.error().code);
    return *found ? to_text(row, k_arch) : "no row";
  }
  std::string procedure_text(Addr at, ProcedureInfo& info) {
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(at), window);
    const Found found = dyn_row_source().find_procedure(lookup, info);
    return !found ? "error " + finding_name(found.error().code) : *found ? "found" : "none";
  }
  std::string name_of(Addr at, ProcedureName& name, std::size_t room = 256) {
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(at), window);
    std::vector<char> into(room, '?');
    const Found found = dyn_name_source().find_name(lookup, into, name);
    return !found ? "error " + finding_name(found.error().code) : *found ? into.data() : "no name";
  }

  LocalMemory memory;
  NoModules modules;
  const RowSource* sources[1] = {&dyn_row_source()};
  const NameSource* names[1] = {&dyn_name_source()};
  AddressSpace space{k_arch, memory, modules, sources, names};
};

unw_dyn_info_t procedure_at(Addr begin, Addr end, unw_dyn_region_info_t* regions = nullptr) {
  unw_dyn_info_t info{};
  info.start_ip = begin;
  info.end_ip = end;
  info.format = UNW_INFO_FORMAT_DYNAMIC;
  info.u.pi.regions = regions;
  return info;
}

std::vector<unw_dyn_op_t> ops(std::initializer_list<const char*> texts) {
  std::vector<unw_dyn_op_t> made;
  for (const char* text : texts) made.push_back(rows::parse_directive(text, k_arch));
  return made;
}

// covers: DY05 DY08
TEST_F(DynSources, RangesAreHalfOpen) {
  unw_dyn_info_t info = procedure_at(k_code, k_code + 16);
  const Registered registered(info);
  EXPECT_EQ(row_text(k_code - 1), "no row");
  EXPECT_EQ(row_text(k_code), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row_text(k_code + 15), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row_text(k_code + 16), "no row");
  FrameRow row;
  MemoryWindow window;
  Lookup behind_a_call(space, CodeAddress::returned_to(k_code + 16), window);
  EXPECT_TRUE(*dyn_row_source().find_row(behind_a_call, row));
  EXPECT_EQ(row.origin, RowOrigin::dyn_directives);
  Lookup behind_a_call_before(space, CodeAddress::returned_to(k_code), window);
  EXPECT_FALSE(*dyn_row_source().find_row(behind_a_call_before, row));
}

// covers: DY06 DY17 DY18 PI09
TEST_F(DynSources, ProceduresSayWhatTheDescriptorSays) {
  unw_dyn_info_t info = procedure_at(k_code, k_code + 16);
  info.gp = 0x1234;
  info.u.pi.handler = 0x5678;
  info.u.pi.name_ptr = reinterpret_cast<std::uintptr_t>("vm::call(int)");
  const Registered registered(info);
  ProcedureInfo found;
  ASSERT_EQ(procedure_text(k_code + 3, found), "found");
  EXPECT_EQ(found.range, (AddrRange{k_code, k_code + 16}));
  EXPECT_EQ(found.gp, 0x1234u);
  EXPECT_EQ(found.handler, 0x5678u);
  EXPECT_EQ(found.lsda, 0u);
  EXPECT_EQ(found.flags, 0u);
  EXPECT_EQ(found.format, UNW_INFO_FORMAT_DYNAMIC);
  EXPECT_EQ(found.unwind_info, reinterpret_cast<std::uintptr_t>(&info));
  EXPECT_EQ(found.unwind_info_size, sizeof info);
  EXPECT_EQ(found.origin, RowOrigin::dyn_directives);
  EXPECT_EQ(procedure_text(k_code + 16, found), "none");
  ProcedureName name;
  EXPECT_EQ(name_of(k_code + 15, name), "vm::call(int)");
  EXPECT_EQ(name.start, k_code);
  EXPECT_EQ(name.length, 13u);
  EXPECT_FALSE(name.truncated);
}

TEST_F(DynSources, NamesAreAnyBytesUpToNul) {
  unw_dyn_info_t info = procedure_at(k_code, k_code + 16);
  const Registered registered(info);
  ProcedureName name;
  EXPECT_EQ(name_of(k_code, name), "no name");
  const auto named = [&](const void* text, std::size_t room = 256) {
    info.u.pi.name_ptr = reinterpret_cast<std::uintptr_t>(text);
    return name_of(k_code, name, room);
  };
  EXPECT_EQ(named(""), "no name");
  EXPECT_EQ(named("\xff\x01\n\xc3"), "\xff\x01\n\xc3");
  const std::string longer(300, 'n');
  EXPECT_EQ(named(longer.c_str()), longer.substr(0, 255));
  EXPECT_TRUE(name.truncated);
  EXPECT_EQ(name.length, 300u);
  EXPECT_EQ(named("abc", 1), "");
  EXPECT_TRUE(name.truncated);
  EXPECT_EQ(named("abc", 4), "abc");
  EXPECT_FALSE(name.truncated);
  EXPECT_EQ(named("abcd", 4), "abc");
  EXPECT_TRUE(name.truncated);
  EXPECT_EQ(named(reinterpret_cast<const void*>(8)), "error UNREADABLE_MEMORY");

  // The name is at the end of readable memory, with and without a terminating NUL.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const pages =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + page, page, PROT_NONE);
  std::memcpy(pages + page - 4, "end", 4);
  EXPECT_EQ(named(pages + page - 4), "end");
  EXPECT_FALSE(name.truncated);
  std::memcpy(pages + page - 4, "cut!", 4);
  EXPECT_EQ(named(pages + page - 4), "cut!");
  EXPECT_TRUE(name.truncated);
  EXPECT_EQ(name.length, 4u);
  munmap(pages, 2 * page);
}

// covers: DY21
TEST_F(DynSources, LanguageSpecificDataBehindStop) {
  const std::vector<CaseRegion> shared{{16, ops({"ADD rsp,-8 @0", "ADD rsp,8 @e"}), 0, -1}};
  const auto with = [&](CaseRegion first) {
    std::vector<CaseRegion> regions = shared;
    regions.insert(regions.begin(), std::move(first));
    return regions;
  };
  const unw_dyn_op_t stop = _U_dyn_op(UNW_DYN_STOP, 0, 0, 0, 0);
  const unw_dyn_op_t lsda = _U_dyn_op(k_lsda_tag, 0, k_lsda_when, k_lsda_reg, 0x7654321);
  const unw_dyn_op_t base = _U_dyn_op(k_landing_pad_base_tag, 0, k_lsda_when, k_lsda_reg, 0x1000);
  unw_dyn_op_t unmarked = lsda;
  unmarked.reg = 0;
  struct Case {
    CaseRegion first;
    Addr lsda, landing_pad_base;
  };
  const Case cases[] = {
      {{0, {stop, lsda}, 0, -1}, 0x7654321, 0},
      {{0, {stop, lsda, base}, 0, -1}, 0x7654321, 0x1000},
      {{0, {stop, lsda, unmarked}, 0, -1}, 0x7654321, 0},
      {{0, {stop, unmarked}, 0, -1}, 0, 0},
      {{0, {stop, base}, 0, -1}, 0, 0},
      {{0, {stop}, 0, -1}, 0, 0},
      {{0, {stop, stop, lsda}, 0, -1}, 0, 0},
      {{0, {stop}, 2, -1}, 0, 0},
  };
  for (const Case& c : cases) {
    CaseProcedure procedure(with(c.first), {k_code, k_code + 16});
    unw_dyn_info_t info = procedure.info();
    const Registered registered(info);
    ProcedureInfo found;
    ASSERT_EQ(procedure_text(k_code, found), "found");
    EXPECT_EQ(found.lsda, c.lsda);
    EXPECT_EQ(lsda_extension(info).landing_pad_base, c.landing_pad_base);
    EXPECT_EQ(row_text(k_code + 1), "cfa=rsp+16 ra=[cfa-8]");
    EXPECT_TRUE(validate(info, k_arch).empty());
  }
  // The region is not the first one, or is not empty.
  std::vector<CaseRegion> later = with({0, {stop}, 0, -1});
  later.push_back({0, {stop, lsda}, 0, -1});
  EXPECT_EQ(lsda_extension(CaseProcedure(later, {k_code, k_code + 16}).info()).lsda, 0u);
  EXPECT_EQ(lsda_extension(CaseProcedure(with({1, {stop, lsda}, 0, -1}), {k_code, k_code + 16}).info()).lsda, 0u);
}

// covers: DY07
TEST_F(DynSources, UnknownFormatsAreRefused) {
  unw_dyn_info_t info = procedure_at(k_code, k_code + 16);
  for (const int format : {-1, 3, 6, 1000}) {
    info.format = format;
    const Registered registered(info);
    EXPECT_EQ(row_text(k_code), "error E_FORMAT");
    ProcedureInfo found;
    EXPECT_EQ(procedure_text(k_code, found), "error E_FORMAT");
    ASSERT_EQ(validate(info, k_arch).size(), 1u);
    EXPECT_EQ(validate(info, k_arch)[0].code, ErrorCode::e_format);
  }
  EXPECT_EQ(unw_error(ErrorCode::e_format), 8);  // UNW_EINVAL
}

TEST_F(DynSources, BadRangesAreFoundBeforehand) {
  for (const auto& [begin, end] : {std::pair(k_code, k_code), std::pair(k_code + 8, k_code)}) {
    const auto findings = validate(procedure_at(begin, end), k_arch);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].code, ErrorCode::e_range);
    EXPECT_EQ(findings[0].text(), "procedure: E_RANGE: empty or inverted address range");
  }
}

/// There is no match: the code is another CPU's, and its length is no number of instructions.
TEST_F(DynSources, PartsOfInstructionsMatchNothing) {
  unw_dyn_info_t info = procedure_at(k_code, k_code + 34);
  const Registered registered(info);
  const AddressSpace other{arch::aarch64, memory, modules, sources, names};
  EXPECT_EQ(row_text(k_code, &other), "no row");
}

// covers: DY12 DY27
TEST_F(DynSources, AThousandProceduresShareOneList) {
  const auto file = rows::load_cases("worked_examples.case");
  const rows::RowCase* shape = nullptr;
  for (const rows::RowCase& c : file->cases)
    if (c.name == "example4_body_11") shape = &c;
  ASSERT_NE(shape, nullptr);
  const CaseProcedure shared(*shape);
  std::vector<unw_dyn_info_t> infos;
  for (Addr i = 0; i < 1000; ++i) {
    const Addr begin = k_code + i * 0x1000;
    infos.push_back(procedure_at(begin, begin + 12 + i, shared.info().u.pi.regions));
  }
  for (unw_dyn_info_t& info : infos) ASSERT_TRUE(register_procedure(&info));
  const auto check = [&](const unw_dyn_info_t& info, bool registered) {
    const auto expected = [&](const char* text) { return registered ? std::string(text) : std::string("no row"); };
    EXPECT_EQ(row_text(info.start_ip + 1), expected("cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]"));
    EXPECT_EQ(row_text(info.start_ip + 7), expected("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] r12=[cfa-32] ra=[cfa-8]"));
    EXPECT_EQ(row_text(info.end_ip - 3), expected("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]"));
    EXPECT_EQ(row_text(info.end_ip - 1), expected("cfa=rsp+8 ra=[cfa-8]"));
  };
  for (const unw_dyn_info_t& info : infos) check(info, true);
  for (std::size_t i = 0; i < infos.size(); i += 2) ASSERT_TRUE(cancel_procedure(&infos[i]));
  for (std::size_t i = 0; i < infos.size(); ++i) check(infos[i], i % 2 == 1);
  for (std::size_t i = 1; i < infos.size(); i += 2) ASSERT_TRUE(cancel_procedure(&infos[i]));
}

/// FDEs at one address, described by a table anywhere.
struct Tables {
  explicit Tables(Addr code = k_code) {
    const Addr cie = section.cie({});
    // push rbx; ...: three procedures with a hole of 16 bytes before the third one
    for (const Addr begin : {code, code + 0x20, code + 0x50})
      fdes.push_back({begin, section.fde(cie, begin, 0x20, Bytes{0x41, 0x0e, 16, 0x83, 2})});
  }
  /// FDE addresses in the section's memory: it does not move any more.
  Addr fde(std::size_t i) const { return address(section) + fdes[i].second - section.section().address; }
  static Addr address(const CfiSection& s) { return reinterpret_cast<std::uintptr_t>(s.section().bytes.data()); }

  CfiSection section;
  std::vector<std::pair<Addr, Addr>> fdes;
};

template <class Int>
std::vector<Int> pairs(const Tables& tables, Addr start_base, Addr fde_base) {
  std::vector<Int> made;
  for (std::size_t i = 0; i < tables.fdes.size(); ++i) {
    made.push_back(static_cast<Int>(tables.fdes[i].first - start_base));
    made.push_back(static_cast<Int>(tables.fde(i) - fde_base));
  }
  return made;
}

unw_dyn_info_t table_at(int format, const void* data, std::size_t bytes, Addr segbase) {
  unw_dyn_info_t info{};
  info.start_ip = k_code;
  info.end_ip = k_code + 0x70;
  info.format = format;
  info.u.rti.segbase = segbase;
  info.u.rti.table_len = bytes / sizeof(unw_word_t);
  info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(data);
  return info;
}

// covers: DY42 DY43 DY45
TEST_F(DynSources, TablesOfEveryFormat) {
  // IP_OFFSET: members of 32 bits suffice even if code and FDEs are far apart.
  const Tables far;
  const Addr section = Tables::address(far.section);
  const auto by_ip = pairs<std::int32_t>(far, k_code, section);
  // 64 bits: any distance, beyond 2 GiB.
  const auto wide = pairs<std::int64_t>(far, section, section);
  ASSERT_GT(std::abs(wide[0]), std::int64_t{1} << 31);
  // 32 bits for both: code near the FDEs, in fact around them.
  const Tables near(section & ~Addr{0xff});
  const Addr near_code = section & ~Addr{0xff};
  const auto narrow = pairs<std::int32_t>(near, section, section);

  const auto check = [&](unw_dyn_info_t info) {
    const Registered registered(info);
    const Addr code = info.start_ip;
    EXPECT_EQ(row_text(code), "cfa=rsp+8 ra=[cfa-8]");
    EXPECT_EQ(row_text(code + 1), "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
    EXPECT_EQ(row_text(code + 0x20), "cfa=rsp+8 ra=[cfa-8]");
    EXPECT_EQ(row_text(code + 0x3f), "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
    EXPECT_EQ(row_text(code + 0x40), "no row");  // in the range, without FDE: others may know
    EXPECT_EQ(row_text(code + 0x4f), "no row");
    EXPECT_EQ(row_text(code + 0x6f), "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
    EXPECT_EQ(row_text(code + 0x70), "no row");
    FrameRow row;
    ASSERT_TRUE(find_row(code, row));
    EXPECT_EQ(row.origin, RowOrigin::dyn_table);
    ProcedureInfo found;
    ASSERT_EQ(procedure_text(code + 0x21, found), "found");
    EXPECT_EQ(found.range, (AddrRange{code + 0x20, code + 0x40}));
    EXPECT_EQ(found.format, info.format);
    EXPECT_EQ(found.origin, RowOrigin::dyn_table);
    EXPECT_EQ(procedure_text(code + 0x40, found), "none");
  };
  check(table_at(UNW_INFO_FORMAT_IP_OFFSET, by_ip.data(), sizeof(by_ip[0]) * by_ip.size(), section));
  check(table_at(UNW_INFO_FORMAT_REMOTE_TABLE_64, wide.data(), sizeof(wide[0]) * wide.size(), section));
  for (const int format : {UNW_INFO_FORMAT_TABLE, UNW_INFO_FORMAT_REMOTE_TABLE}) {
    unw_dyn_info_t info = table_at(format, narrow.data(), sizeof(narrow[0]) * narrow.size(), section);
    info.start_ip = near_code;
    info.end_ip = near_code + 0x70;
    ASSERT_EQ(near.fdes[0].second - near.section.section().address, far.fdes[0].second - far.section.section().address);
    check(info);
  }
}

TEST_F(DynSources, BrokenTablesAreErrors) {
  const Tables tables;
  const Addr section = Tables::address(tables.section);
  auto members = pairs<std::int32_t>(tables, k_code, section);
  const std::size_t bytes = sizeof(members[0]) * members.size();
  const auto text = [&](unw_dyn_info_t info) {
    const Registered registered(info);
    return row_text(k_code + 0x21);
  };
  EXPECT_EQ(text(table_at(UNW_INFO_FORMAT_IP_OFFSET, members.data(), 0, section)), "no row");
  EXPECT_EQ(text(table_at(UNW_INFO_FORMAT_IP_OFFSET, members.data(), bytes, section + 1)).substr(0, 6), "error ");
  members[3] = 0;  // leads to the CIE
  EXPECT_EQ(text(table_at(UNW_INFO_FORMAT_IP_OFFSET, members.data(), bytes, section)), "error BAD_STRUCTURE");
}

/// docs/contracts.md: the library does not check whether registered memory can be read.
TEST_F(DynSources, TablesThatAreNotThereFault) {
  const Tables tables;
  const Addr section = Tables::address(tables.section);
  const auto members = pairs<std::int32_t>(tables, k_code, section);
  const std::size_t bytes = sizeof(members[0]) * members.size();
  const auto ask = [&](unw_dyn_info_t info) {
    const Registered registered(info);
    (void)row_text(k_code + 0x21);
  };
  unw_dyn_info_t endless = table_at(UNW_INFO_FORMAT_IP_OFFSET, members.data(), bytes, section);
  endless.u.rti.table_len = ~unw_word_t{0};
  EXPECT_DEATH(ask(endless), "");
  EXPECT_DEATH(ask(table_at(UNW_INFO_FORMAT_IP_OFFSET, reinterpret_cast<const void*>(8), bytes, section)), "");
}

/// The name of a table is that of all its procedures, and offsets count from the table's first address.
// covers: DY58
TEST_F(DynSources, TablesNameTheirProceduresAsOneGroup) {
  const Tables tables;
  const Addr section = Tables::address(tables.section);
  const auto members = pairs<std::int32_t>(tables, k_code, section);
  unw_dyn_info_t info =
      table_at(UNW_INFO_FORMAT_IP_OFFSET, members.data(), sizeof(members[0]) * members.size(), section);
  const Registered registered(info);
  ProcedureName name;
  EXPECT_EQ(name_of(k_code + 0x21, name), "no name");
  info.u.rti.name_ptr = reinterpret_cast<std::uintptr_t>("three stubs");
  for (const auto& [begin, fde] : tables.fdes) {
    EXPECT_EQ(name_of(begin + 1, name), "three stubs");
    EXPECT_EQ(name.start, k_code);
    ProcedureInfo found;
    ASSERT_EQ(procedure_text(begin + 1, found), "found");
    EXPECT_EQ(found.range.begin, begin);
  }
  // The name also covers gaps in which the group has no procedure, but nothing behind its end.
  EXPECT_EQ(name_of(k_code + 0x41, name), "three stubs");
  EXPECT_EQ(name_of(k_code + 0x70, name), "no name");
}

/// An interpreter's frame: the CFA is a value stored in the frame. The row stays right when the table is gone.
TEST_F(DynSources, RowsOutliveTheirTable) {
  auto section = std::make_unique<CfiSection>();
  // cfa = *(rbp-16); rbx = [rbp-24]; r12 = rbp+16; each with a DW_OP_nop, which no shorter rule says
  const Bytes program = Bytes{0x0f}
                            .block(Bytes{0x76, 0x70, 0x06, 0x96})
                            .u8(0x10)
                            .uleb(3)
                            .block(Bytes{0x76, 0x68, 0x96})
                            .u8(0x16)
                            .uleb(12)
                            .block(Bytes{0x76, 0x10, 0x96});
  const Addr cie = section->cie({});
  const Addr fde = section->fde(cie, k_code, 0x20, program);
  const Addr base = Tables::address(*section);
  std::vector<std::int32_t> members{0, static_cast<std::int32_t>(fde - section->section().address)};
  const char* const text = "cfa=expr(76700696) rbx=[expr(766896)] r12=expr(761096) ra=[cfa-8]";
  FrameRow row;
  {
    unw_dyn_info_t info = table_at(UNW_INFO_FORMAT_IP_OFFSET, members.data(), 8, base);
    const Registered registered(info);
    ASSERT_TRUE(*find_row(k_code + 1, row));
    EXPECT_EQ(to_text(row, k_arch), text);
  }
  auto& bytes = section->data().vector();
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  section.reset();
  EXPECT_EQ(to_text(row, k_arch), text);
}

TEST_F(DynSources, AliasesLeadFromProcedureToProcedure) {
  const CaseProcedure target({{16, ops({"ADD rsp,-8 @0", "SPILL_SP_REL rbx,0 @0"}), 0, -1}}, {k_code, k_code + 16});
  unw_dyn_info_t target_info = target.info();
  const Registered registered(target_info);
  std::vector<std::unique_ptr<CaseProcedure>> procedures;
  std::vector<std::unique_ptr<unw_dyn_info_t>> infos;
  std::vector<std::unique_ptr<Registered>> chain;
  for (Addr i = 1; i <= 9; ++i) {
    const Addr begin = k_code + 0x100 * i;
    const std::string alias = "ALIAS " + std::to_string(begin - 0x100);
    // Every procedure but the first also says where r12 is; the last one's directive counts.
    const std::string save = "SAVE_REG r12,r" + std::to_string(i) + " @0";
    procedures.push_back(std::make_unique<CaseProcedure>(
        std::vector<CaseRegion>{{0, ops({alias.c_str()}), 0, -1}, {16, ops({save.c_str()}), 0, -1}},
        AddrRange{begin, begin + 16}));
    infos.push_back(std::make_unique<unw_dyn_info_t>(procedures.back()->info()));
    chain.push_back(std::make_unique<Registered>(*infos.back()));
  }
  EXPECT_EQ(row_text(k_code + 0x100), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row_text(k_code + 0x101), "cfa=rsp+8 r12=rdx ra=[cfa-8]");
  EXPECT_EQ(row_text(k_code + 0x801), "cfa=rsp+8 r12=r8 ra=[cfa-8]");
  EXPECT_EQ(row_text(k_code + 0x901), "error E_ALIAS_DEPTH");  // the ninth one
}

int described_statically(int n) { return n + 1; }

// covers: DY09 DY10
TEST_F(DynSources, AliasesAndOverridesOfStaticCode) {
  const Addr code = reinterpret_cast<std::uintptr_t>(&described_statically);
  const AddressSpace& local = local_space();
  const auto local_text = [&](Addr at) {
    MemoryWindow window;
    Lookup lookup(local, CodeAddress::interrupted(at), window);
    FrameRow row;
    const Found found = local.find_row(lookup, row);
    return found && *found ? std::string(origin_name(row.origin)) + " " + to_text(row, k_arch) : "nothing";
  };
  ASSERT_EQ(local_text(code), "eh_frame cfa=rsp+8 ra=[cfa-8]");
  {
    const CaseProcedure clone({{16, ops({("ALIAS " + std::to_string(code)).c_str()}), 0, -1}}, {k_code, k_code + 16});
    unw_dyn_info_t info = clone.info();
    const Registered registered(info);
    EXPECT_EQ(local_text(k_code), "dyn_directives cfa=rsp+8 ra=[cfa-8]");
    // A space that knows no static code has no row to continue with.
    EXPECT_EQ(row_text(k_code), "error NO_INFO");
  }
  const CaseProcedure older({{0, ops({"ADD rsp,-8"}), 0, -1}}, {code, code + 1});
  const CaseProcedure newer({{0, ops({"ADD rsp,-24"}), 0, -1}}, {code, code + 1});
  unw_dyn_info_t older_info = older.info(), newer_info = newer.info();
  const Registered registered(older_info);
  EXPECT_EQ(local_text(code), "dyn_directives cfa=rsp+16 ra=[cfa-8]");
  {
    const Registered above(newer_info);
    EXPECT_EQ(local_text(code), "dyn_directives cfa=rsp+32 ra=[cfa-8]");
  }
  EXPECT_EQ(local_text(code), "dyn_directives cfa=rsp+16 ra=[cfa-8]");
}

/// An alias of code that only a guess could describe is an error, not a guess.
TEST_F(DynSources, AliasesOfUnknownCode) {
  const CaseProcedure clone({{16, ops({"ALIAS 4096"}), 0, -1}}, {k_code, k_code + 16});
  unw_dyn_info_t info = clone.info();
  const Registered registered(info);
  EXPECT_EQ(row_text(k_code, &local_space()), "error NO_INFO");
}

}  // namespace
}  // namespace jitunwind::test
