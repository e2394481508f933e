// A target's lists by address. The kept data of a list answers as the list does, is read once for each generation, and
// makes a question cost the same whatever is registered.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/dyn_info/target_list.h"
#include "jitunwind/unwind_core/address_space.h"
#include "tests/support/fake_space.h"
#include "tests/support/fake_target.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x40'0000;

Addr newest(const std::vector<ListIndex::Procedure>& procedures, Addr at) {
  for (const ListIndex::Procedure& procedure : procedures)
    if (procedure.code.contains(at)) return procedure.descriptor;
  return 0;
}

TEST(ListIndex, AnswersAsTheListDoes) {
  std::mt19937_64 random(20261124);
  for (int round = 0; round < 300; ++round) {
    std::vector<ListIndex::Procedure> procedures(random() % 40);
    const Addr longest = round % 3 == 0 ? 8 : round % 3 == 1 ? 64 : 300;
    for (std::size_t i = 0; i < procedures.size(); ++i) {
      const Addr begin = random() % 300;
      procedures[i] = {{begin, begin + 1 + random() % longest}, 1000 + i};
    }
    ListIndex index;
    ASSERT_TRUE(index.make(1, 2, procedures));
    EXPECT_TRUE(index.is_of(1, 2));
    EXPECT_FALSE(index.is_of(1, 4));
    EXPECT_FALSE(index.is_of(2, 2));
    for (Addr at = 0; at < 700; ++at) ASSERT_EQ(index.find(at), newest(procedures, at)) << round << " at " << at;
  }
}

/// Makes code as JITs do: one procedure behind the other, with or without gaps, and not always at ascending addresses.
TEST(ListIndex, AnswersAsTheListDoesWhereNothingOverlaps) {
  std::mt19937_64 random(20261125);
  for (int round = 0; round < 100; ++round) {
    std::vector<ListIndex::Procedure> procedures;
    Addr end = random() % 3;
    for (Addr i = 0; i < random() % 50; ++i) {
      const Addr begin = end + (round % 2 == 0 ? random() % 3 : 0);
      end = begin + 1 + random() % 5;
      procedures.push_back({{begin, end}, 1000 + i});
    }
    if (round % 4 < 2) std::ranges::reverse(procedures);
    if (round % 4 == 2) std::ranges::shuffle(procedures, random);
    ListIndex index;
    ASSERT_TRUE(index.make(1, 2, procedures));
    for (Addr at = 0; at < end + 10; ++at) ASSERT_EQ(index.find(at), newest(procedures, at)) << round << " at " << at;
  }
}

/// Some of a JIT's code comes and some goes, in few changes at a time and in many.
TEST(ListIndex, ChangesAsTheListDoes) {
  std::mt19937_64 random(20261126);
  constexpr Addr k_slots = 600, k_size = 4;
  for (int round = 0; round < 20; ++round) {
    std::map<Addr, ListIndex::Procedure> live;  // by slot; each may begin and end within it
    const auto make = [&](Addr slot) {
      const Addr begin = slot * k_size + random() % 2;
      return live[slot] = {{begin, begin + 1 + random() % 3}, 2 * (1000 + random() % 100'000)};
    };
    std::vector<ListIndex::Procedure> first;
    for (Addr slot = 0; slot < k_slots; ++slot)
      if (random() % 3 != 0) first.push_back(make(slot));
    ListIndex index;
    ASSERT_TRUE(index.make(1, 2, first, 7));
    std::uint64_t count = 7;
    for (std::uint32_t generation = 4; generation < 24; generation += 2) {
      std::vector<ListIndex::Change> changes(random() % (round % 2 == 0 ? 8 : 256));
      for (ListIndex::Change& change : changes) {
        const Addr slot = random() % k_slots;
        const auto old = live.find(slot);
        change = old == live.end() ? ListIndex::Change{make(slot), true} : ListIndex::Change{old->second, false};
        if (!change.is_registered) live.erase(old);
      }
      ASSERT_TRUE(index.change(generation, changes));
      EXPECT_TRUE(index.is_of(1, generation));
      EXPECT_EQ(index.changes(), count += changes.size());
      for (Addr at = 0; at < k_slots * k_size + 4; ++at) {
        const auto slot = live.find(at / k_size);
        const Addr expected = slot != live.end() && slot->second.code.contains(at) ? slot->second.descriptor : 0;
        ASSERT_EQ(index.find(at), expected) << round << " at " << at;
      }
    }
  }
}

/// The whole list is read then.
TEST(ListIndex, KnowsNothingAfterChangesThatDoNotFit) {
  const std::vector<ListIndex::Procedure> procedures{{{10, 20}, 2}, {{30, 40}, 4}},
      overlapping{{{10, 20}, 2}, {{15, 25}, 4}};
  const auto is_known_after = [](const std::vector<ListIndex::Procedure>& before, const ListIndex::Change& change) {
    ListIndex index;
    EXPECT_TRUE(index.make(1, 2, before, 0));
    return index.change(4, {&change, 1}) && index.is_known();
  };
  EXPECT_TRUE(is_known_after(procedures, {{{20, 30}, 6}, true}));
  EXPECT_TRUE(is_known_after(procedures, {{{10, 20}, 2}, false}));
  EXPECT_FALSE(is_known_after(procedures, {{{19, 30}, 6}, true})) << "over another one";
  EXPECT_FALSE(is_known_after(procedures, {{{5, 50}, 6}, true})) << "around others";
  EXPECT_FALSE(is_known_after(procedures, {{{10, 20}, 6}, false})) << "another one is there";
  EXPECT_FALSE(is_known_after(procedures, {{{10, 21}, 2}, false})) << "it ends before";
  EXPECT_FALSE(is_known_after(procedures, {{{20, 20}, 6}, true})) << "empty";
  EXPECT_FALSE(is_known_after(overlapping, {{{50, 60}, 6}, true})) << "what is below another one is not known";
  ListIndex uncounted;
  ASSERT_TRUE(uncounted.make(1, 2, procedures));
  EXPECT_FALSE(uncounted.change(4, {})) << "nobody knows the number of the first change";
}

TEST(ListIndex, KnowsTheEndsOfTheAddressSpace) {
  ListIndex index;
  const std::array<ListIndex::Procedure, 2> procedures{{{{~Addr{0} - 8, ~Addr{0}}, 1}, {{0, 8}, 2}}};
  ASSERT_TRUE(index.make(1, 2, procedures));
  EXPECT_EQ(index.find(0), 2u);
  EXPECT_EQ(index.find(8), 0u);
  EXPECT_EQ(index.find(~Addr{0} - 1), 1u);
  EXPECT_EQ(index.find(~Addr{0}), 0u);
  index.forget();
  EXPECT_FALSE(index.is_of(1, 2));
}

/// Counts reads, and lets a test change the target between two.
class CountingMemory final : public Memory {
 public:
  explicit CountingMemory(const Memory& target) : target_(target) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    ++reads;
    if (before_read) before_read();
    return target_.read(at, into, window);
  }
  mutable std::size_t reads = 0;
  std::function<void()> before_read;

 private:
  const Memory& target_;
};

struct Heads final : ListHead {
  Result<Addr> list_head(std::size_t number, MemoryWindow&) const noexcept override {
    return number < at.size() ? at[number] : Addr{0};
  }
  const Memory* memory_now() const noexcept override { return now; }
  WalkedListIndex* index_of(std::size_t number, bool) const noexcept override { return &indexes[number]; }
  std::vector<Addr> at;
  const Memory* now = nullptr;
  mutable std::array<WalkedListIndex, k_most> indexes;
};

/// Lists with named procedures of 16 bytes.
struct FakeProcess {
  std::string name(Addr at) {
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(at), window);
    std::array<char, 64> into{};
    ProcedureName name;
    const Found found = list.find_name(lookup, into, name);
    if (!found) return std::string("error ") + found.error().what;
    return *found ? into.data() : "none";
  }
  Addr put(Addr begin, const std::string& name, Addr next) {
    unw_dyn_info_t info{};
    info.start_ip = begin;
    info.end_ip = begin + 16;
    info.u.pi.name_ptr = target.put_string(name);
    return target.put_descriptor(info, 0, next);
  }
  void set_head(Addr list, std::uint32_t generation, Addr first) { target.write_list(list, first, 1, generation); }

  const Arch& arch = *find_arch("x86-64");
  FakeTarget target{arch};
  CountingMemory memory{target.memory};
  Heads heads;
  TargetList list{heads};
  NoModules modules;
  std::array<const RowSource*, 1> rows{&list};
  std::array<const NameSource*, 1> names{&list};
  AddressSpace space{arch, memory, modules, rows, names};
};

std::size_t reads_of_a_question(std::size_t procedures) {
  FakeProcess t;
  Addr first = 0;
  for (std::size_t i = 0; i < procedures; ++i) first = t.put(k_code + 16 * i, "procedure " + std::to_string(i), first);
  t.heads.at = {t.target.put_list(first)};
  t.set_head(t.heads.at[0], 2, first);
  EXPECT_EQ(t.name(k_code + 5), "procedure 0");
  const std::size_t before = t.memory.reads;
  EXPECT_EQ(t.name(k_code + 16 * (procedures / 2)), "procedure " + std::to_string(procedures / 2));
  return t.memory.reads - before;
}

/// The first question makes the index, and may cost more.
TEST(KeptLists, CostAQuestionTheSameWhateverIsRegistered) {
  EXPECT_LE(reads_of_a_question(5000), reads_of_a_question(100) + 2) << "names are a few bytes longer";
}

// covers: DY49
TEST(KeptLists, AreReadAgainWhenTheyHaveChanged) {
  FakeProcess t;
  const Addr old = t.put(k_code, "old", 0);
  t.heads.at = {t.target.put_list(old)};
  t.set_head(t.heads.at[0], 2, old);
  EXPECT_EQ(t.name(k_code), "old");
  t.set_head(t.heads.at[0], 4, t.put(k_code, "new", old));
  EXPECT_EQ(t.name(k_code), "new");
  t.set_head(t.heads.at[0], 6, 0);
  EXPECT_EQ(t.name(k_code), "none");
}

/// If the target changes in the middle of a question, the answer is that of before or that of after.
// covers: DY49
TEST(KeptLists, ChangeInTheMiddleOfAQuestion) {
  for (std::size_t when = 1; when < 40; ++when) {
    FakeProcess t;
    const Addr old = t.put(k_code, "old", t.put(k_code + 16, "other", 0));
    t.heads.at = {t.target.put_list(old)};
    t.set_head(t.heads.at[0], 2, old);
    const Addr added = t.put(k_code, "new", t.put(k_code + 16, "another", 0));
    t.memory.before_read = [&] {
      if (t.memory.reads == when) t.set_head(t.heads.at[0], 4, added);
    };
    const std::string name = t.name(k_code);
    EXPECT_TRUE(name == "old" || name == "new") << when << ": " << name;
    if (t.memory.reads < when) continue;
    EXPECT_EQ(t.name(k_code + 16), "another") << when;
  }
}

/// Data that was read of a running target is compared with the target's memory.
// covers: DY49
TEST(KeptLists, OfARunningTargetAreNotBelievedWhenTheyHaveChanged) {
  FakeProcess stopped, now;
  for (FakeProcess* t : {&stopped, &now}) {
    const Addr first = t->put(k_code, "then", 0);
    t->heads.at = {t->target.put_list(first)};
    t->set_head(t->heads.at[0], 2, first);
  }
  stopped.heads.now = &now.memory;
  EXPECT_EQ(stopped.name(k_code), "then");
  now.set_head(now.heads.at[0], 4, 0);
  EXPECT_EQ(stopped.name(k_code), "error list of procedures has changed since the target was let go");
}

// covers: DY51
TEST(SeveralLists, AreAllAsked) {
  FakeProcess t;
  const Addr first = t.put(k_code, "in the first", 0), second = t.put(k_code + 16, "in the second", 0);
  t.heads.at = {t.target.put_list(first), t.target.put_list(0), t.target.put_list(second)};
  EXPECT_EQ(t.name(k_code), "in the first");
  EXPECT_EQ(t.name(k_code + 16), "in the second");
  EXPECT_EQ(t.name(k_code + 32), "none");
  // A broken list hides nothing that another list has.
  t.heads.at[1] = 0x10;
  EXPECT_EQ(t.name(k_code + 16), "in the second");
  EXPECT_EQ(t.name(k_code + 32), "error list of procedures");
}

}  // namespace
}  // namespace jitunwind::test
