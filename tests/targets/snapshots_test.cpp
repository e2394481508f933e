// Programs of other CPUs, stopped below signal handlers, walked from here: what their own unwinder has seen is the
// witness.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/targets/snapshots/snapshot.h"

namespace jitunwind::test {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(JITUNWIND_SOURCE_DIR "/tests/targets/snapshots"))
    if (entry.path().extension() == ".snapshot") all.push_back(entry.path().stem().string());
  std::ranges::sort(all);
  return all;
}

Snapshot load(const std::string& name) {
  std::ifstream text(JITUNWIND_SOURCE_DIR "/tests/targets/snapshots/" + name + ".snapshot");
  return Snapshot::parse(text);
}

class Snapshots : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Cpus, Snapshots, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

// covers: XP04 RG04
TEST_P(Snapshots, AreWalkedAsTheirOwnUnwinderDid) {
  const Snapshot snapshot = load(GetParam());
  EXPECT_GE(snapshot.frames.size(), 11u);
  EXPECT_EQ(walk_of(snapshot, SnapshotMemory(snapshot.memory)), "");
}

/// Whatever part of the memory is missing, frames before it stay, and the walk ends by saying why.
TEST_P(Snapshots, WithoutPartsOfTheirMemoryEndEarlier) {
  const Snapshot whole = load(GetParam());
  for (std::size_t i = 0; i < whole.memory.size(); ++i) {
    if (std::ranges::count(whole.memory[i].bytes, std::byte{0}) == std::ssize(whole.memory[i].bytes)) continue;
    Snapshot cut = whole;
    cut.memory.erase(cut.memory.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(walk_of(cut, SnapshotMemory(cut.memory)), "") << std::hex << whole.memory[i].at;
  }
}

/// One behind the other, in one process.
// covers: XP04
TEST(AllSnapshots, HaveEveryByteOrderAndWordSize) {
  std::set<std::pair<unsigned, bool>> kinds;
  for (const std::string& name : names()) {
    const Snapshot snapshot = load(name);
    EXPECT_EQ(walk_of(snapshot, SnapshotMemory(snapshot.memory)), "") << name;
    kinds.emplace(snapshot.arch.word_size, snapshot.arch.big_endian);
  }
  EXPECT_TRUE(kinds.contains({8, false}) && kinds.contains({8, true}) && kinds.contains({4, false}));
}

}  // namespace
}  // namespace jitunwind::test
