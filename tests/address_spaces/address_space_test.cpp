// Address spaces made of callbacks, through libunwind's C interface.
#include "tests/address_spaces/address_spaces.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <set>
#include <thread>
#include <utility>

#include "tests/support/counted_allocations.h"
#include "tests/support/last_page.h"

extern "C" unw_addr_space_t (*const jitunwind_test_create_in_c)(unw_accessors_t*, int);  // libunwind_abi_test.c

namespace jitunwind::test {
namespace {

// covers: AS01 AS02 AS06 AS08 AC01 AC05 AC06 AC10 AC11
TEST_F(AddressSpaces, AreWalkedThroughTheirCallbacks) {
  create();
  const unw_accessors_t passed = accessors;
  accessors = {};
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  EXPECT_EQ(std::memcmp(unw_get_accessors(space), &passed, sizeof passed), 0);
  EXPECT_EQ(target.count("find"), 3u);
  EXPECT_EQ(target.count("put"), 3u);
  EXPECT_EQ(target.count("list"), 3u);
  EXPECT_EQ(target.count("find without"), 0u);
}

// covers: AC01
TEST_F(AddressSpaces, CallingFramesAreLookedUpBeforeTheirAddress) {
  (void)walk();
  std::vector<unw_word_t> asked;
  for (const auto& call : target.calls)
    if (call.what == "find") asked.push_back(call.at);
  EXPECT_EQ(asked, (std::vector<unw_word_t>{k_code + 0x20, k_code + 0x101f, k_code + 0x201f}));
}

// covers: AS01 AS03
TEST_F(AddressSpaces, ByteOrders) {
  for (const int order : {0, __LITTLE_ENDIAN}) {
    const unw_addr_space_t made = unw_create_addr_space(&accessors, order);
    EXPECT_NE(made, nullptr);
    unw_destroy_addr_space(made);
  }
  for (const int order : {__BIG_ENDIAN, __PDP_ENDIAN, 4711, -1}) {
    const unw_addr_space_t made = unw_create_addr_space(&accessors, order);
    EXPECT_EQ(made != nullptr, order == __BIG_ENDIAN && k_arch.bi_endian) << order;
    if (made) unw_destroy_addr_space(made);
  }
  EXPECT_EQ(unw_create_addr_space(nullptr, 0), nullptr);
}

/// C takes the function's address, too. Every member of the structure belongs to the space.
// covers: AS14
TEST_F(AddressSpaces, AreMadeByAFunction) {
  unw_addr_space_t (*const make)(unw_accessors_t*, int) = &unw_create_addr_space;
  EXPECT_EQ(make, jitunwind_test_create_in_c);
  accessors.get_elf_filename = [](unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) { return -1; };
  accessors.get_proc_ip_range = [](unw_addr_space_t, unw_word_t, unw_word_t*, unw_word_t*, void*) { return -2; };
  accessors.ptrauth_insn_mask = [](unw_addr_space_t, void*) { return unw_word_t{3}; };
  target.expected_space = space = jitunwind_test_create_in_c(&accessors, 0);
  ASSERT_NE(space, nullptr);
  EXPECT_EQ(std::memcmp(unw_get_accessors(space), &accessors, sizeof accessors), 0);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
}

// covers: AS01
TEST_F(AddressSpaces, AreNotMadeWithoutMemory) {
  unw_addr_space_t made = nullptr;
  {
    const NoMemory here;
    made = unw_create_addr_space(&accessors, 0);
  }
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
}

/// Each thread makes its own space, which walks.
// covers: AS04 SF04
TEST_F(AddressSpaces, AreMadeAndDestroyedByThreads) {
  constexpr int k_threads = 8, k_times = 200;
  std::array<std::vector<unw_addr_space_t>, k_threads> kept;
  std::vector<std::thread> threads;
  std::atomic<int> complete{0};
  for (auto& of_thread : kept)
    threads.emplace_back([&] {
      RecordingTarget own;
      own.memory = target.memory;
      own.registers = target.registers;
      own.find = target.find;
      for (int k = 0; k < k_times; ++k) {
        const unw_addr_space_t made = unw_create_addr_space(&accessors, 0);
        own.expected_space = made;
        unw_cursor_t cursor;
        int steps = 0;
        if (unw_init_remote(&cursor, made, &own) == 0)
          while (unw_step(&cursor) > 0) ++steps;
        complete += made && steps == 2;
        if (k % 20 == 0)
          of_thread.push_back(made);
        else
          unw_destroy_addr_space(made);
      }
      complete -= own.mistakes.empty() ? 0 : k_times;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complete, k_threads * k_times);
  std::set<unw_addr_space_t> different;
  for (const auto& of_thread : kept) different.insert(of_thread.begin(), of_thread.end());
  EXPECT_EQ(different.size(), k_threads * k_times / 20u);
  for (const unw_addr_space_t made : different) unw_destroy_addr_space(made);
}

/// The argument selects, for example, a thread of the target: cursors with two of them take turns, and run at the same
/// time.
// covers: AS12
TEST_F(AddressSpaces, ServeSeveralArguments) {
  create();
  RecordingTarget other;
  other.memory = target.memory;
  other.registers = target.registers;
  other.find = target.find;
  other.expected_space = space;
  other.memory[k_stack + 8] = k_code + 0x2020;  // its second frame is the other's third
  unw_cursor_t cursor, other_cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_EQ(unw_init_remote(&other_cursor, space, &other), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_GT(unw_step(&other_cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1020);
  EXPECT_EQ(reg(other_cursor, UNW_REG_IP), k_code + 0x2020);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x2020);
  ASSERT_EQ(unw_set_reg(&cursor, k_kept, 0x123), 0);
  EXPECT_EQ(target.registers[k_kept], 0x123u);
  EXPECT_EQ(other.registers[k_kept], 0xbu);

  const auto second_ips = [this](RecordingTarget& of) {
    std::set<unw_word_t> seen;
    for (int k = 0; k < 500; ++k) {
      unw_cursor_t own;
      EXPECT_EQ(unw_init_remote(&own, space, &of), 0);
      EXPECT_GT(unw_step(&own), 0);
      seen.insert(reg(own, UNW_REG_IP));
    }
    return seen;
  };
  std::set<unw_word_t> of_other;
  std::thread thread([&] { of_other = second_ips(other); });
  EXPECT_EQ(second_ips(target), std::set<unw_word_t>{k_code + 0x1020});
  thread.join();
  EXPECT_EQ(of_other, std::set<unw_word_t>{k_code + 0x2020});
  EXPECT_EQ(other.mistakes, "");
}

/// A program that was built with the structure of libunwind 1.6 has nothing behind it.
// covers: AS11
TEST_F(AddressSpaces, TheShortStructureIsNotReadBeyondItsEnd) {
  constexpr std::size_t k_short = offsetof(unw_accessors_t, get_elf_filename);
  static_assert(k_short == 64);
  const LastPage page;
  auto* const bytes = page.last<std::byte>(k_short);
  std::memcpy(bytes, &accessors, k_short);
  space = UNW_OBJ(create_addr_space)(reinterpret_cast<unw_accessors_t*>(bytes), 0);
  ASSERT_NE(space, nullptr);
  target.expected_space = space;
  EXPECT_EQ(unw_get_accessors(space)->get_elf_filename, nullptr);
  EXPECT_EQ(unw_get_accessors(space)->get_proc_ip_range, nullptr);
  EXPECT_EQ(unw_get_accessors(space)->ptrauth_insn_mask, nullptr);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
}

// covers: AS09 AC17
TEST_F(AddressSpaces, NeedRegisters) {
  unw_cursor_t cursor;
  for (const int needed : {k_pc, static_cast<int>(UNW_REG_SP)}) {
    const auto kept = target.registers.extract(needed);
    EXPECT_EQ(start(cursor), -UNW_EBADREG) << needed;
    target.registers.insert({kept.key(), kept.mapped()});
  }
  ASSERT_EQ(start(cursor), 0);
  target.failures["reg"] = -UNW_ENOMEM;
  EXPECT_EQ(start(cursor), -UNW_ENOMEM);
  EXPECT_EQ(unw_init_remote(&cursor, nullptr, &target), -UNW_EINVAL);
  unw_get_accessors(space)->access_reg = nullptr;
  EXPECT_EQ(start(cursor), -UNW_EINVAL);
}

// covers: AC11 RG01 AC17
TEST_F(AddressSpaces, RegistersThatTheOwnerDoesNotHaveAreHisError) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  EXPECT_EQ(reg(cursor, k_kept), 0xbu);
  unw_word_t value = 0;
  EXPECT_EQ(unw_get_reg(&cursor, k_other_kept, &value), -UNW_EBADREG);
  target.failures["reg"] = -UNW_EUNSPEC;
  EXPECT_EQ(unw_get_reg(&cursor, k_other_kept, &value), -UNW_EUNSPEC);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, k_kept), 0xbu);
  EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack + 16);
  EXPECT_EQ(unw_get_reg(&cursor, k_scratch, &value), -UNW_EBADREG);
}

struct Failure {
  const char* callback;
  int returned;
  int expected;
};
class Failures : public AddressSpaces, public testing::WithParamInterface<Failure> {};

/// Frames that were found stay, and answers are put back.
// covers: LU11 AC04 AC06 AC17
TEST_P(Failures, ReachTheCallerAsTheyAre) {
  create();
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  target.failures[GetParam().callback] = GetParam().returned;
  EXPECT_EQ(unw_step(&cursor), GetParam().expected);
  EXPECT_EQ(unw_step(&cursor), GetParam().expected);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1020);
}

INSTANTIATE_TEST_SUITE_P(
    Callbacks, Failures,
    testing::Values(Failure{"find", -UNW_ESTOPUNWIND, -UNW_ESTOPUNWIND}, Failure{"find", -UNW_EUNSPEC, -UNW_EUNSPEC},
                    Failure{"find", -UNW_EINVALIDIP, -UNW_EINVALIDIP}, Failure{"find", -UNW_EBADFRAME, -UNW_EBADFRAME},
                    Failure{"find", -UNW_ENOMEM, -UNW_ENOMEM}, Failure{"find", -UNW_EBADVERSION, -UNW_EBADVERSION},
                    Failure{"find", -4711, -4711}, Failure{"find", 3, -UNW_EUNSPEC},
                    Failure{"mem", -UNW_ENOMEM, -UNW_ENOMEM}, Failure{"mem", -4711, -4711},
                    Failure{"mem", 1, -UNW_EUNSPEC}, Failure{"list", -UNW_EINVALIDIP, -UNW_EINVALIDIP},
                    Failure{"list", 7, -UNW_EUNSPEC}));

/// A frame that is its own caller.
// covers: LU11
TEST_F(AddressSpaces, FramesThatRepeatAreBad) {
  target.memory[k_stack] = k_stack;
  target.memory[k_stack + 8] = k_code + 0x20;
  const auto [ips, ended] = walk();
  EXPECT_EQ(ips, (std::vector<unw_word_t>{k_code + 0x20, k_code + 0x20}));
  EXPECT_EQ(ended, -UNW_EBADFRAME);
}

// covers: LU11
TEST_F(AddressSpaces, UnknownCodeIsNoInfo) {
  target.find = nullptr;
  target.registers[k_fp] = 0;
  EXPECT_EQ(walk(), (std::pair{std::vector<unw_word_t>{k_code + 0x20}, -UNW_ENOINFO}));
}

// covers: AC02 PI02 PI07
TEST_F(AddressSpaces, ProceduresAreAskedForWithoutUnwindInfo) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  unw_proc_info_t info;
  ASSERT_EQ(unw_get_proc_info(&cursor, &info), 0);
  EXPECT_EQ(info.start_ip, k_code);
  EXPECT_EQ(info.end_ip, k_code + 0x40);
  EXPECT_EQ(info.handler, 0u);
  ASSERT_EQ(unw_get_proc_info_by_ip(space, k_code + 0x1001, &info, &target), 0);
  EXPECT_EQ(info.start_ip, k_code + 0x1000);
  EXPECT_EQ(unw_get_proc_info_by_ip(space, 0x10, &info, &target), -UNW_ENOINFO);
  target.failures["find without"] = -UNW_EBADVERSION;
  EXPECT_EQ(unw_get_proc_info_by_ip(space, k_code, &info, &target), -UNW_EBADVERSION);
  EXPECT_EQ(target.count("find"), 0u);
  EXPECT_EQ(target.count("put"), 0u);
}

// covers: AC14 AC15 PI11 PI12
TEST_F(AddressSpaces, NamesAreTheOwners) {
  target.name = "procedure";
  target.name_at = k_code - 0x60;
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  std::array<char, 32> name;
  unw_word_t offset = 0;
  for (const std::size_t size : {10u, 11u}) {
    ASSERT_EQ(unw_get_proc_name(&cursor, name.data(), size, &offset), 0);
    EXPECT_STREQ(name.data(), "procedure");
    EXPECT_EQ(offset, 0x80u);
  }
  EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), 9, nullptr), -UNW_ENOMEM);
  EXPECT_STREQ(name.data(), "procedur");
  ASSERT_EQ(unw_get_proc_name_by_ip(space, k_code + 1, name.data(), name.size(), &offset, &target), 0);
  EXPECT_EQ(offset, 0x61u);
  // A frame that has called is named by the call, and its offset is that of the return address.
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), &offset), 0);
  EXPECT_EQ(std::ranges::find(target.calls.rbegin(), target.calls.rend(), "name", &RecordingTarget::Call::what)->at,
            k_code + 0x101f);
  EXPECT_EQ(offset, 0x1080u);
  target.failures["name"] = -UNW_EUNSPEC;
  EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), &offset), -UNW_EUNSPEC);
  unw_get_accessors(space)->get_proc_name = nullptr;
  EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), &offset), -UNW_ENOINFO);
  EXPECT_STREQ(name.data(), "");
}

/// The list comes first, and its procedure has no frame at all: its caller is in front of the others.
// covers: AC07 DY48
TEST_F(AddressSpaces, ListedProceduresComeFirst) {
  const WrittenList list(target, k_code, k_code + 0x40);
  return_from_leaf(k_stack - 0x40, k_code + 0x1020);
  const std::vector<unw_word_t> ips{k_code + 0x20, k_code + 0x1020, k_code + 0x1020, k_code + 0x2020};
  EXPECT_EQ(walk(), (std::pair{ips, 0}));
  EXPECT_EQ(target.count("find"), 3u);
  std::array<char, 32> name;
  unw_word_t offset = 0;
  ASSERT_EQ(unw_get_proc_name_by_ip(space, k_code + 5, name.data(), name.size(), &offset, &target), 0);
  EXPECT_STREQ(name.data(), "listed");
  EXPECT_EQ(offset, 5u);
}

// covers: AC07 AC09
TEST_F(AddressSpaces, WithoutListNoneIsRead) {
  EXPECT_EQ(walk().second, 0);
  for (const auto& call : target.calls) EXPECT_FALSE(call.what == "mem" && call.at < 0x1000);
  target.failures["list"] = -UNW_ENOINFO;
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  unw_get_accessors(space)->get_dyn_info_list_addr = nullptr;
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
}

// covers: AC08 CA01 CA02 CA03 CA04
TEST_F(AddressSpaces, ThePolicySaysWhetherTheListsAddressIsKept) {
  const WrittenList list(target, 0x10, 0x20);
  const auto asked = [&] {
    target.calls.clear();
    EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
    return target.count("list");
  };
  EXPECT_EQ(asked(), 3u);
  EXPECT_EQ(asked(), 3u);
  for (const auto policy : {UNW_CACHE_GLOBAL, UNW_CACHE_PER_THREAD}) {
    ASSERT_EQ(unw_set_caching_policy(space, UNW_CACHE_NONE), 0);
    ASSERT_EQ(unw_set_caching_policy(space, policy), 0);
    EXPECT_EQ(asked(), 1u);
    EXPECT_EQ(asked(), 0u);
    ASSERT_EQ(unw_set_caching_policy(space, policy), 0);
    EXPECT_EQ(asked(), 0u);
    unw_flush_cache(space, 0, 0);
    EXPECT_EQ(asked(), 1u);
    unw_flush_cache(space, k_code, k_code + 1);
    EXPECT_EQ(asked(), 1u);
  }
  EXPECT_EQ(unw_set_caching_policy(space, static_cast<unw_caching_policy_t>(3)), -UNW_EINVAL);
  EXPECT_EQ(unw_set_caching_policy(nullptr, UNW_CACHE_NONE), -UNW_EINVAL);
}

/// Procedures that a target registers and cancels are seen without a flush even if the address of its list is cached.
// covers: CA02 CA08
TEST_F(AddressSpaces, ProceduresThatATargetReplacesAreSeenUnderEveryPolicy) {
  create();
  const std::vector<unw_word_t> with_leaf{k_code + 0x20, k_code + 0x1020, k_code + 0x1020, k_code + 0x2020};
  return_from_leaf(k_stack - 0x40, k_code + 0x1020);
  for (const auto policy : {UNW_CACHE_NONE, UNW_CACHE_GLOBAL, UNW_CACHE_PER_THREAD}) {
    ASSERT_EQ(unw_set_caching_policy(space, policy), 0);
    for (int time = 0; time < 3; ++time) {
      const WrittenList list(target, k_code, k_code + 0x40);
      EXPECT_EQ(walk(), (std::pair{with_leaf, 0})) << policy;
      target.memory[WrittenList::k_head + 8] = 0;
      EXPECT_EQ(walk(), (std::pair{all_ips(), 0})) << policy;
    }
  }
}

/// The callback answers for code that find_proc_info does not know. The mask of signatures is asked for on CPUs that
/// sign return addresses.
// covers: AC16 PI01
TEST_F(AddressSpaces, RangesOfProceduresAreTheOwnersWhereHeKnowsNoMore) {
  static constexpr unw_word_t k_unknown = k_code + 0x3000;
  unw_cursor_t cursor;
  unw_proc_info_t info;
  create();
  EXPECT_EQ(unw_get_proc_info_by_ip(space, k_unknown, &info, &target), -UNW_ENOINFO) << "there is no such callback";
  static int returned;
  unw_get_accessors(space)->get_proc_ip_range = [](unw_addr_space_t as, unw_word_t ip, unw_word_t* start,
                                                   unw_word_t* end, void* argument) {
    EXPECT_EQ(as, RecordingTarget::of(argument).expected_space);
    EXPECT_GE(ip, k_unknown);
    *start = ip - 0x10;
    *end = ip + 0x20;
    return returned;
  };
  unw_get_accessors(space)->ptrauth_insn_mask = [](unw_addr_space_t, void*) {
    EXPECT_NE(k_arch.sign_state, k_no_reg) << "asked on a CPU that signs no addresses";
    return unw_word_t{0};
  };
  returned = 0;
  target.registers[k_pc] = k_unknown;
  ASSERT_EQ(start(cursor), 0);
  for (const bool by_cursor : {false, true}) {
    std::memset(&info, 0x5a, sizeof info);
    ASSERT_EQ(by_cursor ? unw_get_proc_info(&cursor, &info) : unw_get_proc_info_by_ip(space, k_unknown, &info, &target),
              0);
    EXPECT_EQ(info.start_ip, k_unknown - 0x10);
    EXPECT_EQ(info.end_ip, k_unknown + 0x20);
    EXPECT_EQ(info.handler | info.lsda | info.gp | info.flags, 0u);
    EXPECT_EQ(info.unwind_info, nullptr);
  }
  returned = -UNW_ENOINFO;
  EXPECT_EQ(unw_get_proc_info(&cursor, &info), -UNW_ENOINFO);
  EXPECT_EQ(info.start_ip | info.end_ip, 0u) << "then all is 0";
  returned = -4711;
  EXPECT_EQ(unw_get_proc_info(&cursor, &info), -4711);
  ASSERT_EQ(unw_get_proc_info_by_ip(space, k_code, &info, &target), 0);
  EXPECT_EQ(info.end_ip, k_code + 0x40);
}

/// The callbacks that libunwind 1.6 did not have.
// covers: AC16
TEST_F(AddressSpaces, FilesAreTheOwnersWhereHeSaysThem) {
  std::array<char, 16> file;
  unw_word_t offset = 0;
  const auto ask = [&](unw_word_t ip) {
    return unw_get_elf_filename_by_ip(space, ip, file.data(), file.size(), &offset, &target);
  };
  create();
  EXPECT_EQ(ask(k_code), -UNW_ENOINFO);
  EXPECT_STREQ(file.data(), "");
  unw_get_accessors(space)->get_elf_filename = [](unw_addr_space_t, unw_word_t ip, char* buffer, size_t size,
                                                  unw_word_t* at, void*) {
    *at = ip - k_code;
    return std::snprintf(buffer, size, "%s", "a program of his") < static_cast<int>(size) ? 0 : -UNW_ENOMEM;
  };
  EXPECT_EQ(ask(k_code + 5), -UNW_ENOMEM);
  EXPECT_STREQ(file.data(), "a program of hi");
  EXPECT_EQ(offset, 5u);
  const WrittenList list(target, k_code, k_code + 0x40);
  EXPECT_EQ(ask(k_code + 5), -UNW_ENOINFO) << "made at run time";
}

/// No rows of targets are kept, so there is nothing to make room for; but a flag is refused.
// covers: CA06
TEST_F(AddressSpaces, HaveRoomForWhatTheyKeep) {
  const WrittenList list(target, 0x10, 0x20);
  create();
  ASSERT_EQ(unw_set_caching_policy(space, UNW_CACHE_GLOBAL), 0);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  EXPECT_EQ(unw_set_cache_size(space, 1000, 1), -UNW_EINVAL);
  EXPECT_EQ(unw_set_cache_size(nullptr, 1000, 0), -UNW_EINVAL);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  EXPECT_EQ(target.count("list"), 1u);
  EXPECT_EQ(unw_set_cache_size(space, ~std::size_t{0}, 0), 0);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  EXPECT_EQ(target.count("list"), 2u) << "it flushes";
}

// covers: RG01
TEST_F(AddressSpaces, WritesGoToWhereARegisterIs) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_EQ(unw_set_reg(&cursor, k_kept, 0x123), 0);
  EXPECT_EQ(target.registers[k_kept], 0x123u);
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_EQ(unw_set_reg(&cursor, k_kept, 0x124), 0);
  EXPECT_EQ(target.registers[k_kept], 0x124u);
  ASSERT_EQ(unw_set_reg(&cursor, k_fp, 0x125), 0);
  EXPECT_EQ(target.memory[k_stack], 0x125u);
  EXPECT_EQ(reg(cursor, k_fp), 0x125u);
  target.failures["mem"] = -UNW_EUNSPEC;
  EXPECT_EQ(unw_set_reg(&cursor, k_fp, 0x126), -UNW_EUNSPEC);
  target.failures["reg"] = -4711;
  EXPECT_EQ(unw_set_reg(&cursor, k_kept, 0x126), -4711);
}

/// The next step uses the written values: a changed IP is that of the next instruction, here of a procedure that has
/// not pushed anything yet. It is not an address behind a call at the end of the code before.
// covers: RG07
TEST_F(AddressSpaces, WhatWasWrittenCountsForTheNextStep) {
  unw_cursor_t cursor;
  return_from_leaf(k_stack - 0x200, k_code + 0x2020);
  ASSERT_EQ(start(cursor), 0);
  target.memory[k_stack - 0x40] = 0xbad;
  ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_IP, k_code + 0x1000), 0);
  ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_SP, k_stack - 0x200), 0);
  EXPECT_GT(unw_is_interrupted_frame(&cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x2020);
  EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack - 0x200 + k_pushed_by_call);
  EXPECT_EQ(reg(cursor, k_fp), k_stack);
  EXPECT_EQ(unw_is_interrupted_frame(&cursor), 0);
  ASSERT_EQ(unw_set_reg(&cursor, k_fp, k_stack + 0x100), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack + 0x110) << "by the frame pointer that was written";
}

/// Registers that are right already are not written.
// covers: RS05 AC13
TEST_F(AddressSpaces, ResumeEstablishesTheFrameAndAsksOnce) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_EH, 42), 0);
  target.calls.clear();
  EXPECT_EQ(unw_resume(&cursor), 0);
  EXPECT_EQ(target.registers[k_pc], k_code + 0x1020);
  EXPECT_EQ(target.registers[UNW_REG_SP], k_stack + 16);
  EXPECT_EQ(target.registers[k_fp], k_stack + 0x100);
  EXPECT_EQ(target.registers[k_scratch], 42u);
  EXPECT_EQ(target.registers[k_kept], 0xbu);
  EXPECT_EQ(target.count("reg", true), 4u);
  EXPECT_EQ(target.count("resume"), 1u);
  EXPECT_EQ(target.calls.back().what, "resume");
}

// covers: RS05 RS06
TEST_F(AddressSpaces, ResumeFailsWithTheCallbacksWords) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  target.failures["resume"] = -4711;
  EXPECT_EQ(unw_resume(&cursor), -4711);
  target.failures["reg"] = -UNW_ENOMEM;
  EXPECT_EQ(unw_resume(&cursor), -UNW_ENOMEM);
  unw_get_accessors(space)->resume = nullptr;
  target.calls.clear();
  EXPECT_EQ(unw_resume(&cursor), -UNW_EINVAL);
  EXPECT_TRUE(target.calls.empty());
}

/// Two targets at once each answer for themselves.
// covers: AS10
TEST_F(AddressSpaces, OfSeveralTargetsDoNotMix) {
  unw_cursor_t cursor, other_cursor;
  ASSERT_EQ(start(cursor), 0);
  RecordingTarget other;
  other.memory = target.memory;
  other.registers = target.registers;
  other.find = target.find;
  other.memory[k_stack + 8] = k_code + 0x2020;
  unw_accessors_t same = RecordingTarget::accessors();
  const unw_addr_space_t second = unw_create_addr_space(&same, 0);
  other.expected_space = second;
  ASSERT_EQ(unw_init_remote(&other_cursor, second, &other), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_GT(unw_step(&other_cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1020);
  EXPECT_EQ(reg(other_cursor, UNW_REG_IP), k_code + 0x2020);
  unw_destroy_addr_space(second);
  EXPECT_EQ(other.mistakes, "");
}

}  // namespace
}  // namespace jitunwind::test
