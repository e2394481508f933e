// Signed return addresses: a change of one on the stack is noticed before control goes there.
#include <asm/hwcap.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/builders/registration.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "tests/aarch64/a64_assembler.h"
#include "tests/aarch64/described_frames.h"
#include "tests/aarch64/frames.h"

namespace jitunwind::test {
namespace {

using Body = std::function<void()>;
using Signed = std::uint64_t (*)(void (*)(void*), void*);

bool cpu_signs() { return (::getauxval(AT_HWCAP) & HWCAP_PACA) != 0; }

struct Place {
  Signed function;
  const char* behind_call;
  const char* name;
};
constexpr std::array k_places{Place{&a64_signed, a64_signed_behind_call, "a64_signed"},
                              Place{&a64_signed_b, a64_signed_b_behind_call, "a64_signed_b"}};

/// The return addresses in the frame record of the signed frame and in that of its caller.
struct Slots {
  std::uint64_t* inner;
  std::uint64_t* outer;
};

struct Call {
  const Place& place;
  const std::function<void(const Slots&)>& body;
  std::uint64_t* outer = nullptr;
  std::uint64_t signature = 0;
};

/// Returns the slot of the calling frame, when `own` is the callee's record.
std::uint64_t* callers_slot(void* own) { return *static_cast<std::uint64_t**>(own) + 1; }

[[gnu::noinline]] void in_inner(void* argument) {
  auto* const call = static_cast<Call*>(argument);
  call->body({callers_slot(__builtin_frame_address(0)), call->outer});
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void in_outer(void* argument) {
  auto* const call = static_cast<Call*>(argument);
  call->outer = callers_slot(__builtin_frame_address(0));
  call->signature = call->place.function(&in_inner, call);
  asm volatile("" ::: "memory");
}

/// Two signed frames, one called by the other.
std::uint64_t in_signed_frames(const Place& place, const std::function<void(const Slots&)>& body) {
  Call call{place, body};
  (void)place.function(&in_outer, &call);
  return call.signature;
}

/// Walks with all registers, and returns how it ended.
struct Ended {
  std::vector<Addr> pcs;
  StopReason reason = StopReason::none;
  Error error;
  std::string why;
};
[[gnu::noinline]] Ended walk_now() {
  Ended ended;
  Walk walk = walk_here();
  for (const Frame& frame : walk) ended.pcs.push_back(frame.pc());
  ended.reason = walk.stop_reason();
  ended.error = walk.stop_error();
  ended.why = walk.why();
  return ended;
}

constexpr std::uint64_t k_address = (std::uint64_t{1} << 48) - 1, k_in_signature = std::uint64_t{1} << 53;

using Change = std::uint64_t (*)(const Slots&);
/// Values that an attacker may write who knows addresses and signatures but has no key. If the CPU does not sign, the
/// value is no address of code.
std::vector<Change> changes() {
  std::vector<Change> all{[](const Slots& slots) { return *slots.inner ^ k_in_signature; }};
  if (!cpu_signs()) return all;
  all.push_back([](const Slots& slots) { return *slots.inner & k_address; });
  all.push_back([](const Slots& slots) { return *slots.inner + 4; });
  all.push_back([](const Slots& slots) { return *slots.outer; });
  return all;
}
ErrorCode reason() { return cpu_signs() ? ErrorCode::bad_signature : ErrorCode::unknown_signature; }

/// Asks the CPU itself. Seven bits are a signature by chance, once in 128 times.
bool is_signed(std::uint64_t address, std::uint64_t sp) {
  const std::uint64_t plain = address & k_address;
  std::uint64_t by_a = 0, by_b = 0;
  asm("mov x17,%1; mov x16,%2; hint #8; mov %0,x17" : "=r"(by_a) : "r"(plain), "r"(sp) : "x16", "x17");
  asm("mov x17,%1; mov x16,%2; hint #10; mov %0,x17" : "=r"(by_b) : "r"(plain), "r"(sp) : "x16", "x17");
  return address == by_a || address == by_b;
}

/// Returns an address with another signature than either key makes: one of three bits at least leads to neither.
std::uint64_t unsigned_by_both(std::uint64_t address, std::uint64_t sp) {
  std::uint64_t bit = k_in_signature;
  while (bit > k_in_signature >> 2 && is_signed(address ^ bit, sp)) bit >>= 1;
  return address ^ bit;
}

/// Runs `body` with the inner frame's return address changed.
void in_changed_frame(const Place& place, Change change, const Body& body) {
  (void)in_signed_frames(place, [&](const Slots& slots) {
    const std::uint64_t before = *slots.inner;
    const std::uint64_t after = change(slots);
    const std::uint64_t sp_at_entry = reinterpret_cast<std::uintptr_t>(slots.inner + 1);
    *slots.inner = is_signed(after, sp_at_entry) ? unsigned_by_both(before, sp_at_entry) : after;
    EXPECT_FALSE(is_signed(*slots.inner, sp_at_entry));
    body();
    *slots.inner = before;
  });
}

// covers: RG14
TEST(Signing, WhatIsUnchangedIsAuthentic) {
  for (const Place& place : k_places)
    for (int round = 0; round < 3; ++round) {
      Ended ended;
      (void)in_signed_frames(place, [&](const Slots& slots) {
        EXPECT_TRUE(is_signed(*slots.inner, reinterpret_cast<std::uintptr_t>(slots.inner + 1)));
        ended = walk_now();
      });
      EXPECT_EQ(ended.reason, StopReason::outermost) << ended.why;
      EXPECT_EQ(std::ranges::count(ended.pcs, address_of(place.behind_call)), 2);
    }
}

// covers: RG14
TEST(Signing, WalksOfAddressesNeedNoRegistersBehindSignedFrames) {
  for (const Place& place : k_places)
    (void)in_signed_frames(place, [](const Slots&) {
      std::array<void*, 64> addresses;
      const auto walk = [&] { return static_cast<std::size_t>(jitunwind_backtrace(addresses.data(), 64, 1)); };
      for (int round = 0; round < 4; ++round) (void)walk();
      const std::uint64_t before = counted(Counter::chain_left);
      const std::size_t count = walk();
      EXPECT_EQ(counted(Counter::chain_left), before);
      const Ended ended = walk_now();
      ASSERT_GE(ended.pcs.size(), count);
      for (std::size_t i = 2; i <= count; ++i)
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(addresses[count - i]), ended.pcs[ended.pcs.size() - i]);
    });
}

// covers: RG14
TEST(Signing, StepsEndWhereAnAddressWasChanged) {
  for (const Place& place : k_places)
    for (const Change change : changes())
      in_changed_frame(place, change, [&] {
        for (int round = 0; round < 3; ++round) {
          const Ended ended = walk_now();
          EXPECT_EQ(ended.reason, StopReason::broken);
          EXPECT_EQ(ended.error.code, reason());
          EXPECT_EQ(ended.pcs.back(), address_of(place.behind_call));
          EXPECT_NE(ended.why.find(error_text(reason())), std::string::npos) << ended.why;
          EXPECT_NE(ended.why.find(std::string("in ") + place.name), std::string::npos) << ended.why;
        }
      });
}

// covers: EX14
TEST(Signing, ThrowsEndWhereAnAddressWasChanged) {
  for (const Place& place : k_places)
    for (const Change change : changes())
      in_changed_frame(place, change, [&] {
        _Unwind_Exception exception{};
        EXPECT_EQ(_Unwind_RaiseException(&exception), _URC_FATAL_PHASE1_ERROR);
      });
  const auto throw_in_changed_frame = [] {
    std::set_terminate([] { ::_exit(7); });
    try {
      in_changed_frame(k_places[0], changes()[0], [] { throw std::runtime_error("thrown"); });
    } catch (const std::runtime_error&) {
      ::_exit(8);
    }
  };
  EXPECT_EXIT(throw_in_changed_frame(), testing::ExitedWithCode(7), "");
}

// covers: RS01
TEST(Signing, NoCursorComesBehindAChangedAddressToResumeThere) {
  for (const Place& place : k_places)
    for (const Change change : changes())
      in_changed_frame(place, change, [&] {
        alignas(16) std::array<std::byte, k_context_size> context;
        jitunwind_capture_context(context.data());
        Cursor cursor = cursor_at(context.data(), Cursor::Top::returned_to);
        const Addr behind = address_of(place.behind_call);
        auto moved = cursor.step();
        while (moved && *moved && cursor.pc() != behind) moved = cursor.step();
        ASSERT_TRUE(moved && *moved);
        EXPECT_FALSE(cursor.step());
        EXPECT_EQ(cursor.pc(), behind);
      });
}

// covers: RG14
TEST(Signing, APcThatIsWrittenIsSignedForTheFrameThatReturnsThere) {
  for (const Place& place : k_places)
    (void)in_signed_frames(place, [](const Slots& slots) {
      alignas(16) std::array<std::byte, k_context_size> context;
      jitunwind_capture_context(context.data());
      Cursor cursor = cursor_at(context.data(), Cursor::Top::returned_to);
      const RegNum pc = cursor.space().arch.pc;
      const SaveLocation slot{SaveLocation::Kind::memory, k_no_reg, reinterpret_cast<std::uintptr_t>(slots.inner)};
      auto moved = cursor.step();
      while (moved && *moved && cursor.location(pc) != slot) moved = cursor.step();
      ASSERT_TRUE(moved && *moved);
      const Addr before = cursor.pc();
      const std::uint64_t sp_at_entry = reinterpret_cast<std::uintptr_t>(slots.inner + 1);
      for (const Addr now : {before + 4, before}) {  // the frame returns to the last one
        ASSERT_TRUE(cursor.set(pc, now));
        EXPECT_EQ(*slots.inner & k_address, now);
        EXPECT_TRUE(is_signed(*slots.inner, sp_at_entry));
        ASSERT_TRUE(cursor.get(pc));
        EXPECT_EQ(*cursor.get(pc), now);
        EXPECT_EQ(cursor.pc(), now);
      }
    });
}

/// Calls f(argument) with its return address signed, and returns the signature.
A64Assembler signing_code(std::uint32_t sign, std::uint32_t authenticate) {
  A64Assembler a;
  a.builder().sign_return_address(a.emit(sign));
  a.push_pair(aarch64::x29, aarch64::x30, 16);
  a.set_frame_pointer(0);
  a.emit(0xaa0003e9);  // mov x9,x0
  a.emit(0xaa0103e0);  // mov x0,x1
  a.call(9);
  a.emit(0xf94007e0);  // ldr x0,[sp,#8]
  a.pop_pair(aarch64::x29, aarch64::x30, 16);
  a.builder().authenticate_return_address(a.emit(authenticate));
  a.emit(0xca1e0000);  // eor x0,x0,x30
  a.ret();
  return a;
}

// covers: RG14
TEST(Signing, DescribedCodeSignsByEitherKey) {
  constexpr std::uint32_t k_paciasp = 0xd503233f, k_autiasp = 0xd50323bf, k_pacibsp = 0xd503237f,
                          k_autibsp = 0xd50323ff;
  for (const auto& [sign, authenticate] : {std::pair{k_paciasp, k_autiasp}, std::pair{k_pacibsp, k_autibsp}}) {
    const A64Assembler code = signing_code(sign, authenticate);
    const auto description = code.description();
    ASSERT_TRUE(description) << description.error().text();
    CodePages pages(4096);
    void* const at = pages.add(code.code());
    const auto registered = register_code(*description, at, static_cast<std::size_t>(code.size()));
    ASSERT_TRUE(registered);
    const Place place{reinterpret_cast<Signed>(at), static_cast<const char*>(at) + 24, ""};
    Ended ended;
    (void)in_signed_frames(place, [&](const Slots&) { ended = walk_now(); });
    EXPECT_EQ(ended.reason, StopReason::outermost) << ended.why;
    EXPECT_EQ(std::ranges::count(ended.pcs, address_of(place.behind_call)), 2);
    in_changed_frame(place, changes()[0], [&] { ended = walk_now(); });
    EXPECT_EQ(ended.error.code, reason());
    EXPECT_EQ(ended.pcs.back(), address_of(place.behind_call));
  }
}

}  // namespace
}  // namespace jitunwind::test
