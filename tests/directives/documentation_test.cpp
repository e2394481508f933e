// docs/directives.md says of every CPU what its table says, and of every code what the library does.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "jitunwind/dyn_info/directives/directives.h"

namespace jitunwind::test {
namespace {

using Cells = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Rows of the tables under a heading, without their first cell, by it.
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

std::string named(const Arch& arch, RegNum reg) {
  const RegisterInfo& info = *arch.by_dwarf(reg);
  return std::string(info.name) + ", " + std::to_string(info.libunwind);
}

// covers: DY54
TEST(DirectivesPage, SaysOfEveryCpuWhatItsTableSays) {
  const auto table = table_of("Per CPU");
  ASSERT_EQ(table.at("SP").size(), all_arches().size());
  for (std::size_t i = 0; i < all_arches().size(); ++i) {
    const Arch& arch = *all_arches()[i];
    const auto cell = [&](const char* key) { return table.at(key)[i]; };
    SCOPED_TRACE(arch.name);
    EXPECT_EQ(cell("unit of `when` and `insn_count`"),
              std::to_string(arch.unit) + (arch.unit == 1 ? " byte" : " bytes"));
    EXPECT_EQ(cell("SP"), named(arch, arch.sp));
    EXPECT_EQ(cell("CFA at entry"), arch.entry_cfa == 0 ? "SP" : "SP + " + std::to_string(arch.entry_cfa));
    EXPECT_TRUE(cell("return address: register to save it as; where at entry").starts_with(named(arch, arch.ra) + ";"));
    EXPECT_EQ(cell("usual frame pointer; any general register may be it"), named(arch, arch.fp));
    EXPECT_EQ(cell("granularity of `ADD SP` (E_ADD_ALIGN)"), std::to_string(arch.sp_granularity));
    EXPECT_EQ(cell("red zone: slots that far below SP (E_SPILL_LOW)"), std::to_string(arch.red_zone));
    EXPECT_EQ(cell("caller's SP"), "CFA");
    EXPECT_EQ(arch.caller_sp_bias, 0);
    EXPECT_EQ(cell("`ADD` accepts").find("RA_SIGN_STATE") != std::string::npos, arch.sign_state != k_no_reg);
    for (const RegisterInfo& r : arch.registers)  // "libunwind's numbers are DWARF's on both"
      EXPECT_TRUE(r.libunwind < 0 || r.libunwind == r.dwarf) << r.name;
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
