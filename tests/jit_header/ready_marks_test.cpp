// Frames whose marks leave nothing to judge are registered without a builder. The result is the same as by a builder,
// which gets each frame with one more mark that it alone knows and that adds no directive.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#define JITUNWIND_JIT_OFF
#include "jitunwind/adapters/jit_header/include/jitunwind_jit.h"

extern "C" const ju_jit_table* ju_jit_functions(unsigned version);

namespace {

alignas(64) std::array<unsigned char, 256> code_bytes;

/// The result of an announcement: the refusal, or all that the descriptor leads to.
std::string announced(std::vector<ju_jit_mark> marks, std::size_t size, const char* name) {
  const ju_jit_table& table = *ju_jit_functions(1);
  ju_jit_frame frame = {marks.data(), marks.size(), 0, &code_bytes, nullptr};
  ju_jit_code code = JU_JIT_CODE(code_bytes.data(), size, name, &frame);
  code.lsda = size % 2 == 0 ? &frame : nullptr;
  code.user = &code;
  ju_jit_error error{};
  error.struct_size = sizeof error;
  ju_jit_known* known = nullptr;
  if (const int result = table.announce(&code, &known, &error); result != JU_JIT_OK)
    return std::to_string(result) + " " + error.place + " " + std::to_string(error.at) + ": " + error.text;
  const auto& info = *reinterpret_cast<const unw_dyn_info_t*>(known);
  std::string all = reinterpret_cast<const char*>(info.u.pi.name_ptr);
  all += " " + std::to_string(info.end_ip - info.start_ip) + (info.u.pi.handler != 0 ? " personality" : "");
  for (const unw_dyn_region_info_t* region = info.u.pi.regions; region; region = region->next) {
    all += "\nregion of " + std::to_string(region->insn_count);
    for (std::uint32_t i = 0; i < region->op_count; ++i) {
      const unw_dyn_op_t& op = region->op[i];
      all += "\n" + std::to_string(op.when) + ":";
      for (const std::int64_t part :
           {std::int64_t{op.tag}, std::int64_t{op.qp}, std::int64_t{op.reg}, static_cast<std::int64_t>(op.val)})
        all += " " + std::to_string(part);
    }
  }
  EXPECT_EQ(table.take_back(known, nullptr), JU_JIT_OK);
  return all;
}

class ReadyMarks : public testing::Test {
 protected:
  /// Marks of a frame, which are mostly right.
  std::vector<ju_jit_mark> draw() {
    std::vector<ju_jit_mark> marks;
    const std::size_t count = pick(24), from_end = pick(24);
    std::int32_t end = 0;
    for (std::size_t entry = one_of(4) ? pick(4) : 0; entry-- > 0;) {  // the frame of other code, mostly
      const std::uint16_t does = one_of(20) ? k_usual[pick(k_usual.size())] : k_entry[pick(k_entry.size())];
      marks.push_back({does, static_cast<std::uint16_t>(pick(16)), 0, 0, k_values[pick(k_values.size())]});
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i == from_end) end = -40;
      end += static_cast<std::int32_t>(pick(4));
      if (i < from_end && end == 0) end = 1;
      if (one_of(150)) end = static_cast<std::int32_t>(pick(120)) - 60;
      if (one_of(500)) end = one_of(2) ? INT32_MIN : INT32_MAX;
      ju_jit_mark mark = {};
      mark.does = static_cast<std::uint16_t>(one_of(150) ? pick(JU_JIT_DOES_COUNT + 1) : k_usual[pick(k_usual.size())]);
      mark.reg = static_cast<std::uint16_t>(one_of(200) ? random_() : pick(16));
      mark.other = static_cast<std::uint16_t>(pick(16));
      mark.end = end;
      mark.value = k_values[pick(k_values.size())];
      marks.push_back(mark);
    }
    return marks;
  }
  std::size_t pick(std::size_t below) { return random_() % below; }
  bool one_of(std::size_t so_many) { return pick(so_many) == 0; }

 private:
  static constexpr std::array<std::uint16_t, 3> k_entry{JU_JIT_ADD_TO_SP, JU_JIT_SPILL_SP_REL,
                                                        JU_JIT_ENDS_WITHOUT_RETURN};
  static constexpr std::array<std::uint16_t, 15> k_usual{
      JU_JIT_PUSH,       JU_JIT_POP,          JU_JIT_ALLOCATE,   JU_JIT_DEALLOCATE, JU_JIT_SET_FRAME_POINTER,
      JU_JIT_RESTORE_SP, JU_JIT_LEAVE,        JU_JIT_RELOAD,     JU_JIT_RESTORE,    JU_JIT_REMEMBER,
      JU_JIT_REMEMBER,   JU_JIT_SPILL_SP_REL, JU_JIT_SAVE_AT_SP, JU_JIT_SAVE_AT_FP, JU_JIT_ADD_TO_SP};
  static constexpr std::array<std::int64_t, 6> k_values{0, 8, 16, -8, 32, INT64_MIN};
  std::mt19937 random_{7};
};

TEST_F(ReadyMarks, AreRegisteredAsByABuilder) {
  int same = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<ju_jit_mark> marks = draw();
    const std::size_t size = one_of(200) ? 0 : 100 + pick(100);
    const std::string ready = announced(marks, size, "f");
    marks.push_back({JU_JIT_ENDS_WITHOUT_RETURN, 0, 0, 0, 0});
    const std::string by_builder = announced(marks, size, "f");
    ASSERT_EQ(ready, by_builder) << i << ", of " << marks.size() - 1 << " marks";
    same += ready.find("region") != std::string::npos;
  }
  EXPECT_GT(same, 6'000);
}

/// More marks than are read at once.
TEST_F(ReadyMarks, MayBeMany) {
  std::vector<ju_jit_mark> marks;
  for (std::int32_t i = 1; i <= 80; ++i) {
    marks.push_back({JU_JIT_PUSH, 3, 0, i, 0});
    const std::string ready = announced(marks, 199, "f");
    std::vector<ju_jit_mark> more = marks;
    more.push_back({JU_JIT_ENDS_WITHOUT_RETURN, 0, 0, 0, 0});
    EXPECT_EQ(ready, announced(more, 199, "f")) << i;
    EXPECT_EQ(std::ranges::count(ready, '\n'), 1 + 2 * i) << ready;
  }
}

TEST(MarksOfX86, HaveRegistersByTheirNumbersInInstructions) {
  constexpr std::array<int, 16> dwarf{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
  for (int reg = 0; reg < 16; ++reg) {
    const ju_jit_mark mark = ju_jit_x86_64(JU_JIT_SAVE_AT_FP, reg, -3, -(1LL << 40));
    EXPECT_EQ(mark.does, JU_JIT_SAVE_AT_FP);
    EXPECT_EQ(mark.reg, dwarf.at(static_cast<std::size_t>(reg)));
    EXPECT_EQ(mark.other, 0);
    EXPECT_EQ(mark.end, -3);
    EXPECT_EQ(mark.value, -(1LL << 40));
  }
}

}  // namespace
