// Possible answers of a lookup-ip callback to UWX_LKUP_LOOKUP, and their effects.
#include "tests/uwx/uwx_target.h"

namespace jitunwind::test {
namespace {

using Asked = UwxTarget::Asked;

/// Returns the status of the first step with that answer to LOOKUP. The context is unchanged unless the status is OK.
int step_with(const Given& given) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.answer = [&](const Asked&) { return given; };
  EXPECT_EQ(frames.begin(), UWX_OK);
  const int status = uwx_step(target.env);
  EXPECT_EQ(target.held(), 0u);
  if (status != UWX_OK) {
    EXPECT_EQ(target.ip(), frames.ip_of(0));
    EXPECT_EQ(target.sp(), frames.k_stack);
    target.answer = [&](const Asked& asked) { return frames.look_up(asked); };
    EXPECT_EQ(uwx_step(target.env), UWX_OK) << "an error is the answer's, not the frame's";
    EXPECT_EQ(target.ip(), frames.ip_of(1));
  }
  return status;
}

Given table_without(std::uint64_t key) {
  UwxTarget target;
  Given given = ThreeFrames(target).table();
  for (std::size_t i = 0; i < given.pairs.size(); i += 2)
    if (given.pairs[i] == key) {
      given.pairs.erase(given.pairs.begin() + static_cast<long>(i), given.pairs.begin() + static_cast<long>(i) + 2);
      break;
    }
  return given;
}
Given table_with(std::uint64_t key, std::uint64_t value) {
  Given given = table_without(key);
  given.pairs.insert(given.pairs.end(), {key, value});
  return given;
}

// covers: UX10 UX11 UX13
TEST(UwxLookup, TablesHaveTheirKeysAndNoOthers) {
  EXPECT_EQ(step_with(table_without(0)), UWX_OK);
  EXPECT_EQ(step_with(table_with(UWX_KEY_GP, 0x1234)), UWX_OK);
  for (const std::uint64_t key : std::initializer_list<std::uint64_t>{UWX_KEY_TBASE, UWX_KEY_USTART, UWX_KEY_UEND})
    EXPECT_EQ(step_with(table_without(key)), UWX_ERR_BADKEY) << key;
  for (const std::uint64_t key : std::initializer_list<std::uint64_t>{UWX_KEY_NEWIP, 8, 99, 1u << 20})
    EXPECT_EQ(step_with(table_with(key, 1)), UWX_ERR_BADKEY) << key;
  EXPECT_EQ(step_with(table_with(UWX_KEY_UEND, ThreeFrames::k_hdr - 1)), UWX_ERR_BADKEY);
}

/// A pointer in the table is relative to the data of its module.
// covers: UX11
TEST(UwxLookup, DataRelativePointersCountFromGp) {
  UwxTarget target;
  const ThreeFrames frames(target);
  CfiSection section(0x60'0000);
  const Addr cie = section.cie({.augmentation = "zR", .augmentation_data{0x3b}});  // datarel | sdata4
  section.fde(cie, section.bytes().u32(0x20).u32(0x10).uleb(0).add({0x0c, 6, 16, 0x86, 2}));
  section.terminator();
  target.put(0x60'0000, section.data());
  Words pairs{UWX_KEY_TBASE, 0x40'0000,      UWX_KEY_USTART, 0x60'0000,
              UWX_KEY_UEND,  section.here(), UWX_KEY_UFLAGS, UWX_UFLAGS_EH_FRAME};
  target.answer = [&](const Asked&) { return Given{UWX_LKUP_UTABLE, pairs}; };
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_BADUDESC) << "relative to nothing";
  pairs.insert(pairs.end(), {UWX_KEY_GP, 0x40'0000});
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
}

// covers: UX12
TEST(UwxLookup, FlagsTellWhichTableItIs) {
  UwxTarget target;
  const ThreeFrames frames(target, 8);
  const auto walk = [&](std::uint64_t flags, std::uint64_t begin, std::uint64_t end) {
    target.answer = [=](const Asked&) {
      return Given{UWX_LKUP_UTABLE,
                   {UWX_KEY_TBASE, 0, UWX_KEY_UFLAGS, flags, UWX_KEY_USTART, begin, UWX_KEY_UEND, end}};
    };
    EXPECT_EQ(frames.begin(), UWX_OK);
    const int first = uwx_step(target.env);
    return first == UWX_OK ? uwx_step(target.env) : first;
  };
  const std::uint64_t end = frames.eh_frame + frames.eh_frame_size;
  EXPECT_EQ(walk(UWX_UFLAGS_EH_FRAME_HDR, frames.k_hdr, frames.k_hdr + frames.hdr_size), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
  EXPECT_EQ(walk(UWX_UFLAGS_EH_FRAME, frames.eh_frame, end), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
  EXPECT_EQ(walk(UWX_UFLAGS_EH_FRAME, frames.k_hdr, frames.k_hdr + frames.hdr_size), UWX_ERR_BADUDESC);
  EXPECT_EQ(walk(7, frames.k_hdr, frames.k_hdr + frames.hdr_size), UWX_ERR_BADKEY);
  // The header still leads to .eh_frame if it has no table.
  target.put(frames.k_hdr, Bytes{1, 0x04, 0xff, 0xff}.u64(frames.eh_frame));
  EXPECT_EQ(walk(UWX_UFLAGS_EH_FRAME_HDR, frames.k_hdr, frames.k_hdr + 12), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
}

/// [sp] is the return address where no code has run yet.
// covers: UX15
TEST(UwxLookup, UnknownCodeIsALeaf) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.put_word(frames.k_stack, frames.ip_of(1));
  target.registers[frames.k_rbp] = frames.rbp_of(1);
  ASSERT_EQ(uwx_init_context(target.env, 0x66'0000, frames.k_stack, 0, 0), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
  EXPECT_EQ(target.sp(), frames.k_stack + 8);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
  // A procedure that has called is not a leaf.
  target.answer = [](const Asked&) { return Given{}; };
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_IPNOTFOUND);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
}

// covers: UX37
TEST(UwxLookup, CodeThatItsTableDoesNotKnowIsALeaf) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.put_word(frames.k_stack, frames.start_of(1) - 0x20);  // between two functions
  for (const std::uint64_t ip : {frames.k_code - 0x10, frames.start_of(1) - 0x10}) {
    target.answer = [&](const Asked&) { return frames.table(); };
    ASSERT_EQ(uwx_init_context(target.env, ip, frames.k_stack, 0, 0), UWX_OK);
    ASSERT_EQ(uwx_step(target.env), UWX_OK) << std::hex << ip;
    EXPECT_EQ(uwx_step(target.env), UWX_ERR_NOUDESC) << "has called";
  }
  target.put_word(frames.k_stack, frames.k_code - 0x20);  // before the first
  ASSERT_EQ(uwx_init_context(target.env, frames.k_code - 0x10, frames.k_stack, 0, 0), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_NOUENTRY);
}

// covers: UX16 UX10
TEST(UwxLookup, ErrorsAreTheStepsError) {
  EXPECT_EQ(step_with({UWX_LKUP_ERR}), UWX_ERR_LOOKUPERR);
  EXPECT_EQ(step_with({UWX_LKUP_SYMINFO, {UWX_KEY_FUNCSTART, 1}}), UWX_ERR_LOOKUPERR) << "not what was asked";
}

/// An answer that the callback did not give is not given back either.
// covers: UX16
TEST(UwxLookup, AnswersOfNoKindAreErrors) {
  struct Liar {
    int kind;
    std::uint64_t* vector;
    unsigned freed = 0;
  };
  const auto lookup = +[](int request, std::uint64_t, std::intptr_t tok, std::uint64_t** resultp) {
    auto& liar = *reinterpret_cast<Liar*>(tok);
    if (request == UWX_LKUP_FREE) return ++liar.freed, 0;
    if (liar.vector) *resultp = liar.vector;
    return liar.kind;
  };
  const auto copyin = +[](int, char*, std::uint64_t, int, std::intptr_t) { return 0; };
  const auto status = [&](Liar& liar) {
    uwx_env* const env = uwx_init();
    EXPECT_EQ(uwx_register_callbacks(env, reinterpret_cast<std::intptr_t>(&liar), copyin, lookup), UWX_OK);
    EXPECT_EQ(uwx_init_context(env, 0x1000, 0x2000, 0, 0), UWX_OK);
    const int stepped = uwx_step(env);
    EXPECT_EQ(uwx_free(env), UWX_OK);
    return stepped;
  };
  std::uint64_t end[2] = {UWX_KEY_END, 0};
  for (const int kind : {7, -1, 1 << 30}) {
    Liar liar{kind, end};
    EXPECT_EQ(status(liar), UWX_ERR_LOOKUPERR);
    EXPECT_EQ(liar.freed, 0u);
  }
  Liar without_vector{UWX_LKUP_UTABLE, nullptr};
  EXPECT_EQ(status(without_vector), UWX_ERR_LOOKUPERR);
  EXPECT_EQ(without_vector.freed, 0u);
  Liar nowhere{UWX_LKUP_UTABLE, reinterpret_cast<std::uint64_t*>(0x10)};
  EXPECT_EQ(status(nowhere), UWX_ERR_BADKEY);
  EXPECT_EQ(nowhere.freed, 1u);
  std::vector<std::uint64_t> endless(2000, UWX_KEY_TBASE);
  Liar without_end{UWX_LKUP_UTABLE, endless.data()};
  EXPECT_EQ(status(without_end), UWX_ERR_BADKEY);
  EXPECT_EQ(without_end.freed, 1u);
}

// covers: UX38
TEST(UwxLookup, FramesAreDescribedInPlace) {
  UwxTarget target;
  const ThreeFrames frames(target);
  constexpr std::uint64_t k_jit = 0x77'0000, k_sp = ThreeFrames::k_stack;
  const auto step = [&](const Words& pairs) {
    target.answer = [pairs](const Asked&) { return Given{UWX_LKUP_FDESC, pairs}; };
    target.registers = {{frames.k_rbp, k_sp + 0x80}, {frames.k_rbx, frames.ip_of(2)}};
    EXPECT_EQ(uwx_init_context(target.env, k_jit, k_sp, 0, 0), UWX_OK);
    return uwx_step(target.env);
  };
  const auto spill = [](int reg) { return static_cast<std::uint64_t>(UWX_KEY_SPILL(reg)); };
  target.put_word(k_sp, frames.ip_of(0));
  target.put_word(k_sp + 0x18, frames.ip_of(1));
  target.put_word(k_sp + 0x10, 0x5a5a);
  target.put_word(k_sp + 0x28, k_sp + 0x20);
  // An answer with neither size nor PSP is a leaf.
  ASSERT_EQ(step({}), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(0));
  EXPECT_EQ(target.sp(), k_sp + 8);
  // The answer has a size, and a register at SP + 16 or PSP - 16.
  for (const std::uint64_t place : {UWX_DISP_SPREL(0x10), UWX_DISP_PSPREL(0x10)}) {
    ASSERT_EQ(step({UWX_KEY_FSIZE, 0x20, spill(frames.k_rbp), place}), UWX_OK);
    EXPECT_EQ(target.ip(), frames.ip_of(1));
    EXPECT_EQ(target.sp(), k_sp + 0x20);
    EXPECT_EQ(target.reg(frames.k_rbp), 0x5a5au);
    EXPECT_EQ(target.reg(frames.k_rbx), frames.ip_of(2));
  }
  // PSP is given in every way.
  for (const std::uint64_t psp : {UWX_DISP_SPPLUS(0x20), UWX_DISP_SPREL(0x28), UWX_DISP_REGREL(frames.k_rbp, -0x60)}) {
    ASSERT_EQ(step({spill(UWX_REG_PSP), psp}), UWX_OK) << std::hex << psp;
    EXPECT_EQ(target.ip(), frames.ip_of(1));
    EXPECT_EQ(target.sp(), k_sp + 0x20);
  }
  ASSERT_EQ(step({spill(UWX_REG_PSP), UWX_DISP_REG(frames.k_rbp), spill(UWX_REG_RP), UWX_DISP_SPREL(0x18)}), UWX_OK);
  EXPECT_EQ(target.sp(), k_sp + 0x80);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
  // RP and other registers are in registers.
  ASSERT_EQ(step({spill(UWX_REG_RP), UWX_DISP_REG(frames.k_rbx), spill(UWX_REG_GR(12)), UWX_DISP_REG(frames.k_rbp),
                  spill(frames.k_rbp), UWX_DISP_NONE}),
            UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
  EXPECT_EQ(target.reg(UWX_REG_GR(12)), k_sp + 0x80);
  EXPECT_EQ(target.reg(frames.k_rbp), k_sp + 0x80);
  // These numbers stand for other registers or are Itanium's, and these values are no dispositions.
  for (const int reg : {UWX_REG_SP, UWX_REG_IP, UWX_REG_BSP, UWX_REG_PFS, UWX_REG_PREDS, UWX_REG_GR(16), UWX_REG_GR(99),
                        UWX_REG_FR(2), UWX_REG_BR(0)})
    EXPECT_EQ(step({spill(reg), UWX_DISP_SPREL(8)}), reg == UWX_REG_SP ? UWX_OK : UWX_ERR_BADKEY) << reg;
  for (const std::uint64_t disposition : {UWX_DISP_MSTK(8), UWX_DISP_RSTK(8), UWX_DISP_SPPLUS(8), UWX_DISP_REG(0x199),
                                          UWX_DISP_REGREL(0x199, 8), ~std::uint64_t{0}})
    EXPECT_EQ(step({spill(frames.k_rbx), disposition}), UWX_ERR_BADUDESC) << std::hex << disposition;
  for (const std::uint64_t psp : {UWX_DISP_NONE + std::uint64_t{0}, UWX_DISP_PSPREL(8), UWX_DISP_REG(0x199)})
    EXPECT_EQ(step({spill(UWX_REG_PSP), psp}), UWX_ERR_BADUDESC) << std::hex << psp;
}

// covers: UX38 UX32 UX33
TEST(UwxLookup, ContextFramesAreNotSteppedThrough) {
  UwxTarget target;
  const ThreeFrames frames(target);
  Words pairs{UWX_KEY_CONTEXT, 0x0203};
  target.answer = [&](const Asked&) { return Given{UWX_LKUP_FDESC, pairs}; };
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(uwx_get_abi_context_code(target.env), 0);
  EXPECT_EQ(uwx_step(target.env), UWX_ABI_FRAME);
  EXPECT_EQ(uwx_get_abi_context_code(target.env), 0x0203);
  EXPECT_EQ(target.ip(), frames.ip_of(0));
  EXPECT_EQ(uwx_get_abi_context_code(nullptr), UWX_ERR_NOENV);
  pairs.insert(pairs.end(), {UWX_KEY_FSIZE, 8});
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_BADUDESC) << "not alone";
  EXPECT_EQ(uwx_get_abi_context_code(target.env), 0);
}

/// .eh_frame marks signal frames.
// covers: UX32 UX33
TEST(UwxLookup, SignalFramesOfTablesAreContextFrames) {
  UwxTarget target;
  const ThreeFrames frames(target);
  CfiSection section(0x60'0000);
  const Addr fde = section.fde(section.cie({.augmentation = "zRS", .augmentation_data{0}}),
                               section.bytes().u64(frames.k_code).u64(0x40).uleb(0));
  target.put(0x60'0000, section.data());
  target.answer = [&](const Asked&) { return Given{UWX_LKUP_UINFO, {UWX_KEY_UINFO, fde}}; };
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(uwx_step(target.env), UWX_ABI_FRAME);
  EXPECT_EQ(uwx_get_abi_context_code(target.env), UWX_ABI_CONTEXT_SIGNAL);
  EXPECT_EQ(target.ip(), frames.ip_of(0));
}

// covers: UX38
TEST(UwxLookup, OneEntryIsEnough) {
  UwxTarget target;
  const ThreeFrames frames(target);
  Words pairs{UWX_KEY_UINFO, frames.first_fde, UWX_KEY_FUNCSTART, frames.k_code};
  target.answer = [&](const Asked&) { return Given{UWX_LKUP_UINFO, pairs}; };
  ASSERT_EQ(frames.begin(), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_NOUDESC) << "of another function";
  EXPECT_EQ(step_with({UWX_LKUP_UINFO, {UWX_KEY_FUNCSTART, 1}}), UWX_ERR_BADKEY);
  EXPECT_EQ(step_with({UWX_LKUP_UINFO, {UWX_KEY_UINFO, 1, UWX_KEY_USTART, 1}}), UWX_ERR_BADKEY);
}

// covers: UX38
TEST(UwxLookup, CodeUnwindsLikeOtherCode) {
  UwxTarget target;
  const ThreeFrames frames(target);
  constexpr std::uint64_t k_jit = 0x77'0000;
  target.answer = [&](const Asked& asked) {
    return asked.ip == k_jit ? Given{UWX_LKUP_REMAP, {UWX_KEY_NEWIP, frames.ip_of(0)}} : frames.look_up(asked);
  };
  ASSERT_EQ(uwx_init_context(target.env, k_jit, frames.k_stack, 0, 0), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
  EXPECT_EQ(target.count(UWX_LKUP_LOOKUP), 2u);
  EXPECT_EQ(target.held(), 0u);
  EXPECT_EQ(step_with({UWX_LKUP_REMAP, {UWX_KEY_NEWIP, k_jit}}), UWX_ERR_LOOKUPERR) << "once";
  EXPECT_EQ(step_with({UWX_LKUP_REMAP, {}}), UWX_ERR_BADKEY);
  EXPECT_EQ(step_with({UWX_LKUP_REMAP, {UWX_KEY_UINFO, 1}}), UWX_ERR_BADKEY);
}

}  // namespace
}  // namespace jitunwind::test
