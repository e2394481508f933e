// Unwinders that do not ask, and what their __register_frame makes of what it is given. Three are made up, so that each
// contract is there whatever libgcc is; tests/exceptions/links throws through the real ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <ostream>
#include <random>
#include <vector>

#include "jitunwind/adapters/system_unwinder/frames/frame_section_p.h"
#include "jitunwind/adapters/system_unwinder/frames/frame_tables_p.h"
#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"

extern "C" jitunwind::FindFde _Unwind_Find_FDE;

namespace jitunwind::test {
namespace {

std::uint32_t word_at(const std::byte* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Returns the code of an FDE with absolute addresses of 8 bytes.
AddrRange code_of(const std::byte* fde) {
  std::uint64_t words[2];
  std::memcpy(words, fde + 8, sizeof words);
  return {words[0], words[0] + words[1]};
}

/// Tables of an unwinder with one of the contracts; with `none` it has none, and asks
/// _Unwind_Find_FDE as libgcc_s does.
struct FakeUnwinder {
  void add(const std::byte* begin) {
    if (contract != FrameContract::unique_section) {
      sections[begin] = ranges_in(begin);
    } else if (first_addresses.emplace(ranges_in(begin).front().begin, begin).second) {
      sections[begin] = ranges_in(begin);
    } else {
      ++ignored;
    }
  }
  /// libgcc 13 finds the section to remove by the first address of its code, and aborts if there is none.
  void remove(const std::byte* begin) {
    const std::byte* gone = begin;
    if (contract == FrameContract::unique_section) {
      const auto found = first_addresses.find(ranges_in(begin).front().begin);
      ASSERT_NE(found, first_addresses.end());
      gone = found->second;
      first_addresses.erase(found);
    }
    EXPECT_EQ(sections.erase(gone), 1u);
  }
  bool knows(Addr pc) const {
    return std::ranges::any_of(sections, [&](const auto& section) {
      return std::ranges::any_of(section.second, [&](AddrRange code) { return code.contains(pc); });
    });
  }

  FrameContract contract = FrameContract::none;
  std::map<const std::byte*, std::vector<AddrRange>> sections{};
  std::map<Addr, const std::byte*> first_addresses{};
  int ignored = 0;

 private:
  /// Skips CIEs. LLVM's function gets one FDE.
  std::vector<AddrRange> ranges_in(const std::byte* entry) const {
    std::vector<AddrRange> ranges;
    for (; word_at(entry) != 0; entry += 4 + word_at(entry)) {
      if (word_at(entry + 4) != 0) ranges.push_back(code_of(entry));
      if (contract == FrameContract::fde) break;
    }
    return ranges;
  }
};

FakeUnwinder unwinder;

}  // namespace
}  // namespace jitunwind::test

using jitunwind::test::unwinder;

extern "C" {
void __register_frame(const void* begin) { unwinder.add(static_cast<const std::byte*>(begin)); }
void __deregister_frame(const void* begin) { unwinder.remove(static_cast<const std::byte*>(begin)); }
void __register_frame_info(const void* begin, void*) { __register_frame(begin); }
void* __deregister_frame_info(const void* begin) { return __deregister_frame(begin), nullptr; }
void* _Unwind_FindEnclosingFunction(void* pc) {
  jitunwind::EhBases bases;
  const auto at = static_cast<std::byte*>(pc) - 1;
  // The question arrives at the library whatever the contract is; the library itself reports nothing.
  const bool is_registered = _Unwind_Find_FDE(at, &bases) != nullptr;
  if (unwinder.contract == jitunwind::FrameContract::none) return is_registered ? bases.function : nullptr;
  return unwinder.knows(jitunwind::address_of(at)) ? pc : nullptr;
}
}

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x7a00'0000'0000;
constexpr Addr k_size = 64;
constexpr unsigned k_places = 4096;  // several pieces

Registration register_at(unsigned place) {
  static const Description description =
      x86_64::describe("jit").push({0, 1}, x86_64::rbp).pop({8, 9}, x86_64::rbp).size(k_size).build().value();
  return register_code(description, {.start = k_code + place * k_size, .size = k_size}).value();
}

bool is_known(unsigned place, Addr offset) {
  return _Unwind_FindEnclosingFunction(pointer_to(k_code + place * k_size + offset)) != nullptr;
}

/// Does what attach_system_unwinder() does for an unwinder that does not ask.
class Teller final : public RegistryObserver {
 public:
  explicit Teller(FrameContract contract) : tables_(contract) { EXPECT_TRUE(attach_observer(*this)); }
  ~Teller() { EXPECT_TRUE(detach_observer(*this)); }

  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    std::vector<unw_dyn_info_t*> infos;
    for (const RegisteredProcedure& procedure : procedures) infos.push_back(procedure.info);
    tables_.add(infos);
  }
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override { tables_.remove(procedures); }
  void retired() noexcept override { tables_.remove_all_gone(); }

 private:
  FrameTables tables_;
};

class FrameContracts : public testing::TestWithParam<FrameContract> {
 protected:
  FrameContracts() {
    (void)register_at(0);  // the library finds an unwinder that asks, and tells it nothing
    unwinder = {};
    unwinder.contract = GetParam();
  }
  ~FrameContracts() override {
    EXPECT_TRUE(unwinder.sections.empty());
    unwinder = {};
  }
};

std::string name_of_contract(const testing::TestParamInfo<FrameContract>& info) {
  return info.param == FrameContract::section ? "Section" : info.param == FrameContract::fde ? "Fde" : "UniqueSection";
}

INSTANTIATE_TEST_SUITE_P(Of, FrameContracts,
                         testing::Values(FrameContract::section, FrameContract::unique_section, FrameContract::fde),
                         name_of_contract);

TEST_P(FrameContracts, AreFoundOut) {
  EXPECT_EQ(find_frame_contract(), GetParam());
  EXPECT_EQ(unwinder.ignored, GetParam() == FrameContract::unique_section);
}

/// Procedures come and go in any order, by cancel and by retire, and others take their places. Every registered
/// procedure is known at its first byte and at its last.
TEST_P(FrameContracts, KeepWhatIsRegisteredKnown) {
  const Teller teller(find_frame_contract());
  unwinder.ignored = 0;
  std::map<unsigned, Registration> live;
  std::minstd_rand random(1);
  for (unsigned step = 0; step < 600; ++step) {
    const unsigned place = static_cast<unsigned>(random()) % 100 * 41 % k_places;
    const auto found = live.find(place);
    if (found == live.end()) {
      live[place] = register_at(place);
    } else {
      const bool waits = step % 2 == 0;
      EXPECT_TRUE(waits ? bool(found->second.cancel()) : bool(found->second.retire()));
      EXPECT_TRUE(!waits || !is_known(place, 1));
      live.erase(found);
    }
    for (const auto& [known, registration] : live) {
      ASSERT_TRUE(is_known(known, 1)) << step;
      ASSERT_TRUE(is_known(known, k_size)) << step;
    }
  }
  EXPECT_EQ(unwinder.ignored, 0);
  live.clear();
}

/// A JIT reports a section to the unwinder itself, and also registers its functions.
TEST_P(FrameContracts, LeaveWhatOthersHaveTold) {
  std::vector<std::byte> theirs(512);
  EhFrameWriter writer(arch::x86_64, theirs);
  writer.begin_cie({});
  const std::size_t first = writer.size();
  const unsigned count = GetParam() == FrameContract::fde ? 1 : 3;
  for (unsigned place = 0; place < count; ++place) {
    writer.begin_fde({k_code + place * k_size, k_code + (place + 1) * k_size}, 0);
    ASSERT_TRUE(writer.row(0, entry_row(arch::x86_64)));
    writer.end_fde();
  }
  writer.terminate();
  const Teller teller(find_frame_contract());
  __register_frame(&theirs[first]);
  {
    std::vector<Registration> ours;
    for (unsigned place = 0; place < count + 1; ++place) ours.push_back(register_at(place));
    for (unsigned place = 0; place < count + 1; ++place) EXPECT_TRUE(is_known(place, 1)) << place;
  }
  for (unsigned place = 0; place < count; ++place) EXPECT_TRUE(is_known(place, 1)) << place;
  EXPECT_FALSE(is_known(count, 1));
  __deregister_frame(&theirs[first]);
}

TEST(FramePools, GiveBlocksThatStayAndUseThemAgain) {
  FramePool pool;
  std::map<std::byte*, std::pair<std::size_t, int>> blocks;  // size, contents
  std::minstd_rand random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t size = 1 + random() % (i % 50 == 0 ? 4000 : 200);
    std::byte* const block = pool.take(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
    const auto behind = blocks.lower_bound(block);
    EXPECT_TRUE(behind == blocks.end() || block + size <= behind->first);
    EXPECT_TRUE(behind == blocks.begin() || std::prev(behind)->first + std::prev(behind)->second.first <= block);
    std::memset(block, i % 256, size);
    blocks[block] = {size, i % 256};
    if (i % 3 != 2) continue;
    const auto gone = std::next(blocks.begin(), static_cast<std::ptrdiff_t>(random() % blocks.size()));
    const auto [size_of_gone, contents] = gone->second;
    for (std::size_t k = 0; k < size_of_gone; ++k)
      ASSERT_EQ(std::to_integer<int>(gone->first[k]), contents) << "somebody has written to it";
    pool.give_back(gone->first, size_of_gone);
    if (size_of_gone <= 1024) {
      EXPECT_EQ(pool.take(size_of_gone), gone->first);
      pool.give_back(gone->first, size_of_gone);
    }
    blocks.erase(gone);
  }
  for (const auto& [block, what] : blocks) pool.give_back(block, what.first);
}

}  // namespace
}  // namespace jitunwind::test
