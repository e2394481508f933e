// C++ exceptions through described code of AArch64: built for libgcc_s and for the library's own runtime.
#include <gtest/gtest.h>
#include <unwind.h>

#include <array>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include "jitunwind/builders/described_rows.h"
#include "jitunwind/builders/frame_handler.h"
#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/aarch64/a64_assembler.h"
#include "tests/aarch64/described_frames.h"
#include "tests/aarch64/frames.h"
#include "tests/builders/placed_eh_frame.h"

extern "C" const void* _Unwind_Find_FDE(const void* pc, void* bases);

namespace jitunwind::test {
namespace {

using namespace aarch64;
using Helper = std::int64_t (*)(std::int64_t);
using Function = std::int64_t (*)(Helper, std::int64_t);

struct Counted {
  explicit Counted(int& count) : count_(count) { ++count; }
  ~Counted() { --count_; }
  int& count_;
};

std::int64_t throw_number(std::int64_t number) { throw std::runtime_error(std::to_string(number)); }

using Body = std::function<void()>;
A64Arrival in_magic_frame(Body body) {
  A64Arrival arrival{};
  a64_magic([](void* argument) { (*static_cast<Body*>(argument))(); }, &body, &arrival);
  return arrival;
}

// covers: EX14
TEST(Aarch64Exceptions, PassDescribedFrames) {
  std::mt19937_64 random(7);
  CodePages pages(1 << 20);
  int caught = 0;
  int alive = 0;
  for (int i = 0; i < 300; ++i) {
    const RandomFrame frame = random_frame(random);
    ASSERT_TRUE(frame.description) << frame.description.error().text();
    void* const code = pages.add(frame.code);
    const auto registered = register_code(*frame.description, code, frame.code.size() * sizeof frame.code[0]);
    ASSERT_TRUE(registered);
    const auto call = reinterpret_cast<Function>(code);
    const A64Arrival arrival = in_magic_frame([&] {
      try {
        const Counted counted(alive);
        // The number is behind the last early return, so the procedure never calls and returns at its end.
        EXPECT_EQ(call(&throw_number, frame.early_returns + 1), k_frame_result);
      } catch (const std::runtime_error&) {
        ++caught;
      }
    });
    EXPECT_TRUE(preserved_are_magic(arrival)) << i;
  }
  EXPECT_GT(caught, 150);
  EXPECT_EQ(alive, 0);
}

TEST(Aarch64Exceptions, PassFramesThatMarksDescribe) {
  std::mt19937_64 random(8);
  CodePages pages(1 << 20);
  int caught = 0;
  for (int i = 0; i < 100; ++i) {
    std::mt19937_64 again = random;
    const RandomFrame frame = random_frame(random);
    ASSERT_TRUE(frame.description) << frame.description.error().text();
    MarkedFrame marked = random_marked_frame(again);
    ASSERT_EQ(marked.code, frame.code);
    void* const code = pages.add(frame.code);
    const auto begin = reinterpret_cast<std::uintptr_t>(code);
    const std::size_t size = frame.code.size() * sizeof frame.code[0];
    const auto registered = register_code(marked.marks, {.start = begin, .size = size});
    ASSERT_TRUE(registered) << registered.error().text();
    DescribedRows described(*frame.description, size);
    for (std::size_t at = 0; at < size; at += 4) {
      FrameRow row;
      const auto wanted = described.row(at);
      ASSERT_TRUE(wanted);
      ASSERT_TRUE(directive_row(*registered->info(), *host_arch(), CodeAddress::interrupted(begin + at), nullptr, row));
      ASSERT_EQ(to_text(row, *host_arch()), to_text(*wanted, *host_arch())) << i << ": +" << at;
    }
    const A64Arrival arrival = in_magic_frame([&] {
      try {
        EXPECT_EQ(reinterpret_cast<Function>(code)(&throw_number, frame.early_returns + 1), k_frame_result);
      } catch (const std::runtime_error&) {
        ++caught;
      }
    });
    EXPECT_TRUE(preserved_are_magic(arrival)) << i;
  }
  EXPECT_GT(caught, 50);
}

// covers: EX14
TEST(Aarch64Exceptions, PassSignedFrames) {
  int caught = 0;
  const A64Arrival arrival = in_magic_frame([&] {
    try {
      (void)a64_signed([](void*) { throw std::runtime_error("signed"); }, nullptr);
    } catch (const std::runtime_error& error) {
      caught += error.what() == std::string("signed");
    }
  });
  EXPECT_EQ(caught, 1);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

/// long f(long (*helper)(long)): stp; str x19; mov x19,#5; blr x0; L: add x0,x0,x19; ldr; ldp; ret; its landing pad
/// returns the exception's address plus x19 instead.
struct LandingCode {
  A64Assembler a;
  Instruction call{0, 0};
  std::int64_t pad = 0;

  LandingCode() {
    a.push_pair(x29, x30, 32);
    a.store(x19, 16);
    a.move_to(19, 5);
    call = a.call(0);
    a.builder().remember();
    leave();
    pad = a.size();
    leave();
  }
  void leave() {
    a.emit(0x8b130000);  // add x0,x0,x19
    a.load(x19, 16);
    a.pop_pair(x29, x30, 32);
    a.builder().restore(a.ret());
  }
};

std::int64_t caught_text(std::int64_t exception_and_5) {
  auto* const exception = reinterpret_cast<_Unwind_Exception*>(exception_and_5 - 5);
  // The object that __cxa_begin_catch() returns follows the header.
  const auto* const error = reinterpret_cast<std::runtime_error*>(exception + 1);
  const std::int64_t number = std::stol(error->what());
  _Unwind_DeleteException(exception);
  return number;
}

// covers: EX14
TEST(Aarch64Exceptions, LandWhereTheDescriptionSays) {
  LandingCode code;
  code.a.builder().call_site(code.call, code.pad).catches(typeid(std::exception));
  const auto description = code.a.description();
  ASSERT_TRUE(description) << description.error().text();
  CodePages pages(4096);
  void* const at = pages.add(code.a.code());
  const auto registered = register_code(*description, at, static_cast<std::size_t>(code.a.size()));
  ASSERT_TRUE(registered);
  const A64Arrival arrival = in_magic_frame([&] {
    EXPECT_EQ(caught_text(reinterpret_cast<std::int64_t (*)(Helper)>(at)(
                  [](std::int64_t) -> std::int64_t { return throw_number(1234); })),
              1234);
  });
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: EX14
TEST(Aarch64Exceptions, LandWhereAHandlerSays) {
  LandingCode code;
  Addr pad = 0;
  int asked = 0;
  code.a.builder().handled_by([&](const PassedFrame& frame) {
    ++asked;
    EXPECT_EQ(frame.reg(x19), 5u);
    return FrameDecision::catch_at(pad).with(x19, 5);
  });
  const auto description = code.a.description();
  ASSERT_TRUE(description) << description.error().text();
  CodePages pages(4096);
  void* const at = pages.add(code.a.code());
  pad = reinterpret_cast<std::uintptr_t>(at) + static_cast<Addr>(code.pad);
  const auto registered = register_code(*description, at, static_cast<std::size_t>(code.a.size()));
  ASSERT_TRUE(registered);
  const A64Arrival arrival = in_magic_frame([&] {
    EXPECT_EQ(caught_text(reinterpret_cast<std::int64_t (*)(Helper)>(at)(
                  [](std::int64_t) -> std::int64_t { return throw_number(4321); })),
              4321);
  });
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

/// Code that ends in the middle of an instruction matches nothing: docs/directives.md, "Validation".
TEST(Aarch64Exceptions, PassNoCodeThatWalksDoNotFind) {
  constexpr Addr k_code = 0x5'0000'0000;
  EhFrame frames;
  const Addr fde = frames.fde(k_code, 8) - frames.section.section().address + frames.placed().begin;
  for (const Addr size : {6u, 8u}) {
    unw_dyn_info_t info = procedure_of_fde({k_code, k_code + size}, fde);
    ASSERT_TRUE(register_procedure(&info));
    std::array<std::uintptr_t, 3> bases{};
    EXPECT_EQ(_Unwind_Find_FDE(reinterpret_cast<const void*>(k_code + 4), bases.data()) != nullptr, size == 8) << size;
    ASSERT_TRUE(cancel_procedure(&info));
  }
}

TEST(Aarch64Exceptions, PassFramesOfScalableVectors) {
  const std::uint64_t words = vector_words();
  if (words == 0) return;  // no code has such frames
  int caught = 0;
  const A64Arrival arrival = in_magic_frame([&] {
    try {
      a64_scalable([](void*) { throw_number(5); }, nullptr, words);
    } catch (const std::runtime_error& error) {
      caught = std::stoi(error.what());
    }
  });
  EXPECT_EQ(caught, 5);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

}  // namespace
}  // namespace jitunwind::test
