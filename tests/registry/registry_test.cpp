// Contracts of register, cancel, retire and lookups in one thread.
#include "jitunwind/dyn_info/registry/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>

#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "tests/registry/procedures.h"
#include "tests/support/emulated.h"

namespace {

using namespace jitunwind;
using namespace registry_test;
using List = std::vector<const unw_dyn_info_t*>;

constexpr std::uint64_t k_code = 0x10000000;

// covers: DY04 DY05
TEST(Registry, RangeIsHalfOpenAndLinksMayHoldGarbage) {
  unw_dyn_info_t info = procedure(k_code, 48);
  ASSERT_EQ(error_of(register_procedure(&info)), "");
  EXPECT_EQ(lookup(k_code - 1), nullptr);
  EXPECT_EQ(lookup(k_code), &info);
  EXPECT_EQ(lookup(k_code + 47), &info);
  EXPECT_EQ(lookup(k_code + 48), nullptr);
  EXPECT_TRUE(may_be_registered(k_code));
  EXPECT_TRUE(may_be_registered(k_code + 47));
  EXPECT_FALSE(may_be_registered(k_code - 1));
  EXPECT_FALSE(may_be_registered(k_code + 48));
  EXPECT_EQ(listed(), List{&info});
  ASSERT_EQ(error_of(cancel_procedure(&info)), "");
  EXPECT_EQ(lookup(k_code), nullptr);
  EXPECT_FALSE(may_be_registered(k_code));
  EXPECT_EQ(listed(), List{});
}

// covers: DY52
TEST(Registry, GenerationCountsChangesAndIsEvenBetweenThem) {
  const unw_dyn_info_list_t* list = procedure_list();
  EXPECT_EQ(list->version, sizeof(void*) == 8 ? 1u : 2u);
  unw_dyn_info_t info = procedure(k_code, 1);
  // The first change of a process continues the count from the clock.
  ASSERT_TRUE(register_procedure(&info));
  ASSERT_TRUE(cancel_procedure(&info));
  const std::uint32_t before = list->generation;
  EXPECT_EQ(before % 2, 0u);
  ASSERT_TRUE(register_procedure(&info));
  EXPECT_EQ(list->generation, before + 2);
  ASSERT_TRUE(cancel_procedure(&info));
  EXPECT_EQ(list->generation, before + 4);
}

TEST(Registry, RefusalsChangeNothing) {
  unw_dyn_info_t first = procedure(k_code, 16);
  unw_dyn_info_t other = procedure(k_code + 16, 16);
  unw_dyn_info_t empty = procedure(k_code, 0);
  unw_dyn_info_t inverted = procedure(k_code, 16);
  inverted.end_ip = k_code - 16;
  ASSERT_TRUE(register_procedure(&first));
  const List before = listed();
  EXPECT_EQ(error_of(register_procedure(&first)), "already_registered");
  EXPECT_EQ(error_of(register_procedure(&empty)), "e_range");
  EXPECT_EQ(error_of(register_procedure(&inverted)), "e_range");
  EXPECT_EQ(error_of(register_procedure(nullptr)), "invalid_argument");
  EXPECT_EQ(error_of(register_procedures(std::array{&other, &first})), "already_registered");
  EXPECT_EQ(error_of(register_procedures(std::array{&other, &other})), "already_registered");
  EXPECT_EQ(error_of(register_procedures(std::array{&other, &empty})), "e_range");
  EXPECT_EQ(listed(), before);
  EXPECT_EQ(lookup(k_code + 16), nullptr);
  EXPECT_EQ(lookup(k_code), &first);
  ASSERT_TRUE(register_procedures(std::array{&other})) << "after having been refused";
  ASSERT_TRUE(cancel_procedures(std::array{&first, &other}));
}

// The membership test relies on nothing that a descriptor says.
TEST(Registry, CancelOfWhatIsNotRegisteredIsIgnored) {
  unw_dyn_info_t known = procedure(k_code, 16);
  ASSERT_TRUE(register_procedure(&known));
  unw_dyn_info_t copy = known;
  EXPECT_EQ(error_of(cancel_procedure(&copy)), "not_registered");
  unw_dyn_info_t garbage = procedure(k_code, 16);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t value = i < 4096 ? i : 0x9e3779b97f4a7c15 * i;
    std::memcpy(static_cast<void*>(&garbage.prev), &value, sizeof value);
    ASSERT_EQ(error_of(cancel_procedure(&garbage)), "not_registered") << i;
  }
  EXPECT_EQ(error_of(cancel_procedure(nullptr)), "not_registered");
  EXPECT_EQ(error_of(retire_procedures(std::array{&copy, &garbage})), "not_registered");
  EXPECT_EQ(listed(), List{&known});
  ASSERT_TRUE(cancel_procedure(&known));
  EXPECT_EQ(error_of(cancel_procedure(&known)), "not_registered") << "twice";
  ASSERT_TRUE(register_procedure(&known)) << "the same memory again";
  ASSERT_TRUE(cancel_procedure(&known));
}

TEST(Registry, BatchSkipsWhatIsNotRegisteredAndSaysSo) {
  unw_dyn_info_t a = procedure(k_code, 16), b = procedure(k_code + 16, 16), stranger = procedure(k_code + 32, 16);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  const Status status = cancel_procedures(std::array{&a, &stranger, &b});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::not_registered);
  EXPECT_EQ(status.error().at, reinterpret_cast<std::uintptr_t>(&stranger));
  EXPECT_EQ(listed(), List{});
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  const auto ticket = retire_procedures(std::array{&stranger, &a, &a, &b});
  ASSERT_TRUE(ticket);
  EXPECT_EQ(ticket->skipped, 2u);
  EXPECT_TRUE(reclaimed(*ticket));
  EXPECT_EQ(listed(), List{});
}

// covers: DY10
TEST(Registry, NewestWinsAndItsCancelGivesTheOlderOneBack) {
  unw_dyn_info_t a = procedure(k_code, 256);
  unw_dyn_info_t b = procedure(k_code + 64, 32);          // inside a, of another size class
  unw_dyn_info_t c = procedure(k_code - 4096, 3 * 4096);  // around both
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  EXPECT_EQ(lookup(k_code + 63), &a);
  EXPECT_EQ(lookup(k_code + 64), &b);
  EXPECT_EQ(lookup(k_code + 96), &a);
  ASSERT_TRUE(register_procedure(&c));
  EXPECT_EQ(lookup(k_code + 64), &c);
  EXPECT_EQ(lookup(k_code), &c);
  EXPECT_EQ(listed(), (List{&c, &b, &a}));
  ASSERT_TRUE(cancel_procedure(&b));
  EXPECT_EQ(lookup(k_code + 64), &c);
  ASSERT_TRUE(cancel_procedure(&c));
  EXPECT_EQ(lookup(k_code + 64), &a);
  ASSERT_TRUE(register_procedure(&b));
  EXPECT_EQ(lookup(k_code + 64), &b);
  ASSERT_TRUE(cancel_procedure(&b));
  EXPECT_EQ(lookup(k_code + 64), &a);
  ASSERT_TRUE(cancel_procedure(&a));
}

// Every size from one byte to all of the address space, at odd places: both ends of every size class.
// covers: DY11
TEST(Registry, AnySizeAnywhere) {
  const std::array<std::uint64_t, 5> places{1, 0x7fffffffffff, 0xffff800000000000, 0x5555deadbeef, 0x1fffffffffff3};
  for (const std::uint64_t place : places) {
    for (unsigned bits = 0; bits < 64; ++bits) {
      for (const std::uint64_t extra : {0u, 1u}) {
        const std::uint64_t size = (std::uint64_t{1} << bits) + extra;
        if (size > ~place) continue;
        unw_dyn_info_t info = procedure(place, size);
        ASSERT_TRUE(register_procedure(&info));
        EXPECT_EQ(lookup(place - 1), nullptr) << place << " " << size;
        EXPECT_EQ(lookup(place), &info) << place << " " << size;
        EXPECT_EQ(lookup(place + size / 2), &info) << place << " " << size;
        EXPECT_EQ(lookup(place + size - 1), &info) << place << " " << size;
        EXPECT_EQ(lookup(place + size), nullptr) << place << " " << size;
        ASSERT_TRUE(cancel_procedure(&info));
        EXPECT_EQ(lookup(place), nullptr);
      }
    }
  }
}

TEST(Registry, RetiredIsGoneAtOnceAndItsMemoryComesBack) {
  unw_dyn_info_t info = procedure(k_code, 16);
  ASSERT_TRUE(register_procedure(&info));
  const auto ticket = retire_procedures(std::array{&info});
  ASSERT_TRUE(ticket);
  EXPECT_EQ(lookup(k_code), nullptr);
  EXPECT_EQ(listed(), List{});
  EXPECT_TRUE(reclaimed(*ticket));
  EXPECT_TRUE(reclaimed(RetireTicket{}));
  EXPECT_TRUE(reclaimed({.serial = 7, .batch = 0xffffffff, .skipped = 0})) << "no such batch";
}

TEST(Registry, HeldProcedureIsNotReclaimedNorRegisteredAgain) {
  unw_dyn_info_t info = procedure(k_code, 16);
  ASSERT_TRUE(register_procedure(&info));
  RetireTicket ticket;
  {
    const ProcedureHold hold(k_code);
    ASSERT_EQ(hold.info(), &info);
    EXPECT_TRUE(still_registered(hold.key()));
    EXPECT_EQ(error_of(cancel_procedure(&info)), "in_signal_handler") << "would wait for its own caller";
    EXPECT_EQ(lookup(k_code), &info);
    const auto retired = retire_procedures(std::array{&info});
    ASSERT_TRUE(retired);
    ticket = *retired;
    EXPECT_FALSE(still_registered(hold.key()));
    EXPECT_EQ(lookup(k_code), nullptr);
    EXPECT_FALSE(reclaimed(ticket));
    EXPECT_EQ(error_of(register_procedure(&info)), "already_registered");
    EXPECT_EQ(error_of(cancel_procedure(&info)), "not_registered");
  }
  EXPECT_TRUE(reclaimed(ticket));
  ASSERT_TRUE(register_procedure(&info));
  ASSERT_TRUE(cancel_procedure(&info));
}

TEST(Registry, CallbackRunsOnceInALaterWriter) {
  int calls = 0;
  const auto count = [](void* argument) { ++*static_cast<int*>(argument); };
  unw_dyn_info_t a = procedure(k_code, 16), b = procedure(k_code + 16, 16);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  ASSERT_TRUE(retire_procedures(std::array{&a}, count, &calls));
  EXPECT_EQ(calls, 0) << "never in retire";
  ASSERT_TRUE(cancel_procedure(&b));
  EXPECT_EQ(calls, 1);
  ASSERT_TRUE(register_procedure(&a));
  const auto ticket = retire_procedures(std::array{&a}, count, &calls);
  EXPECT_TRUE(reclaimed(*ticket));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(reclaimed(*ticket));
  EXPECT_EQ(calls, 2);
  const auto nothing = retire_procedures({}, count, &calls);
  EXPECT_TRUE(reclaimed(*nothing));
  EXPECT_EQ(calls, 3);
}

// A callback may use the registry.
TEST(Registry, CallbackMayRegister) {
  static unw_dyn_info_t again = procedure(k_code, 16);
  ASSERT_TRUE(register_procedure(&again));
  const auto ticket = retire_procedures(
      std::array{&again}, [](void*) { EXPECT_TRUE(register_procedure(&again)); }, nullptr);
  EXPECT_TRUE(reclaimed(*ticket));
  EXPECT_EQ(lookup(k_code), &again);
  ASSERT_TRUE(cancel_procedure(&again));
}

TEST(Registry, HoldsNestInAnyNumberUpToTheLimit) {
  unw_dyn_info_t info = procedure(k_code, 16);
  ASSERT_TRUE(register_procedure(&info));
  std::vector<std::unique_ptr<ProcedureHold>> holds;
  for (int i = 0; i < 31; ++i) {
    holds.push_back(std::make_unique<ProcedureHold>(k_code));
    EXPECT_EQ(holds.back()->info(), &info);
  }
  const ProcedureHold one_more(k_code);
  EXPECT_EQ(one_more.info(), nullptr);
  EXPECT_TRUE(one_more.failed());
  while (!holds.empty()) holds.pop_back();
  EXPECT_EQ(lookup(k_code), &info);
  ASSERT_TRUE(cancel_procedure(&info));
}

// 10^5 operations against the obvious model: a vector in the order of registration.
// covers: DY02
TEST(Registry, RandomOperationsAgreeWithAModel) {
  std::mt19937_64 random(20240607);
  constexpr std::size_t k_descriptors = 300;
  std::vector<unw_dyn_info_t> pool(k_descriptors);
  std::vector<unw_dyn_info_t*> model;  // oldest first
  const auto expected = [&](std::uint64_t pc) -> const unw_dyn_info_t* {
    for (auto it = model.rbegin(); it != model.rend(); ++it) {
      if (pc >= (*it)->start_ip && pc < (*it)->end_ip) return *it;
    }
    return nullptr;
  };
  const auto any_of = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const auto random_size = [&] {  // stubs, functions, arenas: overlaps are the rule
    const std::array<std::uint64_t, 6> limits{16, 128, 1024, 8192, 1u << 20, std::uint64_t{1} << 30};
    return 1 + random() % limits[any_of(limits.size())];
  };
  std::size_t lookups = 0, operations = 0;
  for (; operations < jitunwind::test::repetitions(100'000); ++operations) {
    unw_dyn_info_t& info = pool[any_of(k_descriptors)];
    const auto at = std::find(model.begin(), model.end(), &info);
    if (at == model.end()) {
      info = procedure(k_code + random() % 65536, random_size());
      ASSERT_TRUE(register_procedure(&info));
      model.push_back(&info);
    } else if (random() % 3 != 0) {
      ASSERT_TRUE(cancel_procedure(&info));
      model.erase(at);
    } else {
      std::vector<unw_dyn_info_t*> batch;
      for (std::size_t i = 0, n = any_of(8); i < n; ++i) batch.push_back(model[any_of(model.size())]);
      std::sort(batch.begin(), batch.end());
      batch.erase(std::unique(batch.begin(), batch.end()), batch.end());
      for (unw_dyn_info_t* one : batch) model.erase(std::find(model.begin(), model.end(), one));
      if (random() % 2 == 0) {
        ASSERT_TRUE(cancel_procedures(batch));
      } else {
        const auto ticket = retire_procedures(batch);
        ASSERT_TRUE(ticket);
        ASSERT_TRUE(reclaimed(*ticket));
      }
    }
    for (int i = 0; i < 3; ++i, ++lookups) {
      const std::uint64_t pc = k_code - 100 + random() % 66000;
      ASSERT_EQ(lookup(pc), expected(pc)) << "operation " << operations;
    }
    if (operations % 1000 == 0) {
      ASSERT_EQ(listed(), List(model.rbegin(), model.rend()));
      ASSERT_EQ(registry_statistics().registered, model.size());
    }
  }
  ASSERT_TRUE(cancel_procedures(model));
  EXPECT_EQ(listed(), List{});
  EXPECT_EQ(registry_statistics().registered, 0u);
  std::printf("%zu operations, %zu lookups agree with the model\n", operations, lookups);
}

// covers: DY02
TEST(Registry, HundredThousandInRandomOrder) {
  constexpr std::size_t k_count = jitunwind::test::repetitions(100'000);
  std::mt19937_64 random(7);
  std::vector<unw_dyn_info_t> pool;
  for (std::size_t i = 0; i < k_count; ++i) pool.push_back(procedure(k_code + 16 * i, 16));
  std::vector<std::size_t> order(k_count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) ASSERT_TRUE(register_procedure(&pool[i]));
  for (std::size_t i = 0; i < k_count; ++i) ASSERT_EQ(lookup(k_code + 16 * i + 15), &pool[i]);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<bool> gone(k_count);
  for (const std::size_t i : order) {
    ASSERT_TRUE(cancel_procedure(&pool[i]));
    gone[i] = true;
    ASSERT_EQ(lookup(pool[i].start_ip), nullptr);
    const auto other = static_cast<std::size_t>(random() % k_count);
    ASSERT_EQ(lookup(pool[other].start_ip), gone[other] ? nullptr : &pool[other]);
  }
  EXPECT_EQ(listed(), List{});
}

/// Nodes are scattered in every way: descriptors side by side and apart, gone and back in any order, some at a place
/// that belonged to another before.
TEST(Registry, DescriptorsThatComeBackElsewhereAreFoundAndListedInOrder) {
  constexpr std::size_t k_count = jitunwind::test::repetitions(12'000);
  std::mt19937_64 random(8);
  std::vector<unw_dyn_info_t> near(k_count);
  std::vector<std::unique_ptr<unw_dyn_info_t>> apart;
  std::vector<unw_dyn_info_t*> all;
  for (std::size_t i = 0; i < k_count; ++i) {
    near[i] = procedure(k_code + 64 * i, 40);
    apart.push_back(std::make_unique<unw_dyn_info_t>(procedure(k_code + 64 * (k_count + i), 40)));
    all.insert(all.end(), {&near[i], apart.back().get()});
  }
  List expected;
  for (int round = 0; round < 4; ++round) {
    std::shuffle(all.begin(), all.end(), random);
    const std::size_t staying = all.size() / 3;
    for (unw_dyn_info_t* info : all) {
      if (registration_of(info).node == 0) {
        ASSERT_TRUE(register_procedure(info));
      }
    }
    std::shuffle(all.begin(), all.end(), random);
    for (std::size_t i = staying; i < all.size(); ++i) {
      ASSERT_TRUE(cancel_procedure(all[i]));
      ASSERT_EQ(error_of(cancel_procedure(all[i])), "not_registered");
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(lookup(all[i]->start_ip), i < staying ? all[i] : nullptr);
      ASSERT_EQ(registration_of(all[i]).node != 0, i < staying);
    }
    expected.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(staying));
    std::sort(expected.begin(), expected.end(), [](const unw_dyn_info_t* a, const unw_dyn_info_t* b) {
      return registration_of(const_cast<unw_dyn_info_t*>(a)).registration >
             registration_of(const_cast<unw_dyn_info_t*>(b)).registration;
    });
    ASSERT_EQ(listed(), expected);
  }
  for (const unw_dyn_info_t* info : expected) ASSERT_TRUE(cancel_procedure(const_cast<unw_dyn_info_t*>(info)));
  EXPECT_EQ(listed(), List{});
}

TEST(Registry, ScatteredDescriptorsTakeNoMoreMemory) {
  constexpr std::size_t k_count = jitunwind::test::repetitions(200'000);
  constexpr std::size_t k_apart = 1024;
  std::vector<std::byte> memory(k_count * k_apart);
  const auto at = [&](std::size_t i) {
    void* place = &memory[i * k_apart];
    std::size_t room = k_apart;
    return static_cast<unw_dyn_info_t*>(std::align(alignof(unw_dyn_info_t), sizeof(unw_dyn_info_t), place, room));
  };
  const std::size_t before = registry_statistics().library_bytes;
  for (std::size_t i = 0; i < k_count; ++i) {
    new (at(i)) unw_dyn_info_t(procedure(k_code + 64 * i, 64));
    ASSERT_TRUE(register_procedure(at(i)));
  }
  const std::size_t bytes = registry_statistics().library_bytes - before;
  for (std::size_t i = 0; i < k_count; ++i) ASSERT_TRUE(cancel_procedure(at(i)));
  std::printf("%zu bytes a procedure\n", bytes / k_count);
  constexpr std::size_t k_begun = std::size_t{4} << 12;  // pages that are not full
  EXPECT_LE(bytes, 88 * k_count + k_begun);
}

}  // namespace
