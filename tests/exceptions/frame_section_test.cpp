// Frames that libgcc 12 was told of, while they change: libgcc continues to read a frame that it has found after it has
// released its lock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <random>
#include <vector>

#include "jitunwind/adapters/system_unwinder/frames/frame_section_p.h"
#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"

extern "C" jitunwind::FindFde _Unwind_Find_FDE;

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x7a00'0000'0000;
constexpr Addr k_size = 64;

AddrRange range_of(unsigned number) { return {k_code + number * k_size, k_code + (number + 1) * k_size}; }

/// Makes a CIE and an FDE, so long that all sizes occur.
FrameSection::Bytes entries_of(unsigned number) {
  FrameSection::Bytes bytes(4096);
  EhFrameWriter writer(arch::x86_64, bytes);
  writer.begin_cie({});
  writer.begin_fde(range_of(number), 0);
  FrameRow row = entry_row(arch::x86_64);
  for (unsigned at = 0; at <= number * 7 % 40; ++at) {
    row.cfa.offset = 8 + 8 * at;
    EXPECT_TRUE(writer.row(at, row));
  }
  writer.end_fde();
  bytes.resize(writer.size());
  return bytes;
}

/// Returns libgcc's answer; null: it finds nothing.
const std::byte* find(unsigned number) {
  EhBases bases;
  void* const pc = reinterpret_cast<void*>(range_of(number).begin + 5);
  return static_cast<const std::byte*>(_Unwind_Find_FDE(pc, &bases));
}

/// All answers about procedures that still exist.
class Answers {
 public:
  void expect_kept(unsigned number, const FrameSection::Bytes& entries) {
    const std::byte* const fde = find(number);
    ASSERT_NE(fde, nullptr) << number;
    std::list<const std::byte*>& all = all_[number];
    if (std::find(all.begin(), all.end(), fde) == all.end()) all.push_back(fde);
    const std::size_t cie_size = length_of(entries.data());
    for (const std::byte* answer : all)
      ASSERT_TRUE(std::equal(entries.begin(), entries.end(), answer - cie_size)) << number;
  }
  void forget(unsigned number) { all_.erase(number); }

 private:
  static std::size_t length_of(const std::byte* entry) {
    std::uint32_t length = 0;
    std::memcpy(&length, entry, sizeof length);
    return length + sizeof length;
  }
  std::map<unsigned, std::list<const std::byte*>> all_;
};

TEST(FrameSections, KeepWhatStaysAsItWas) {
  FrameSection section;
  SectionMemory memory;
  Answers answers;
  struct Told {
    FrameSection::Bytes entries;
    FrameSection::Place place;
  };
  std::map<unsigned, Told> told;
  for (unsigned step = 0; step < 400; ++step) {
    if (step % 3 == 2) {  // one goes, but never the first
      const auto gone = std::next(told.begin(), 1 + step * 31 % static_cast<unsigned>(told.size() - 1));
      section.remove(gone->second.place);
      answers.forget(gone->first);
      const unsigned number = gone->first;
      told.erase(gone);
      section.publish(memory);
      EXPECT_EQ(find(number), nullptr);
    } else {
      const unsigned number = step * 37 % 400;
      Told& added = told[number];
      added.entries = entries_of(number);
      added.place = section.add(added.entries);
      section.publish(memory);
    }
    for (const auto& [number, one] : told) answers.expect_kept(number, one.entries);
    if (HasFatalFailure()) return;
  }
  for (const auto& [number, one] : told) section.remove(one.place);
  section.publish(memory);
  EXPECT_EQ(find(0), nullptr);
}

/// Many procedures of all sizes go and come between two publications: more than there was room to note.
TEST(FrameSections, KeepWhatStaysThroughManyChangesAtOnce) {
  FrameSection section;
  SectionMemory memory;
  Answers answers;
  std::map<unsigned, FrameSection::Place> told;
  std::minstd_rand random(1);
  for (unsigned round = 0; round < 150; ++round) {
    const auto share = random() % 10;
    for (auto one = told.begin(); one != told.end();) {
      const bool goes = random() % 10 < share;
      if (goes) section.remove(one->second), answers.forget(one->first);
      one = goes ? told.erase(one) : std::next(one);
    }
    for (unsigned i = 0; i < random() % 60; ++i) {
      const auto number = static_cast<unsigned>(random() % 400);
      if (told.count(number) == 0) told[number] = section.add(entries_of(number));
    }
    section.publish(memory);
    for (unsigned number = 0; number < 400; ++number) {
      if (told.count(number) != 0)
        answers.expect_kept(number, entries_of(number));
      else
        EXPECT_EQ(find(number), nullptr) << number;
    }
    if (HasFatalFailure()) return;
  }
  for (const auto& [number, place] : told) section.remove(place);
  section.publish(memory);
}

TEST(FrameSections, UseMemoryOfLibgccsAgainAfterARest) {
  SectionMemory memory;
  const SectionMemory::Clock::time_point now{std::chrono::hours(1)};
  const std::chrono::seconds set_aside = SectionMemory::k_set_aside;
  auto* const first = memory.take(now);
  memory.give_back(first, now);
  auto* const second = memory.take(now + set_aside - std::chrono::seconds(1));
  EXPECT_NE(second, first);
  EXPECT_EQ(memory.take(now + set_aside), first);
  memory.give_back(first, now + set_aside);
  memory.give_back(second, now + set_aside);
}

}  // namespace
}  // namespace jitunwind::test
