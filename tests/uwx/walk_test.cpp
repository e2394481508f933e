// A walk by callbacks: what is requested, when, and with which arguments.
#include "tests/uwx/uwx_target.h"

namespace jitunwind::test {
namespace {

using Asked = UwxTarget::Asked;

// covers: UX01 UX03 UX05 UX06
TEST(UwxWalk, CallbacksAreRegisteredWithTheirToken) {
  EXPECT_EQ(uwx_register_callbacks(nullptr, 1, &UwxTarget::copyin, &UwxTarget::lookupip), UWX_ERR_NOENV);
  UwxTarget target;  // both callbacks find it by the token alone
  const ThreeFrames frames(target);
  ASSERT_EQ(frames.begin(), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.count(UWX_LKUP_LOOKUP), 1u);
  EXPECT_GT(target.copied(UWX_COPYIN_UINFO), 0u);
  EXPECT_GT(target.copied(UWX_COPYIN_MSTACK), 0u);
  static_assert(std::is_same_v<lookupip_cb, int (*)(int, std::uint64_t, std::intptr_t, std::uint64_t**)>);
  static_assert(std::is_same_v<copyin_cb, int (*)(int, char*, std::uint64_t, int, std::intptr_t)>);
}

// covers: UX02 UX31
TEST(UwxWalk, NothingIsSteppedWithoutCallbacksOrContext) {
  uwx_env* const env = uwx_init();
  ASSERT_NE(env, nullptr);
  ASSERT_EQ(uwx_init_context(env, 1, 2, 3, 4), UWX_OK);
  EXPECT_EQ(uwx_step(env), UWX_ERR_NOCALLBACKS);
  EXPECT_EQ(uwx_register_callbacks(env, 0, nullptr, &UwxTarget::lookupip), UWX_ERR_NOCALLBACKS);
  EXPECT_EQ(uwx_register_callbacks(env, 0, &UwxTarget::copyin, nullptr), UWX_ERR_NOCALLBACKS);
  EXPECT_EQ(uwx_step(env), UWX_ERR_NOCALLBACKS);
  UwxTarget target;
  ASSERT_EQ(uwx_register_callbacks(env, target.token(), &UwxTarget::copyin, &UwxTarget::lookupip), UWX_OK);
  EXPECT_EQ(uwx_step(env), UWX_ERR_NOCONTEXT);
  std::uint64_t value = 0;
  EXPECT_EQ(uwx_get_reg(env, UWX_REG_IP, &value), UWX_ERR_NOCONTEXT);
  EXPECT_EQ(uwx_set_reg(env, UWX_REG_IP, 1), UWX_ERR_NOCONTEXT);
  EXPECT_EQ(uwx_free(env), UWX_OK);
}

// covers: UX32 UX22
TEST(UwxWalk, FramesFollowToTheBottom) {
  for (const unsigned entry_size : {4u, 8u}) {
    UwxTarget target;
    const ThreeFrames frames(target, entry_size);
    ASSERT_EQ(frames.begin(), UWX_OK);
    for (unsigned i = 1; i < 3; ++i) {
      ASSERT_EQ(uwx_step(target.env), UWX_OK) << i;
      EXPECT_EQ(target.ip(), frames.ip_of(i));
      EXPECT_EQ(target.sp(), frames.rbp_of(i - 1) + 16);
      EXPECT_EQ(target.reg(frames.k_rbp), frames.rbp_of(i));
    }
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(uwx_step(target.env), UWX_BOTTOM);
      EXPECT_EQ(target.ip(), frames.ip_of(2));
      EXPECT_EQ(target.reg(UWX_REG_RP), 0u);
    }
  }
}

// covers: UX07 UX08 UX09 UX14
TEST(UwxWalk, OneRequestForEachStepAndTheAnswerGivenBack) {
  UwxTarget target;
  const ThreeFrames frames(target);
  ASSERT_EQ(frames.begin(), UWX_OK);
  std::uint64_t rp = 0, psp = 0;
  ASSERT_EQ(uwx_get_reg(target.env, UWX_REG_RP, &rp), UWX_OK);  // looks up, and the step need not again
  ASSERT_EQ(uwx_get_reg(target.env, UWX_REG_PSP, &psp), UWX_OK);
  EXPECT_EQ(rp, frames.ip_of(1));
  EXPECT_EQ(psp, frames.rbp_of(0) + 16);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  ASSERT_EQ(target.asked.size(), 2u);
  EXPECT_EQ(target.held(), 0u);
  EXPECT_EQ(target.asked[0].ip, frames.ip_of(0));
  EXPECT_EQ(target.asked[1].ip, frames.ip_of(1));
  for (const Asked& asked : target.asked) {
    EXPECT_EQ(asked.request, UWX_LKUP_LOOKUP);
    EXPECT_EQ(asked.value_of(UWX_KEY_VERSION), 3u);
    EXPECT_FALSE(asked.value_of(UWX_KEY_PREDS));
    EXPECT_FALSE(asked.value_of(UWX_KEY_FUNCSTART));
    EXPECT_FALSE(asked.value_of(UWX_KEY_INLINE));
  }
  EXPECT_FALSE(target.asked[0].value_of(UWX_KEY_CALLER));
  EXPECT_EQ(target.asked[1].value_of(UWX_KEY_CALLER), 1u);
}

/// Sizes and alignment are asserted in the callback.
// covers: UX21 UX23 UX25
TEST(UwxWalk, ReadsAreOfEightAlignedBytes) {
  UwxTarget target;
  const ThreeFrames frames(target);
  ASSERT_EQ(frames.begin(), UWX_OK);
  while (uwx_step(target.env) == UWX_OK) {
  }
  bool of_four = false, of_eight = false;
  for (const auto& copy : target.copies) (copy.len == 4 ? of_four : of_eight) = true;
  EXPECT_TRUE(of_four && of_eight);
  EXPECT_EQ(target.copied(UWX_COPYIN_RSTACK), 0u);
}

/// The request tells a client that serves unwind information from the file which area is meant.
// covers: UX24
TEST(UwxWalk, UnwindInformationMayComeFromElsewhere) {
  UwxTarget target;
  const ThreeFrames frames(target);
  std::map<std::uint64_t, std::byte> file;
  for (auto it = target.bytes.lower_bound(frames.k_hdr); it != target.bytes.lower_bound(frames.k_stack);) {
    file.insert(*it);
    it = target.bytes.erase(it);
  }
  target.copy_instead = [&](const UwxTarget::Copyin& copy, char* loc) -> std::optional<int> {
    if (copy.request != UWX_COPYIN_UINFO) return std::nullopt;
    for (int i = 0; i < copy.len; ++i) {
      const auto found = file.find(copy.rem + static_cast<std::uint64_t>(i));
      if (found == file.end()) return 0;
      loc[i] = static_cast<char>(found->second);
    }
    return copy.len;
  };
  ASSERT_EQ(frames.begin(), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(uwx_step(target.env), UWX_BOTTOM);
}

// covers: UX31
TEST(UwxWalk, EnvironmentsAreIndependentAndUsedAgain) {
  UwxTarget one, two;
  const ThreeFrames first(one), second(two);
  ASSERT_EQ(first.begin(), UWX_OK);
  ASSERT_EQ(second.begin(), UWX_OK);
  ASSERT_EQ(uwx_step(one.env), UWX_OK);
  ASSERT_EQ(uwx_step(one.env), UWX_OK);
  EXPECT_EQ(two.ip(), second.ip_of(0));
  ASSERT_EQ(uwx_step(two.env), UWX_OK);
  EXPECT_EQ(one.ip(), first.ip_of(2));
  EXPECT_EQ(uwx_step(one.env), UWX_BOTTOM);
  ASSERT_EQ(first.begin(), UWX_OK);
  ASSERT_EQ(uwx_step(one.env), UWX_OK);
  EXPECT_EQ(one.ip(), first.ip_of(1));
  EXPECT_EQ(two.ip(), second.ip_of(1));
}

/// AArch64, either byte order: stp x29,x30,[sp,#-32]!; str d8,[sp,#16].
// covers: UX30 UX26
TEST(UwxWalk, OtherMachinesAndByteOrders) {
  constexpr std::uint64_t k_code = 0x40'0000, k_hdr = 0x50'0000, k_section = 0x50'1000, k_stack = 0x7fff'0000;
  for (const bool big : {false, true}) {
    UwxTarget target(big);
    ASSERT_EQ(uwx_set_target(target.env, EM_AARCH64), UWX_OK);
    ASSERT_EQ(uwx_set_remote(target.env, big), UWX_OK);
    CfiSection section(k_section, CfiContext::Format::eh_frame, false, big);
    const Addr cie =
        section.cie({.return_address = 30, .instructions{0x0c, 31, 32, 0x80 | 29, 4, 0x80 | 30, 3, 0x05, 72, 2}});
    Bytes hdr = section.bytes().u8(1).u8(0x04).u8(0x03).u8(0x3b).u64(k_section).u32(2);
    for (Addr i = 0; i < 2; ++i) {
      const Addr start = k_code + 0x1000 * i;
      hdr.u32(start - k_hdr).u32(section.fde(cie, start, 0x40, {}) - k_hdr);
      target.put_word(k_stack + 32 * i, 0x2900 + i);
      target.put_word(k_stack + 32 * i + 8, i == 1 ? 0 : k_code + 0x1000 + 0x20);
      target.put_word(k_stack + 32 * i + 16, 0xd800 + i);
    }
    target.put(k_hdr, hdr);
    section.data().fill(8, 0);  // the word that its last bytes are in
    target.put(k_section, section.data());
    target.answer = [&](const Asked& asked) -> Given {
      if (asked.ip >= k_code + 0x2000) return {};
      return {UWX_LKUP_UTABLE, {UWX_KEY_TBASE, k_code, UWX_KEY_USTART, k_hdr, UWX_KEY_UEND, k_hdr + hdr.size()}};
    };
    target.registers = {{UWX_REG_GR(19), 0x19}, {UWX_REG_FR(9), 0xd9}, {UWX_REG_GR(30), k_code + 0x20}};
    // The first frame is a leaf, whose caller is in x30.
    ASSERT_EQ(uwx_init_context(target.env, 0x66'0000, k_stack, 0, 0), UWX_OK);
    ASSERT_EQ(uwx_step(target.env), UWX_OK) << big;
    EXPECT_EQ(target.ip(), k_code + 0x20);
    EXPECT_EQ(target.sp(), k_stack);
    ASSERT_EQ(uwx_step(target.env), UWX_OK);
    EXPECT_EQ(target.ip(), k_code + 0x1020);
    EXPECT_EQ(target.sp(), k_stack + 32);
    EXPECT_EQ(target.reg(UWX_REG_GR(29)), 0x2900u);
    EXPECT_EQ(target.reg(UWX_REG_FR(8)), 0xd800u);
    EXPECT_EQ(target.reg(UWX_REG_FR(9)), 0xd9u);
    EXPECT_EQ(target.reg(UWX_REG_GR(19)), 0x19u);
    EXPECT_EQ(uwx_step(target.env), UWX_BOTTOM);
  }
  uwx_env* const env = uwx_init();
  EXPECT_EQ(uwx_set_remote(env, 1), UWX_ERR_CANTUNWIND) << "x86-64 has one byte order";
  EXPECT_EQ(uwx_set_remote(env, 0), UWX_OK);
  EXPECT_EQ(uwx_set_target(env, EM_68K), UWX_ERR_CANTUNWIND);
  EXPECT_EQ(uwx_set_remote(nullptr, 0), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_set_target(nullptr, EM_AARCH64), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_free(env), UWX_OK);
}

/// Sizes that nobody asked for, bytes that change at every read or never end, answers that lead anywhere: a step ends
/// nevertheless, moves on or leaves the frame as it is, and reports which.
TEST(UwxWalk, CallbacksThatLieEndAStep) {
  using Copyin = UwxTarget::Copyin;
  std::uint64_t changing = 1;
  const auto fill = [](char* loc, int len, auto byte_at) {
    for (int i = 0; i < len; ++i) loc[i] = static_cast<char>(byte_at(static_cast<std::uint64_t>(i)));
    return len;
  };
  const std::function<int(const Copyin&, char*)> lies[] = {
      [](const Copyin&, char*) { return 0; },
      [](const Copyin& c, char*) { return c.len - 1; },
      [&](const Copyin& c, char* loc) { return fill(loc, c.len, [](auto) { return 0xff; }) + 8; },
      [](const Copyin&, char*) { return -1; },
      [&](const Copyin& c, char* loc) {
        return fill(loc, c.len, [&](auto) { return (changing *= 0x5851f42d) >> 24; });
      },
      // CIEs without end: each word says "4 bytes, id 0"; each one "64 bits of length".
      [&](const Copyin& c, char* loc) {
        return fill(loc, c.len, [&](auto i) { return (c.rem + i) % 8 == 0 ? 4 : 0; });
      },
      [&](const Copyin& c, char* loc) { return fill(loc, c.len, [&](auto i) { return c.rem + i < 8 ? 0xff : 4; }); },
      // A stack without end: every word leads to the next.
      [&](const Copyin& c, char* loc) { return fill(loc, c.len, [&](auto i) { return (c.rem + 16) >> 8 * (i % 8); }); },
  };
  constexpr std::uint64_t k_everywhere = ~std::uint64_t{7};
  const Given answers[] = {
      {UWX_LKUP_UTABLE,
       {UWX_KEY_TBASE, 0, UWX_KEY_USTART, 0x1000, UWX_KEY_UEND, k_everywhere, UWX_KEY_UFLAGS, 2, 0, 0}},
      {UWX_LKUP_UTABLE, {UWX_KEY_TBASE, 0, UWX_KEY_USTART, 0x1000, UWX_KEY_UEND, k_everywhere, 0, 0}},
      {UWX_LKUP_UINFO, {UWX_KEY_UINFO, 0x1000, 0, 0}},
      {UWX_LKUP_REMAP, {UWX_KEY_NEWIP, 0x1000, 0, 0}},
      {UWX_LKUP_FDESC, {UWX_KEY_FSIZE, 8, 0, 0}},
      {UWX_LKUP_FDESC, {UWX_KEY_FSIZE, k_everywhere, UWX_KEY_FUNC, 0x10, UWX_KEY_MODULE, 8, 0, 0}},
      {UWX_LKUP_FDESC, Words(1200, UWX_KEY_MODULE)},
      {UWX_LKUP_SYMINFO, {UWX_KEY_FUNC, k_everywhere, 0, 0}},
      {UWX_LKUP_ERR, {}},
  };
  for (const auto& lie : lies)
    for (const Given& given : answers) {
      UwxTarget target;
      target.copy_instead = lie;
      target.answer = [&](const Asked&) { return given; };
      ASSERT_EQ(uwx_init_context(target.env, 0x40'0020, 0x7fff'0000, 0, 0), UWX_OK);
      for (int steps = 0, status = UWX_OK; steps < 20 && status == UWX_OK; ++steps) {
        const std::uint64_t ip = target.ip(), sp = target.sp();
        const std::size_t asked = target.asked.size(), copied = target.copies.size();
        status = uwx_step(target.env);
        EXPECT_LE(target.copies.size() - copied, std::size_t{1} << 22);
        EXPECT_LE(target.asked.size() - asked, 2u);
        EXPECT_EQ(target.held(), 0u);
        EXPECT_TRUE(status == UWX_OK || (target.ip() == ip && target.sp() == sp)) << status;
      }
      char *module = nullptr, *function = nullptr;
      std::uint64_t offset = 0;
      (void)uwx_get_sym_info(target.env, &module, &function, &offset);
    }
}

}  // namespace
}  // namespace jitunwind::test
