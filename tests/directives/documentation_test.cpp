// docs/directives.md agrees with the table of every CPU, and with the library about every code.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "jitunwind/dyn_info/directives/directives.h"
#include "tests/directives/cpu_page.h"
#include "tests/rows/row_case.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

using Cells = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Returns the rows of the tables under a heading by their first cell, without it.
std::map<std::string, Cells> table_of(const std::string& heading) {
  std::ifstream file(JITUNWIND_SOURCE_DIR "/docs/directives.md");
  std::map<std::string, Cells> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## " + heading;
    if (!inside || !line.starts_with("| ")) continue;
    std::istringstream stream(line.substr(1));
    Cells cells;
    for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(trimmed(cell));
    const std::string key = cells.front();
    cells.erase(cells.begin());
    rows[key] = cells;
  }
  return rows;
}

// covers: DY54
TEST(DirectivesPage, SaysOfEveryCpuWhatItsTableSays) {
  const auto table = table_of("Per CPU");
  for (const Arch* arch : all_arches()) {
    const std::string name = arch->name;
    const std::string link = "[" + name + "](targets/" + name + ".md)";
    SCOPED_TRACE(name);
    ASSERT_TRUE(table.contains(link));
    const Cells expected{unit_cell(*arch),
                         named_cell(*arch, arch->sp),
                         entry_cell(*arch),
                         return_address_cell(*arch),
                         caller_sp_cell(*arch),
                         std::to_string(arch->sp_granularity),
                         std::to_string(arch->red_zone)};
    EXPECT_EQ(table.at(link), expected);
  }
  EXPECT_EQ(table.size(), all_arches().size() + 1) << "and the heading";
}

/// `write_cpu_pages` makes them anew.
// covers: DY54
TEST(CpuPages, AreMadeFromTheTables) {
  const auto expect_same = [](const Arch& arch, const char* identifier) {
    EXPECT_EQ(test::text_of_file(cpu_page_path(arch)), cpu_page(arch, identifier)) << arch.name;
  };
#define JITUNWIND_ARCH(identifier) expect_same(arch::identifier, #identifier);
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
}

bool has_finding(const Arch& arch, const unw_dyn_op_t& op, ErrorCode wanted) {
  constexpr Addr k_code = 0x40000;
  const rows::CaseProcedure procedure({{4, {op}, 0, -1}}, {k_code, k_code + 4u * arch.unit});
  for (const Finding& finding : validate(procedure.info(), arch))
    if (finding.code == wanted) return true;
  return false;
}

/// The limits in the pages are those that the check of descriptions reports.
// covers: DY54
TEST(CpuPages, SayWhatTheCheckSays) {
  for (const Arch* arch : all_arches()) {
    SCOPED_TRACE(arch->name);
    const int sp = arch->by_dwarf(arch->sp)->libunwind;
    const int fp = arch->by_dwarf(arch->fp)->libunwind;
    const auto add = [&](int reg, std::int64_t value) { return _U_dyn_op(UNW_DYN_ADD, 0, 0, reg, value); };
    const auto spill = [&](int reg, std::int64_t at) { return _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 0, reg, at); };
    EXPECT_FALSE(has_finding(*arch, add(sp, -arch->sp_granularity), ErrorCode::e_add_align));
    EXPECT_TRUE(has_finding(*arch, add(sp, -arch->sp_granularity / 2), ErrorCode::e_add_align));
    EXPECT_TRUE(has_finding(*arch, add(fp, 16), ErrorCode::e_add_reg)) << "it is not the frame pointer yet";
    EXPECT_FALSE(has_finding(*arch, spill(fp, -arch->red_zone), ErrorCode::e_spill_low));
    EXPECT_TRUE(has_finding(*arch, spill(fp, -arch->red_zone - arch->word_size), ErrorCode::e_spill_low));
    for (const RegisterInfo& reg : arch->registers) {
      if (reg.libunwind < 0 || reg.dwarf == arch->sp) continue;
      EXPECT_EQ(has_finding(*arch, spill(reg.libunwind, 0), ErrorCode::e_reg), !can_be_saved(*arch, reg)) << reg.name;
    }
  }
}

TEST(DirectivesPage, HasEveryCode) {
  auto table = table_of("Validation");
  static const char* const errors[] = {"",          "UNSPEC",   "NOMEM", "BADREG",     "READONLYREG", "STOPUNWIND",
                                       "INVALIDIP", "BADFRAME", "INVAL", "BADVERSION", "NOINFO"};
  for (int i = 0; i < 256; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const std::string name = finding_name(code);
    if (!name.starts_with("E_") && !name.starts_with("W_")) continue;
    ASSERT_EQ(table.count(name), 1u) << name;
    const std::string& at_unwind_time = table.at(name).at(1);
    const std::size_t at = at_unwind_time.find("UNW_E");
    if (at != std::string::npos) {
      const std::string error = std::string("UNW_E") + errors[unw_error(code)];
      EXPECT_EQ(at_unwind_time.substr(at, error.size()), error) << name;
    }
    table.erase(name);
  }
  EXPECT_EQ(table.size(), 1u) << "the heading is left";
}

}  // namespace
}  // namespace jitunwind::test
