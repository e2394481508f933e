// The table of walks that want addresses alone, and which memory they read without a probe.
#include "sdk/caller_table_p.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "unwind_core/lasting_modules_p.h"
#include "unwind_core/local_modules.h"
#include "unwind_core/memory/known_stack_p.h"
#include "unwind_core/page_p.h"

namespace jitunwind {
namespace {

using Source = CallerRule::Source;

CompactRow row_of(std::uint16_t cfa_words, std::uint8_t ra, std::uint8_t fp) {
  CompactRow row;
  row.cfa_words = cfa_words;
  row.slots[CompactLayout::k_return_address] = ra;
  row.slots[1] = fp;
  return row;
}

std::size_t place_of(const CallerTable& table, Addr at, std::uint64_t version) {
  const std::size_t first = table.first_place(at);
  for (std::size_t i = first; i < first + CallerTable::k_ways; ++i)
    if (table.holds(i, table.rule(i), at, CallerTable::cipher(version))) return i;
  return CallerTable::k_nowhere;
}

TEST(CallerRule, SaysWhatTheRowSays) {
  for (const bool by_fp : {false, true}) {
    const CallerRule rule(row_of(0xfedc, 201, 17), Source::module, by_fp, 1);
    EXPECT_EQ(rule.cfa_offset(), 8u * 0xfedc);
    EXPECT_EQ(rule.return_address_below_cfa(), 8u * 201);
    EXPECT_TRUE(rule.saves_frame_pointer());
    EXPECT_EQ(rule.frame_pointer_below_cfa(), 8u * 17);
    const CallerRule same_fp(row_of(2, 1, 0), Source::lasting, by_fp, 1);
    EXPECT_FALSE(same_fp.saves_frame_pointer());
    EXPECT_EQ(same_fp.frame_pointer_below_cfa(), 8u) << "where the return address is";
    EXPECT_EQ(rule.base_is_frame_pointer(), by_fp);
    EXPECT_EQ(rule.source(), Source::module);
    EXPECT_EQ(rule.kind(), CallerRule::Kind::compact);
    const CallerRule guessing = rule.with_guess(8191).with_guess(4097);
    EXPECT_EQ(guessing.guess(), 4097u);
    EXPECT_EQ(guessing.without_guess(), rule.word());
  }
  const CallerRule realigned(Source::lasting, CallerRule::Kind::realigned, 255);
  EXPECT_EQ(realigned.kind(), CallerRule::Kind::realigned);
  EXPECT_EQ(realigned.source(), Source::lasting);
  EXPECT_EQ(realigned.cfa_below_frame_pointer(), 8u * 255);
  EXPECT_EQ(realigned.cfa_offset(), 0u);
}

/// Under any other version of the same address the entry is none, however near the versions are.
TEST(CallerTable, FindsNothingUnderAnotherVersion) {
  const auto table = std::make_unique<CallerTable>();
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; ++i) {
    const Addr at = 0x7f0000000000 + random() % (1u << 30);
    const std::uint64_t version = i % 2 == 0 ? random() % 100 : random();
    const CallerRule rule(row_of(static_cast<std::uint16_t>(random() % 64 + 2), 1, 2), Source::lasting, false, 1);
    table->keep(at, version, rule);
    const std::size_t place = place_of(*table, at, version);
    ASSERT_NE(place, CallerTable::k_nowhere);
    table->guess(place, table->rule(place), random() % 8192);
    ASSERT_EQ(place_of(*table, at, version), place) << "a guess is no part of the rule";
    ASSERT_EQ(table->rule(place).without_guess(), rule.word());
    for (std::uint64_t other = 1; other < 300; ++other) {
      ASSERT_EQ(place_of(*table, at, version + other), CallerTable::k_nowhere);
      ASSERT_EQ(place_of(*table, at, version ^ other << 40), CallerTable::k_nowhere);
    }
    ASSERT_EQ(place_of(*table, at + 1, version), CallerTable::k_nowhere);
  }
}

/// It begins small. What was kept in it before it grew is all that may be lost.
TEST(CallerTable, GrowsWhereItIsCrowded) {
  const auto table = std::make_unique<CallerTable>();
  constexpr std::size_t k_addresses = 2000;
  constexpr Addr k_base = 0x555500000000, k_apart = 32;
  const CallerRule rule(row_of(4, 1, 2), Source::lasting, false, 1);
  for (std::size_t i = 0; i < k_addresses; ++i) {
    table->keep(k_base + i * k_apart, 7, rule);
    ASSERT_NE(place_of(*table, k_base + i * k_apart, 7), CallerTable::k_nowhere) << i;
  }
  std::size_t found = 0;
  for (std::size_t i = 0; i < k_addresses; ++i)
    if (place_of(*table, k_base + i * k_apart, 7) != CallerTable::k_nowhere) ++found;
  EXPECT_GE(found, k_addresses - (std::size_t{1} << CallerTable::k_first_bits) - 20);
}

/// Writers that overwrite each other's words leave entries that no reader takes for anything: each address has a rule
/// that depends on it.
TEST(CallerTable, IsReadWhileItIsWritten) {
  const auto table = std::make_unique<CallerTable>();
  constexpr Addr k_base = 0x555500000000;
  const auto rule_of = [](Addr at, std::uint64_t version) {
    return CallerRule(row_of(static_cast<std::uint16_t>((at * 7 + version) % 60000), 1, 2), Source::lasting, false, 1);
  };
  std::vector<Addr> together;  // addresses of one set
  for (Addr at = k_base; together.size() < 12; ++at)
    if (table->first_place(at) == table->first_place(k_base)) together.push_back(at);
  std::atomic<std::size_t> found{0};
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 60'000; ++i) {
        const Addr at = together[random() % together.size()];
        const std::uint64_t version = random() % 3;
        if (i % 2 == 0) table->keep(at, version, rule_of(at, version));
        const std::size_t first = table->first_place(at);
        for (std::size_t place = first; place < first + CallerTable::k_ways; ++place) {
          const CallerRule rule = table->rule(place);
          if (!table->holds(place, rule, at, version)) continue;
          ++found;
          if (rule.without_guess() != rule_of(at, version).word()) ++wrong;
          table->guess(place, rule, random() % 8192);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 1000u);
}

// Known stacks.

Addr address_here() { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); }

void expect_readable(AddrRange range) {
  EXPECT_FALSE(range.empty());
  EXPECT_EQ(first_unreadable_page(range.begin, range.end), range.end);
}

TEST(KnownStack, OfTheMainThreadReachesItsCallers) {
  const AddrRange stack = known_stack(address_here());
  EXPECT_TRUE(stack.contains(address_here()));
  EXPECT_TRUE(stack.contains(reinterpret_cast<std::uintptr_t>(environ[0])));
  expect_readable(stack);
}

/// All that is known is the thread's, by the C library's word.
void expect_own_stack() {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  void* base = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(pthread_attr_getstack(&attributes, &base, &size), 0);
  pthread_attr_destroy(&attributes);
  const AddrRange whole{reinterpret_cast<std::uintptr_t>(base), reinterpret_cast<std::uintptr_t>(base) + size};
  const AddrRange stack = known_stack(address_here());
  EXPECT_TRUE(stack.contains(address_here()));
  EXPECT_GE(stack.begin, whole.begin);
  EXPECT_LE(stack.end, whole.end);
  expect_readable(stack);
}

[[gnu::noinline]] void deeper(int pages) {
  volatile char page[4096];
  page[0] = 0;
  if (pages > 0)
    deeper(pages - 1);
  else
    expect_own_stack();
  (void)page[0];
}

TEST(KnownStack, OfAThreadIsAllItsOwn) {
  std::thread([] {
    expect_own_stack();
    deeper(100);
    expect_own_stack();
  }).join();
}

/// A stack in memory that may be unmapped is never known, nor is what is between it and the thread's.
TEST(KnownStack, ForgetsOtherStacks) {
  std::thread([] {
    constexpr std::size_t k_size = 256 << 10;
    void* const memory = ::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    static ucontext_t back, other;
    static AddrRange known;
    ASSERT_EQ(getcontext(&other), 0);
    other.uc_stack.ss_sp = memory;
    other.uc_stack.ss_size = k_size;
    other.uc_link = &back;
    makecontext(
        &other, +[] { known = known_stack(address_here()); }, 0);
    ASSERT_EQ(swapcontext(&back, &other), 0);
    EXPECT_FALSE(known.contains(reinterpret_cast<std::uintptr_t>(memory) + k_size - 64));
    ::munmap(memory, k_size);
    expect_own_stack();
  }).join();
}

TEST(KnownStack, EndsWhereMemoryEnds) {
  constexpr std::size_t k_pages = 5;
  auto* const memory = static_cast<std::byte*>(
      ::mmap(nullptr, k_pages * k_page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(memory + 3 * k_page_size, k_page_size, PROT_NONE), 0);
  const Addr begin = reinterpret_cast<std::uintptr_t>(memory);
  EXPECT_EQ(first_unreadable_page(begin, begin + 2 * k_page_size), begin + 2 * k_page_size);
  EXPECT_EQ(first_unreadable_page(begin, begin + k_pages * k_page_size), begin + 3 * k_page_size);
  ::munmap(memory, k_pages * k_page_size);
}

// Modules.

TEST(LastingModules, AreTheProgramAndWhatItNeeds) {
  const auto module_of = [](const void* p) { return find_lasting_module(reinterpret_cast<std::uintptr_t>(p)); };
  EXPECT_NE(module_of(reinterpret_cast<const void*>(&row_of)), nullptr);
  EXPECT_NE(module_of(::dlsym(RTLD_DEFAULT, "printf")), nullptr);
  EXPECT_NE(module_of(::dlsym(RTLD_DEFAULT, "__cxa_throw")), nullptr);
  for (const void* const p :
       {reinterpret_cast<const void*>(&row_of), const_cast<const void*>(::dlsym(RTLD_DEFAULT, "printf"))}) {
    const Addr at = reinterpret_cast<std::uintptr_t>(p);
    Module found;
    ASSERT_TRUE(local_modules().find(at, found));
    const Module* const lasting = local_modules().find_lasting(at);
    ASSERT_NE(lasting, nullptr);
    EXPECT_EQ(lasting->range, found.range);
    EXPECT_EQ(lasting->text, found.text);
    EXPECT_EQ(lasting->load_bias, found.load_bias);
    EXPECT_STREQ(lasting->path, found.path);
    EXPECT_EQ(lasting->eh_frame_hdr.address, found.eh_frame_hdr.address);
    EXPECT_EQ(lasting->eh_segment.bytes.size(), found.eh_segment.bytes.size());
  }
  EXPECT_EQ(local_modules().find_lasting(module_of(reinterpret_cast<const void*>(&row_of))->range.begin), nullptr)
      << "no code";
  EXPECT_EQ(module_of(nullptr), nullptr);
  EXPECT_EQ(module_of(std::make_unique<int>().get()), nullptr);
  void* const handle = ::dlopen(PLUGIN_FOLDER "/plugin_bfd.so", RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  void* const inside = ::dlsym(handle, "plugin_entry_address");
  EXPECT_EQ(module_of(inside), nullptr);
  ModuleVersion version;
  EXPECT_TRUE(find_module_version(reinterpret_cast<std::uintptr_t>(inside), version));
  EXPECT_FALSE(version.is_lasting);
  ::dlclose(handle);
}

}  // namespace
}  // namespace jitunwind
