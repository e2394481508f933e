// The present registrations, wherever they are, bound the registry's memory; earlier ones do not. Lookups are right
// while memory is given back.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "jitunwind/dyn_info/registry/index/procedure_index_p.h"
#include "tests/registry/procedures.h"
#include "tests/support/emulated.h"

namespace {

using namespace jitunwind;
using namespace registry_test;
using namespace std::chrono_literals;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool k_memory_is_ours = false;  // and not the sanitizer's shadow of it
#else
constexpr bool k_memory_is_ours = true;
#endif

/// Returns this process's resident memory without pages of files: code that runs for the first time is loaded with its
/// neighbours (proc(5), statm).
std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  std::size_t size = 0, resident = 0, shared = 0;
  EXPECT_EQ(std::fscanf(file, "%zu %zu %zu", &size, &resident, &shared), 3);
  std::fclose(file);
  return (resident - shared) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Otherwise memory would count as used by 2 MiB at a time, if the kernel has such pages.
const int without_huge_pages = ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);

/// Linux gives pages that are only read no memory, but some kernels of virtual machines do. A look-up for code that is
/// gone takes memory there, which is not the library's.
bool reads_take_memory() {
  constexpr std::size_t k_pages = 64, k_page = 4096;
  void* const memory = ::mmap(nullptr, k_pages * k_page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  const std::size_t before = resident_bytes();
  for (std::size_t i = 0; i < k_pages; ++i) (void)static_cast<const volatile std::byte*>(memory)[i * k_page];
  const bool take = resident_bytes() >= before + k_pages / 2 * k_page;
  ::munmap(memory, k_pages * k_page);
  return take;
}

struct Memory {
  std::size_t library = registry_statistics().library_bytes;
  std::size_t resident = resident_bytes();
};

void expect_at_most(std::size_t more, const Memory& before) {
  const Memory now;
  EXPECT_LE(now.library, before.library + more);
  static const bool reads_count = reads_take_memory();
  if (k_memory_is_ours && !reads_count) {
    EXPECT_LE(now.resident, before.resident + more);
  }
  std::printf("%zd bytes of the library's, %zd of the process's more\n",
              static_cast<std::ptrdiff_t>(now.library - before.library),
              static_cast<std::ptrdiff_t>(now.resident - before.resident));
}

/// Returns any address of a process.
std::uint64_t random_place(std::mt19937_64& random) { return random() % (std::uint64_t{1} << 47); }

constexpr std::size_t k_constant = std::size_t{14} << 20;

TEST(RegistryMemory, OneProcedureThatMovesAboutTakesNoMoreAndMore) {
  std::mt19937_64 random(1);
  const Memory before;
  for (std::size_t i = 0; i < jitunwind::test::repetitions(100'000); ++i) {
    const std::uint64_t start = random_place(random);
    unw_dyn_info_t info = procedure(start, std::uint64_t{1} << random() % 30);
    ASSERT_TRUE(register_procedure(&info));
    ASSERT_EQ(lookup(start), &info);
    ASSERT_TRUE(cancel_procedure(&info));
    ASSERT_EQ(lookup(start), nullptr);
  }
  expect_at_most(k_constant, before);
}

TEST(RegistryMemory, WhatManyTookIsGivenBack) {
  constexpr std::size_t k_count = 10'000;
  std::mt19937_64 random(2);
  std::vector<unw_dyn_info_t> all;
  for (std::size_t i = 0; i < k_count; ++i) all.push_back(procedure(random_place(random), 16));
  const Memory before;
  for (int round = 0; round < 3; ++round) {
    for (unw_dyn_info_t& info : all) ASSERT_TRUE(register_procedure(&info));
    for (unw_dyn_info_t& info : all) ASSERT_EQ(lookup(info.start_ip), &info);
    for (unw_dyn_info_t& info : all) ASSERT_TRUE(cancel_procedure(&info));
    expect_at_most(k_constant, before);
  }
  // A batch registers them all at once; another batch is refused.
  std::vector<unw_dyn_info_t*> batch;
  for (unw_dyn_info_t& info : all) batch.push_back(&info);
  ASSERT_TRUE(register_procedures(batch));
  for (unw_dyn_info_t& info : all) ASSERT_EQ(lookup(info.start_ip), &info);
  ASSERT_TRUE(cancel_procedures(batch));
  expect_at_most(k_constant, before);
  batch.push_back(&all[0]);
  ASSERT_FALSE(register_procedures(batch));
  for (unw_dyn_info_t& info : all) ASSERT_EQ(lookup(info.start_ip), nullptr);
  expect_at_most(k_constant, before);
}

// Memory comes and goes around both: one procedure always covers the address that stays, and the moving one is at its
// announced place.
TEST(RegistryMemory, LookupsAreRightWhileMemoryIsGivenBack) {
  constexpr std::uint64_t k_places = 700;  // more than are kept
  constexpr std::uint64_t k_stays = 0x5'0000'0000;
  const auto place = [](std::uint64_t number) { return k_stays + ((1 + number % k_places) << 21); };
  const auto numbered = [](std::uint64_t start, std::uint64_t number) {
    auto info = std::make_unique<unw_dyn_info_t>(procedure(start, 16));
    info->gp = number;
    return info;
  };
  auto stays = numbered(k_stays, 0), moves = numbered(place(0), 0);
  ASSERT_TRUE(register_procedure(stays.get()) && register_procedure(moves.get()));
  std::atomic<std::uint64_t> published{0}, lookups{0}, wrong{0};
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    for (; !stop; ++lookups) {
      const std::uint64_t oldest = published;
      const ProcedureHold staying(k_stays + 3);
      if (staying.info() == nullptr || staying.info()->gp < oldest) ++wrong;
      const ProcedureHold moving(place(oldest) + 3);
      if (moving.info() == nullptr ? published == oldest : moving.info()->gp < oldest) ++wrong;
      const ProcedureHold nothing(place(oldest) + 64);
      if (nothing.info() != nullptr) ++wrong;
    }
  });
  std::uint64_t number = 0;
  for (const auto end = std::chrono::steady_clock::now() + 700ms; std::chrono::steady_clock::now() < end;) {
    ++number;
    auto next_stays = numbered(k_stays, number), next_moves = numbered(place(number), number);
    ASSERT_TRUE(register_procedure(next_stays.get()) && register_procedure(next_moves.get()));
    published = number;
    ASSERT_TRUE(cancel_procedure(stays.get()) && cancel_procedure(moves.get()));
    stays->gp = moves->gp = 0;
    stays = std::move(next_stays), moves = std::move(next_moves);
  }
  stop = true;
  reader.join();
  ASSERT_TRUE(cancel_procedure(stays.get()) && cancel_procedure(moves.get()));
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(lookups, 100u);
  std::printf("%" PRIu64 " moves, %" PRIu64 " lookups\n", number, lookups.load());
}

constinit NodePool nodes;
constinit ProcedureIndex procedure_index{nodes};

/// Inserts into the index and removes again.
void come_and_go(std::uint64_t start) {
  static std::uint64_t registrations = 0;
  unw_dyn_info_t info = procedure(start, 16);
  ProcedureIndex::Cells cells;
  ASSERT_TRUE(procedure_index.reserve(start, start + 16, cells));
  const NodeId id = nodes.take(&info);
  ProcedureNode& node = nodes[id];
  node.state = NodeState(++registrations, ProcedureIndex::size_class(start, start + 16), NodeState::Life::live).word();
  node.start = start;
  node.end = start + 16;
  procedure_index.insert(id, node, cells);
  procedure_index.remove(node);
  procedure_index.trim();
  nodes.give_back(id);
}

// A procedure that was registered and cancelled in between may have been the answer.
TEST(RegistryMemory, NoInsertionIsForgottenWithTheMemoryItWasIn) {
  constexpr std::uint64_t k_memory_code = 0x7'0000'0000;
  come_and_go(k_memory_code + (std::uint64_t{1} << 40));  // its class is in use
  ProcedureIndex::Snapshot without_memory;
  EXPECT_EQ(procedure_index.find(k_memory_code, without_memory).kind, ProcedureIndex::Answer::Kind::none);
  EXPECT_TRUE(procedure_index.unchanged(k_memory_code, without_memory));
  come_and_go(k_memory_code);
  ProcedureIndex::Snapshot with_memory;
  EXPECT_EQ(procedure_index.find(k_memory_code, with_memory).kind, ProcedureIndex::Answer::Kind::none);
  EXPECT_TRUE(procedure_index.unchanged(k_memory_code, with_memory));
  EXPECT_FALSE(procedure_index.unchanged(k_memory_code, without_memory));
  for (std::uint64_t i = 1; i < 2000; ++i) come_and_go(k_memory_code + (i << 21));
  EXPECT_FALSE(procedure_index.unchanged(k_memory_code, without_memory));
  EXPECT_FALSE(procedure_index.unchanged(k_memory_code, with_memory));
  ProcedureIndex::Snapshot now;
  (void)procedure_index.find(k_memory_code, now);
  EXPECT_EQ(now.cells[0], nullptr) << "its memory was given back";
}

}  // namespace
