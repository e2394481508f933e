// The work of registering, looking up and cancelling, in instructions of the processor: about as much beside a hundred
// thousand procedures as beside ten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/registry/every_instruction.h"
#include "tests/registry/procedures.h"

namespace {

using namespace jitunwind;
using namespace registry_test;

constexpr std::uint64_t k_work_code = 0x30000000, k_apart = 64;

struct Work {
  std::size_t add, find, find_none, take_out;
};

/// Returns the median, because now and then a page must be prepared.
std::size_t median(std::vector<std::size_t>& counts) {
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  return *middle;
}

/// Measures the work on procedures anywhere between `others` registered ones.
Work work_beside(std::size_t others) {
  std::vector<unw_dyn_info_t> pool;
  for (std::size_t i = 0; i < others; ++i) pool.push_back(procedure(k_work_code + k_apart * i, k_apart / 2));
  for (auto& info : pool) EXPECT_TRUE(register_procedure(&info));
  std::mt19937_64 random(5);
  EveryInstruction counted;
  const auto count = [&](auto&& code) { return counted.run([](void*) {}, nullptr, code); };
  std::vector<std::size_t> add, find, find_none, take_out;
  for (int i = 0; i < 31; ++i) {
    const std::uint64_t place = k_work_code + k_apart * (random() % others) + k_apart / 2;
    unw_dyn_info_t info = procedure(place, k_apart / 4);
    bool added = false, gone = false;
    const unw_dyn_info_t *found = nullptr, *none = &info;
    add.push_back(count([&] { added = register_procedure(&info).has_value(); }));
    find.push_back(count([&] { found = lookup(place + 3); }));
    find_none.push_back(count([&] { none = lookup(place + k_apart / 4 + 3); }));
    take_out.push_back(count([&] { gone = cancel_procedure(&info).has_value(); }));
    EXPECT_TRUE(added && gone);
    EXPECT_EQ(found, &info);
    EXPECT_EQ(none, nullptr);
  }
  for (auto& info : pool) EXPECT_TRUE(cancel_procedure(&info));
  const Work work{median(add), median(find), median(find_none), median(take_out)};
  std::printf("beside %6zu: register %zu, look up %zu, in vain %zu, cancel %zu instructions\n", others, work.add,
              work.find, work.find_none, work.take_out);
  return work;
}

// covers: DY01 DY02 DY13
TEST(RegistryWork, IsAsMuchBesideManyProcedures) {
  const Work few = work_beside(10), many = work_beside(100'000);
  EXPECT_LE(2 * many.add, 3 * few.add);
  EXPECT_LE(2 * many.take_out, 3 * few.take_out);
  EXPECT_LE(2 * many.find, 3 * few.find);
  EXPECT_LE(2 * many.find_none, 3 * few.find_none);
}

}  // namespace
