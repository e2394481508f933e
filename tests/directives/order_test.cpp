// Rows do not depend on the order of directives in a list. The library does not reorder a list, which is shared and
// read by others.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/rows/row_case.h"

namespace jitunwind::test {
namespace {

using rows::CaseRegion;
using rows::RowCase;

const RowCase& find_case(const rows::CaseFile& file, std::string_view name) {
  return *std::find_if(file.cases.begin(), file.cases.end(), [name](const RowCase& c) { return c.name == name; });
}

std::string all_rows(const std::vector<CaseRegion>& regions, const RowCase& c) {
  const rows::CaseProcedure procedure(regions, c.range);
  std::string text;
  for (Addr at = c.range.begin; at < c.range.end; at += c.arch->unit) {
    FrameRow row;
    const Status status = directive_row(procedure.info(), *c.arch, CodeAddress::interrupted(at), nullptr, row);
    text += rows::outcome_text(status, row, *c.arch) + "\n";
  }
  return text;
}

// covers: DY35
TEST(DirectiveOrder, TwentyFourOrdersOfOneInstruction) {
  const auto file = rows::load_cases("worked_examples.case");
  // stp x29,x30,[sp,#-32]! and mov x29,sp told as one instruction with a save more: four directives, one `when`.
  const RowCase& c = find_case(*file, "example3");
  std::vector<CaseRegion> regions = c.regions;
  regions[0].ops.insert(regions[0].ops.begin() + 3, _U_dyn_op(UNW_DYN_SAVE_REG, 0, 0, 20, 9));
  const std::string expected = all_rows(regions, c);
  ASSERT_NE(expected.find("cfa=sp+32 x20=x9 x29=[cfa-32] ra=[cfa-24]"), std::string::npos);
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  int orders = 0;
  do {
    std::vector<CaseRegion> reordered = regions;
    for (std::size_t i = 0; i < 4; ++i) reordered[0].ops[i] = regions[0].ops[order[i]];
    EXPECT_EQ(all_rows(reordered, c), expected);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 24);
}

/// The steps of one instruction that depend on each other: SP reloaded, moved, frame pointer set and moved, saves.
TEST(DirectiveOrder, EveryOrderOfDependentSteps) {
  const Arch& arch = arch::x86_64;
  const char* const setup[] = {"ADD rsp,-8 @0", "SPILL_SP_REL rbp,0 @0", "SAVE_REG rsp,rbp @1", "ADD rsp,-64 @2"};
  const char* const group[] = {"SAVE_REG rbp,rsp @3", "ADD rsp,-24 @3",          "SAVE_REG rsp,rcx @3",
                               "ADD rcx,16 @3",       "SPILL_FP_REL rbx,-24 @3", "SPILL_SP_REL r12,8 @3"};
  CaseRegion region{8, {}, 0, -1};
  for (const char* text : setup) region.ops.push_back(rows::parse_directive(text, arch));
  std::array<std::size_t, 6> order{0, 1, 2, 3, 4, 5};
  RowCase c;
  c.arch = &arch;
  c.range = {0x1000, 0x1008};
  do {
    std::vector<CaseRegion> regions{region};
    for (const std::size_t i : order) regions[0].ops.push_back(rows::parse_directive(group[i], arch));
    ASSERT_NE(all_rows(regions, c).find("cfa=rcx+24 rbx=[cfa-48] rbp=[cfa-16] r12=[cfa-32] ra=[cfa-8]"),
              std::string::npos)
        << all_rows(regions, c);
  } while (std::next_permutation(order.begin(), order.end()));
}

/// Region lists in memory that cannot be written.
class ConstRegions {
 public:
  explicit ConstRegions(const std::vector<CaseRegion>& regions) {
    memory_ =
        static_cast<std::byte*>(mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::byte* at = memory_;
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const std::size_t size = _U_dyn_region_info_size(regions[i].ops.size());
      auto* const region = reinterpret_cast<unw_dyn_region_info_t*>(at);
      at += size;
      region->next = i + 1 < regions.size() ? reinterpret_cast<unw_dyn_region_info_t*>(at) : nullptr;
      region->insn_count = regions[i].insn_count;
      region->op_count = static_cast<std::uint32_t>(regions[i].ops.size());
      std::memcpy(region->op, regions[i].ops.data(), regions[i].ops.size() * sizeof(unw_dyn_op_t));
    }
    mprotect(memory_, k_size, PROT_READ);
  }
  ~ConstRegions() { munmap(memory_, k_size); }
  unw_dyn_region_info_t* first() const { return reinterpret_cast<unw_dyn_region_info_t*>(memory_); }

 private:
  static constexpr std::size_t k_size = 1 << 16;
  std::byte* memory_;
};

void expect_any_order(const RowCase& c, int shuffles) {
  const std::string expected = all_rows(c.regions, c);
  std::mt19937 random(5);
  for (int i = 0; i < shuffles; ++i) {
    std::vector<CaseRegion> regions = c.regions;
    for (CaseRegion& region : regions) {
      if (!region.ops.empty() && region.ops.back().tag == UNW_DYN_STOP) region.ops.pop_back();
      std::shuffle(region.ops.begin(), region.ops.end(), random);
    }
    EXPECT_EQ(all_rows(regions, c), expected) << c.name;

    const ConstRegions memory(regions);
    unw_dyn_info_t info{};
    info.start_ip = c.range.begin;
    info.end_ip = c.range.end;
    info.u.pi.regions = memory.first();
    std::string text;
    for (Addr at = c.range.begin; at < c.range.end; at += c.arch->unit) {
      FrameRow row;
      const Status status = directive_row(info, *c.arch, CodeAddress::interrupted(at), nullptr, row);
      text += rows::outcome_text(status, row, *c.arch) + "\n";
    }
    EXPECT_EQ(text, expected) << c.name;
    for (const Finding& f : validate(info, *c.arch)) EXPECT_TRUE(is_warning(f.code)) << f.text();
  }
}

// covers: DY36
TEST(DirectiveOrder, AHundredOrdersInConstMemory) {
  const auto file = rows::load_cases("worked_examples.case");
  for (const char* name :
       {"example1_one_region", "example1_three_regions", "example2_add", "example3", "example4_body_11"})
    expect_any_order(find_case(*file, name), 100);
}

/// More directives than are sorted by index.
TEST(DirectiveOrder, LongListsInAnyOrder) {
  RowCase c;
  c.name = "long";
  c.arch = &arch::x86_64;
  c.range = {0x1000, 0x1000 + 400};
  CaseRegion region{400, {}, 0, -1};
  for (int i = 0; i < 150; ++i) {
    region.ops.push_back(_U_dyn_op(UNW_DYN_ADD, 0, 2 * i, 7, -8));
    region.ops.push_back(_U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 2 * i, i % 2 == 0 ? 3 : 12, 0));
    if (i % 40 == 30) region.ops.push_back(_U_dyn_op(UNW_DYN_LABEL_STATE, 0, 2 * i, 0, i));
    if (i % 40 == 35) region.ops.push_back(_U_dyn_op(UNW_DYN_COPY_STATE, 0, 2 * i + 1, 0, i - 5));
  }
  c.regions = {region};
  expect_any_order(c, 20);
}

}  // namespace
}  // namespace jitunwind::test
