// Programs of other CPUs, stopped below signal handlers and code made at run time, and walked on this machine. The
// programs' own unwinders are the witnesses.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/targets/snapshots/snapshot.h"

namespace jitunwind::test {
namespace {

class Snapshots : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Cpus, Snapshots, testing::ValuesIn(snapshot_names()),
                         [](const auto& info) { return info.param; });

// covers: XP04 RG04
TEST_P(Snapshots, AreWalkedAsTheirOwnUnwinderDid) {
  const Snapshot snapshot = load_snapshot(GetParam());
  EXPECT_GE(snapshot.frames.size(), 19u);
  EXPECT_EQ(walk_of(snapshot, SnapshotMemory(snapshot.memory)), "");
}

/// If any part of the memory is missing, the frames before it stay, and the walk ends with a reason.
TEST_P(Snapshots, WithoutPartsOfTheirMemoryEndEarlier) {
  const Snapshot whole = load_snapshot(GetParam());
  for (std::size_t i = 0; i < whole.memory.size(); ++i) {
    if (std::ranges::count(whole.memory[i].bytes, std::byte{0}) == std::ssize(whole.memory[i].bytes)) continue;
    Snapshot cut = whole;
    cut.memory.erase(cut.memory.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(walk_of(cut, SnapshotMemory(cut.memory)), "") << std::hex << whole.memory[i].at;
  }
}

/// The snapshots are walked one after the other in one process.
// covers: XP04
TEST(AllSnapshots, HaveEveryByteOrderAndWordSize) {
  std::set<std::pair<unsigned, bool>> kinds;
  for (const std::string& name : snapshot_names()) {
    const Snapshot snapshot = load_snapshot(name);
    EXPECT_EQ(walk_of(snapshot, SnapshotMemory(snapshot.memory)), "") << name;
    kinds.emplace(snapshot.arch.word_size, snapshot.arch.big_endian);
  }
  EXPECT_TRUE(kinds.contains({8, false}) && kinds.contains({8, true}) && kinds.contains({4, false}));
}

}  // namespace
}  // namespace jitunwind::test
