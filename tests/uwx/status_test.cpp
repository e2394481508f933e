// Every status code, provoked through the interface; the context stays unchanged.
#include <cstdlib>

#include "tests/uwx/uwx_target.h"

namespace jitunwind::test {
namespace {

// covers: UX29
TEST(UwxStatus, CodesHaveTheirNumbers) {
  static_assert(
      UWX_OK == 0 && UWX_BOTTOM == 1 && UWX_ABI_FRAME == 2 && UWX_ERR_NOENV == -1 && UWX_ERR_IPNOTFOUND == -2 &&
      UWX_ERR_LOOKUPERR == -3 && UWX_ERR_BADKEY == -4 && UWX_ERR_COPYIN_UTBL == -5 && UWX_ERR_COPYIN_UINFO == -6 &&
      UWX_ERR_COPYIN_MSTK == -7 && UWX_ERR_COPYIN_RSTK == -8 && UWX_ERR_COPYIN_REG == -9 && UWX_ERR_NOUENTRY == -10 &&
      UWX_ERR_NOUDESC == -11 && UWX_ERR_BADUDESC == -12 && UWX_ERR_NOMEM == -13 && UWX_ERR_PROLOG_UF == -14 &&
      UWX_ERR_UNDEFLABEL == -15 && UWX_ERR_BADREGID == -16 && UWX_ERR_CANTUNWIND == -17 && UWX_ERR_NOCALLBACKS == -18 &&
      UWX_ERR_NOCONTEXT == -19 && UWX_ERR_UCACCESS == -20 && UWX_ERR_NOSYM == -21);
  static_assert(UWX_LKUP_LOOKUP == 1 && UWX_LKUP_FREE == 2 && UWX_LKUP_SYMBOLS == 3 && UWX_LKUP_MODULE == 4);
  static_assert(UWX_LKUP_NOTFOUND == 0 && UWX_LKUP_ERR == 1 && UWX_LKUP_UTABLE == 2 && UWX_LKUP_FDESC == 3 &&
                UWX_LKUP_SYMINFO == 4 && UWX_LKUP_REMAP == 5 && UWX_LKUP_UINFO == 6);
  static_assert(UWX_KEY_END == 0 && UWX_KEY_PREDS == 1 && UWX_KEY_VERSION == 2 && UWX_KEY_TBASE == 1 &&
                UWX_KEY_UFLAGS == 2 && UWX_KEY_USTART == 3 && UWX_KEY_UEND == 4 && UWX_KEY_GP == 7 &&
                UWX_KEY_FSIZE == 1 && UWX_KEY_SPILL(0x103) == 0x1032 && UWX_KEY_CONTEXT == 3 && UWX_KEY_NEWIP == 5 &&
                UWX_KEY_UINFO == 6 && UWX_KEY_MODULE == 17 && UWX_KEY_FUNC == 18 && UWX_KEY_FUNCSTART == 19 &&
                UWX_KEY_INLINED_FUNC == 20 && UWX_KEY_SRCFILE == 21 && UWX_KEY_LINENUM == 22 && UWX_KEY_INLINE == 23);
  static_assert(UWX_COPYIN_UINFO == 1 && UWX_COPYIN_MSTACK == 2 && UWX_COPYIN_RSTACK == 3 && UWX_COPYIN_REG == 4);
  static_assert(UWX_DISP_NONE == 0 && UWX_DISP_SPPLUS(0) == 1 && UWX_DISP_SPREL(0) == 2 && UWX_DISP_PSPREL(0) == 3 &&
                UWX_DISP_REG(0) == 4 && UWX_DISP_MSTK(0) == 5 && UWX_DISP_RSTK(0) == 6);
  static_assert(UWX_VERSION == 3);
}

// covers: UX29
TEST(UwxStatus, NoEnvironmentIsAnErrorEverywhere) {
  std::uint64_t value = 0;
  char* text = nullptr;
  int number = 0;
  EXPECT_EQ(uwx_free(nullptr), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_init_context(nullptr, 1, 2, 3, 4), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_set_reg(nullptr, 0, 1), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_set_fr(nullptr, 0, &value), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_step(nullptr), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_step_inline(nullptr, 1), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_get_reg(nullptr, 0, &value), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_get_spill_loc(nullptr, 0, &value), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_get_module_info(nullptr, &text, &value), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_get_funcstart(nullptr, &value), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_get_sym_info(nullptr, &text, &text, &value), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_get_source_info(nullptr, &text, &text, &number, &number), UWX_ERR_NOENV);
}

/// Returns the status of a step while the callback fails where `fails` says so, in the given way.
template <class Fails>
void expect_failure(int status, int returned, Fails fails) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.copy_instead = [&](const UwxTarget::Copyin& copy, char*) -> std::optional<int> {
    return fails(copy) ? std::optional(returned) : std::nullopt;
  };
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(uwx_step(target.env), status);
  EXPECT_EQ(target.ip(), frames.ip_of(0));
  EXPECT_EQ(target.held(), 0u);
  target.copy_instead = nullptr;
  EXPECT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
}

// covers: UX28 UX21 UX29
TEST(UwxStatus, FailuresOfReadsTellWhere) {
  for (const int returned : {0, 4, 7, 9, -1, 1 << 20}) {
    const auto is_table = [](const UwxTarget::Copyin& c) {
      return c.request == UWX_COPYIN_UINFO && c.rem < ThreeFrames::k_hdr + 0x1000;
    };
    expect_failure(UWX_ERR_COPYIN_UTBL, returned, is_table);
    expect_failure(UWX_ERR_COPYIN_UTBL, returned, [&](const UwxTarget::Copyin& c) {
      return is_table(c) && c.rem >= ThreeFrames::k_hdr + 16;  // entries
    });
    if (returned != 4)  // some of these are of 4 bytes
      expect_failure(UWX_ERR_COPYIN_UINFO, returned,
                     [&](const UwxTarget::Copyin& c) { return c.request == UWX_COPYIN_UINFO && !is_table(c); });
    expect_failure(UWX_ERR_COPYIN_MSTK, returned,
                   [](const UwxTarget::Copyin& c) { return c.request == UWX_COPYIN_MSTACK; });
    expect_failure(UWX_ERR_COPYIN_REG, returned,
                   [](const UwxTarget::Copyin& c) { return c.request == UWX_COPYIN_REG; });
  }
}

// covers: UX29
TEST(UwxStatus, BrokenUnwindInformationIsSaidToBe) {
  UwxTarget target;
  const ThreeFrames frames(target);
  ASSERT_EQ(frames.begin(), UWX_OK);
  target.put(frames.k_hdr, Bytes{2});  // version
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_BADUDESC);
  target.put(frames.k_hdr, Bytes{1});
  target.put(frames.first_fde + 24, Bytes{0x3f});  // no instruction
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_BADUDESC);
  EXPECT_EQ(target.ip(), frames.ip_of(0));
}

/// SP and IP do not change, or a frame record refers to itself.
// covers: UX29
TEST(UwxStatus, StacksThatDoNotEndAreLeft) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.put_word(frames.rbp_of(1), frames.rbp_of(0));
  target.put_word(frames.rbp_of(1) + 8, frames.ip_of(0));
  ASSERT_EQ(frames.begin(), UWX_OK);
  int status = UWX_OK;
  unsigned steps = 0;
  while (status == UWX_OK && steps++ < 100) status = uwx_step(target.env);
  EXPECT_EQ(status, UWX_ERR_CANTUNWIND);
  EXPECT_LT(steps, 20u);
}

/// The row needs a register whose value nobody has.
// covers: UX29
TEST(UwxStatus, CallersThatCannotBeToldAreSaidToBe) {
  UwxTarget target;
  const ThreeFrames frames(target);
  ASSERT_EQ(frames.begin(), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  target.answer = [](const UwxTarget::Asked&) -> Given {  // PSP in rax, which the call has lost
    return {UWX_LKUP_FDESC, {static_cast<std::uint64_t>(UWX_KEY_SPILL(UWX_REG_PSP)), UWX_DISP_REG(UWX_REG_GR(0))}};
  };
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_CANTUNWIND);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
}

/// No word can have these addresses: reads stay aligned, which the callback asserts.
// covers: UX23 UX29
TEST(UwxStatus, MisalignedPlacesAreReadByAlignedWords) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.registers[frames.k_rbp] = frames.rbp_of(0) + 3;
  target.put_word(frames.rbp_of(0) + 16, 0);
  target.put(frames.rbp_of(0) + 11, Bytes().u64(frames.ip_of(2)));
  ASSERT_EQ(frames.begin(), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
  target.registers[frames.k_rbp] = ~std::uint64_t{0} - 3;
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(uwx_step(target.env), UWX_ERR_COPYIN_MSTK);
}

unsigned allocated = 0, released = 0;
bool has_memory = true;
void* allocate(std::size_t size) {
  if (!has_memory) return nullptr;
  ++allocated;
  return std::malloc(size);
}
void release(void* memory) {
  ++released;
  std::free(memory);
}

struct CountedMemory {
  CountedMemory() {
    allocated = released = 0;
    EXPECT_EQ(uwx_register_alloc_cb(&allocate, &release), UWX_OK);
  }
  ~CountedMemory() {
    has_memory = true;
    EXPECT_EQ(uwx_register_alloc_cb(nullptr, nullptr), UWX_OK);
  }
};

// covers: UX30
TEST(UwxStatus, WalksAllocateNothing) {
  const CountedMemory memory;
  {
    UwxTarget target;
    const ThreeFrames frames(target);
    EXPECT_EQ(allocated, 1u);
    for (int again = 0; again < 2; ++again) {
      ASSERT_EQ(frames.begin(), UWX_OK);
      while (uwx_step(target.env) == UWX_OK) (void)target.ip();
      target.answer = [](const UwxTarget::Asked&) -> Given {
        return {UWX_LKUP_SYMINFO, {}, {{UWX_KEY_FUNC, "short"}}};
      };
      char* name = nullptr;
      EXPECT_EQ(uwx_get_sym_info(target.env, nullptr, &name, nullptr), UWX_OK);
      target.answer = [&](const UwxTarget::Asked& asked) { return frames.look_up(asked); };
    }
    EXPECT_EQ(allocated, 1u);
    EXPECT_EQ(released, 0u);
  }
  EXPECT_EQ(released, 1u);
}

/// Only strings that do not fit need more memory. It is freed with the frame, or with the environment.
// covers: UX30 UX29
TEST(UwxStatus, LongStringsNeedMemory) {
  const CountedMemory memory;
  UwxTarget target;
  const ThreeFrames frames(target);
  const std::string long_name(9000, 'x');
  const auto answer_names = [&](const UwxTarget::Asked& asked) -> Given {
    if (asked.request == UWX_LKUP_LOOKUP) return frames.look_up(asked);
    return {UWX_LKUP_SYMINFO, {}, {{UWX_KEY_FUNC, long_name}, {UWX_KEY_MODULE, "m"}}};
  };
  target.answer = answer_names;
  ASSERT_EQ(frames.begin(), UWX_OK);
  has_memory = false;
  char *name = nullptr, *module = nullptr;
  EXPECT_EQ(uwx_get_sym_info(target.env, &module, &name, nullptr), UWX_ERR_NOMEM);
  EXPECT_EQ(target.held(), 0u);
  has_memory = true;
  EXPECT_EQ(uwx_get_sym_info(target.env, &module, &name, nullptr), UWX_OK);
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(name, long_name);
  EXPECT_EQ(allocated, 2u);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(released, 1u);
  has_memory = false;
  EXPECT_EQ(uwx_init(), nullptr);
}

/// An environment's memory is freed by its own allocator.
// covers: UX30
TEST(UwxStatus, AllocatorsBelongToTheEnvironmentsMadeWithThem) {
  uwx_env* env = nullptr;
  {
    const CountedMemory memory;
    env = uwx_init();
    ASSERT_NE(env, nullptr);
  }
  EXPECT_EQ(uwx_free(env), UWX_OK);
  EXPECT_EQ(released, 1u);
}

}  // namespace
}  // namespace jitunwind::test
