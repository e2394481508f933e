// The list of files for debuggers, read by libelf as a debugger would read it: it always equals the registered code.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "tests/debuggers/read_files.h"

namespace {

using namespace debuggers_test;
using namespace jitunwind;
using registry_test::error_of;

class JitFiles : public testing::Test {
 protected:
  ~JitFiles() override {
    EXPECT_TRUE(detach_gdb());
    EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  }
};

TEST_F(JitFiles, NothingIsMadeUntilItIsAskedFor) {
  Procedure early(k_code, 16, "early"), late(k_code + 16, 16, "late");
  ASSERT_TRUE(register_procedure(early.info()));
  EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  EXPECT_FALSE(gdb_statistics().attached);
  ASSERT_TRUE(attach_gdb());
  ASSERT_TRUE(attach_gdb());
  Symbols wanted;
  early.add_to(wanted);
  EXPECT_EQ(debugger_reads(), wanted);
  ASSERT_TRUE(register_procedure(late.info()));
  late.add_to(wanted);
  EXPECT_EQ(debugger_reads(), wanted);
  EXPECT_EQ(gdb_statistics().procedures, 2u);
  ASSERT_TRUE(cancel_procedure(early.info()));
  wanted.erase(k_code);
  EXPECT_EQ(debugger_reads(), wanted);
  ASSERT_TRUE(detach_gdb());
  EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  ASSERT_TRUE(detach_gdb());
  ASSERT_TRUE(cancel_procedure(late.info()));
}

TEST_F(JitFiles, RetiredGoesWithTheNextChangeOrFlush) {
  ASSERT_TRUE(attach_gdb());
  Procedure old(k_code, 16, "old"), fresh(k_code, 32, "fresh");
  ASSERT_TRUE(register_procedure(old.info()));
  unw_dyn_info_t* const batch[] = {old.info()};
  ASSERT_TRUE(retire_procedures(batch));
  ASSERT_TRUE(flush_gdb());
  EXPECT_EQ(debugger_reads(), Symbols());
  ASSERT_TRUE(register_procedure(fresh.info()));
  Symbols wanted;
  fresh.add_to(wanted);
  EXPECT_EQ(debugger_reads(), wanted);
  ASSERT_TRUE(cancel_procedure(fresh.info()));
}

// Procedures are registered and cancelled at random, in slots side by side and far apart, in batches and one by one.
TEST_F(JitFiles, AlwaysWhatIsRegistered) {
  ASSERT_TRUE(attach_gdb());
  constexpr std::size_t k_slots = 3000;
  std::mt19937 random(7);
  std::map<std::size_t, std::unique_ptr<Procedure>> live;
  const auto start = [](std::size_t slot) { return k_code + 48 * slot + (slot % 500 == 0 ? 0x100000 * slot : 0); };
  for (unsigned step = 0; step < 60; ++step) {
    std::vector<unw_dyn_info_t*> batch;
    const bool grow = step < 30 || step % 3 == 0;
    for (unsigned i = 0; i < 1 + random() % 200; ++i) {
      const std::size_t slot = random() % k_slots;
      const auto found = live.find(slot);
      if (grow && found == live.end()) {
        live[slot] = std::make_unique<Procedure>(start(slot), 16 + random() % 33, "f" + std::to_string(slot));
        if (i % 2 == 0) {
          ASSERT_TRUE(register_procedure(live[slot]->info()));
        } else {
          batch.push_back(live[slot]->info());
        }
      } else if (!grow && found != live.end()) {
        ASSERT_TRUE(cancel_procedure(found->second->info()));
        live.erase(found);
      }
    }
    ASSERT_TRUE(register_procedures(batch));
    Symbols wanted;
    for (const auto& [slot, procedure] : live) procedure->add_to(wanted);
    ASSERT_EQ(debugger_reads(), wanted) << "step " << step;
    EXPECT_LE(gdb_statistics().files, live.size() / 512 + live.size() / 64 + 20);
  }
  EXPECT_GT(live.size(), 500u);
  for (auto& [slot, procedure] : live) ASSERT_TRUE(cancel_procedure(procedure->info()));
  EXPECT_EQ(debugger_reads(), Symbols());
}

// JITs mostly put procedures one behind the other, with a little room in between.
TEST_F(JitFiles, NeighboursShareSectionsAndFilesAreFew) {
  ASSERT_TRUE(attach_gdb());
  constexpr std::size_t k_many = 5000;
  std::vector<std::unique_ptr<Procedure>> all;
  for (std::size_t i = 0; i < k_many; ++i) {
    all.push_back(std::make_unique<Procedure>(k_code + 64 * i, 40, "g" + std::to_string(i)));
    ASSERT_TRUE(register_procedure(all.back()->info()));
  }
  std::size_t sections = 0;
  EXPECT_EQ(debugger_reads(&sections).size(), k_many);
  EXPECT_LE(gdb_statistics().files, k_many / 512 + 10);
  EXPECT_LE(sections, k_many / 512 + 10);
  for (auto& procedure : all) ASSERT_TRUE(cancel_procedure(procedure->info()));
}

TEST_F(JitFiles, OtherLibrariesEntriesStay) {
  const std::byte foreign_file{};
  jit_code_entry second{nullptr, nullptr, &foreign_file, 1};
  jit_code_entry first{&second, nullptr, &foreign_file, 1};
  second.prev_entry = &first;
  __jit_debug_descriptor.first_entry = &first;
  ASSERT_TRUE(attach_gdb());
  Procedure procedure(k_code, 16, "f");
  ASSERT_TRUE(register_procedure(procedure.info()));
  // LLVM removes an entry next to ours, and puts one in front, in this way.
  ASSERT_NE(second.next_entry, nullptr);
  second.next_entry->prev_entry = second.prev_entry;
  second.prev_entry->next_entry = second.next_entry;
  jit_code_entry newest{__jit_debug_descriptor.first_entry, nullptr, &foreign_file, 1};
  newest.next_entry->prev_entry = &newest;
  __jit_debug_descriptor.first_entry = &newest;
  ASSERT_TRUE(cancel_procedure(procedure.info()));
  ASSERT_TRUE(detach_gdb());
  EXPECT_EQ(__jit_debug_descriptor.first_entry, &newest);
  EXPECT_EQ(newest.next_entry, &first);
  EXPECT_EQ(first.prev_entry, &newest);
  EXPECT_EQ(first.next_entry, nullptr);
  __jit_debug_descriptor.first_entry = nullptr;
}

TEST_F(JitFiles, ThreadsRegisterWhileItComesAndGoes) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Addr t = 0; t < 3; ++t) {
    threads.emplace_back([&stop, t] {
      for (Addr i = 0; !stop; ++i) {
        Procedure procedure(k_code + 0x100000 * t + 64 * (i % 50), 32, "t" + std::to_string(i));
        if (!register_procedure(procedure.info()) || !cancel_procedure(procedure.info())) std::abort();
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(attach_gdb());
    ASSERT_TRUE(flush_gdb());
    if (i % 10 == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        Procedure procedure(k_code, 32, "child");
        const bool right = register_procedure(procedure.info()) && cancel_procedure(procedure.info()) && detach_gdb();
        ::_exit(right && __jit_debug_descriptor.first_entry == nullptr ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    ASSERT_TRUE(detach_gdb());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(attach_gdb());
  EXPECT_EQ(debugger_reads(), Symbols());
}

/// A debugger that takes a second for each stop must not have a hundred of them.
TEST(StopBudgets, EndAfterSomeSecondsWhateverIsLeftOfTheStops) {
  StopBudget budget;
  EXPECT_FALSE(budget.is_spent());
  budget.spend(std::chrono::seconds(1), 2);
  EXPECT_FALSE(budget.is_spent());
  budget.spend(std::chrono::seconds(1), 2);
  EXPECT_TRUE(budget.is_spent());
  budget.restore();
  EXPECT_FALSE(budget.is_spent());
}

TEST(StopBudgets, AreStopsAndTime) {
  StopBudget budget;
  budget.spend(std::chrono::milliseconds(500), 10);
  EXPECT_FALSE(budget.is_spent()) << "there are stops";
  budget.spend(std::chrono::milliseconds(0), 100);
  EXPECT_TRUE(budget.is_spent());
}

}  // namespace
