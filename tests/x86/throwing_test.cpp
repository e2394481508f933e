// C++ exceptions through described code of x86 with 32 bits, on the stock libgcc_s.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unwind.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

#include "jitunwind/builders/every_cpu.h"
#include "jitunwind/builders/frame_handler.h"
#include "jitunwind/builders/registration.h"
#include "tests/support/jit_frame.h"
#include "tests/x86/frames.h"

namespace jitunwind::test {
namespace {

using namespace x86;

struct Counted {
  explicit Counted(int& count) : count_(count) { ++count; }
  ~Counted() { --count_; }
  int& count_;
};

using Body = std::function<void()>;
X86Arrival in_magic_frame(Body body) {
  X86Arrival arrival{};
  x86_magic([](void* argument) { (*static_cast<Body*>(argument))(); }, &body, &arrival);
  return arrival;
}

// covers: EX14
TEST(X86Exceptions, PassDescribedFrames) {
  const JitFrame jit;
  int caught = 0;
  int alive = 0;
  for (int i = 0; i < 3; ++i) {
    const X86Arrival arrival = in_magic_frame([&] {
      try {
        const Counted counted(alive);
        jit([](void*) -> void* { throw std::runtime_error("thrown"); }, nullptr);
      } catch (const std::runtime_error& error) {
        caught += error.what() == std::string("thrown");
      }
    });
    EXPECT_TRUE(preserved_are_magic(arrival));
  }
  EXPECT_EQ(caught, 3);
  EXPECT_EQ(alive, 0);
}

/// long f(long (*helper)()): what the helper returns, plus 5; at its landing pad the exception's address plus 5.
constexpr std::uint8_t k_landing_code[] = {
    0x53,                          // push ebx
    0x83, 0xec, 0x08,              // sub esp, 8
    0xbb, 0x05, 0x00, 0x00, 0x00,  // mov ebx, 5
    0xff, 0x54, 0x24, 0x10,        // call [esp + 16]
    0x01, 0xd8,                    // add eax, ebx
    0x83, 0xc4, 0x08,              // add esp, 8
    0x5b,                          // pop ebx
    0xc3,                          // ret
    0x01, 0xd8,                    // add eax, ebx: the landing pad
    0x83, 0xc4, 0x08,              // add esp, 8
    0x5b,                          // pop ebx
    0xc3,                          // ret
};
constexpr Instruction k_call{9, 13};
constexpr std::int64_t k_pad = 20;

Builder described_landing_code() {
  Builder builder = describe("landing");
  builder.size(sizeof k_landing_code);
  builder.push({0, 1}, ebx).allocate({1, 4}, 8);
  builder.remember().deallocate({15, 18}, 8).pop({18, 19}, ebx).restore({19, 20});
  builder.deallocate({22, 25}, 8).pop({25, 26}, ebx);
  return builder;
}

class LandingCode {
 public:
  explicit LandingCode(const Builder& builder) {
    std::memcpy(code_, k_landing_code, sizeof k_landing_code);
    const auto description = builder.build();
    if (!description) throw std::runtime_error(description.error().text());
    registration_ = register_code(*description, code_, sizeof k_landing_code).value();
  }
  ~LandingCode() {
    (void)registration_.cancel();
    ::munmap(code_, k_page);
  }
  LandingCode(const LandingCode&) = delete;
  LandingCode& operator=(const LandingCode&) = delete;

  long operator()(long (*helper)()) const { return reinterpret_cast<long (*)(long (*)())>(code_)(helper); }
  Addr pad() const { return reinterpret_cast<std::uintptr_t>(code_) + static_cast<Addr>(k_pad); }

 private:
  static constexpr std::size_t k_page = 4096;
  void* code_ = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Registration registration_;
};

long throw_number() { throw std::runtime_error("1234"); }

long caught_number(long exception_and_5) {
  auto* const exception = reinterpret_cast<_Unwind_Exception*>(exception_and_5 - 5);
  // The object that __cxa_begin_catch() returns follows the header.
  const auto* const error = reinterpret_cast<std::runtime_error*>(exception + 1);
  const long number = std::stol(error->what());
  _Unwind_DeleteException(exception);
  return number;
}

// covers: EX14
TEST(X86Exceptions, LandWhereTheDescriptionSays) {
  Builder builder = described_landing_code();
  builder.call_site(k_call, k_pad).catches(typeid(std::exception));
  const LandingCode code(builder);
  const X86Arrival arrival = in_magic_frame([&] { EXPECT_EQ(caught_number(code(&throw_number)), 1234); });
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: EX14
TEST(X86Exceptions, LandWhereAHandlerSays) {
  Addr pad = 0;
  int asked = 0;
  Builder builder = described_landing_code();
  builder.handled_by([&](const PassedFrame& frame) {
    ++asked;
    EXPECT_EQ(frame.reg(ebx), 5u);
    return FrameDecision::catch_at(pad).with(ebx, 5);
  });
  const LandingCode code(builder);
  pad = code.pad();
  const X86Arrival arrival = in_magic_frame([&] { EXPECT_EQ(caught_number(code(&throw_number)), 1234); });
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

}  // namespace
}  // namespace jitunwind::test
