// Names and source lines: what is requested, and how long strings live.
#include "tests/uwx/uwx_target.h"

namespace jitunwind::test {
namespace {

using Asked = UwxTarget::Asked;

Given names_of(const Asked& asked) {
  Given given{
      UWX_LKUP_SYMINFO, {UWX_KEY_TBASE, 0x40'0000}, {{UWX_KEY_MODULE, "module of " + std::to_string(asked.ip)}}};
  if (asked.request != UWX_LKUP_SYMBOLS) return given;
  const auto level = asked.value_of(UWX_KEY_INLINE).value_or(0);
  given.pairs.insert(given.pairs.end(), {UWX_KEY_FUNCSTART, ThreeFrames::k_code + 4, UWX_KEY_LINENUM, 10 + level,
                                         UWX_KEY_INLINE, level < 2 ? level + 1 : 0});
  given.strings.emplace_back(UWX_KEY_FUNC, "function");
  given.strings.emplace_back(UWX_KEY_SRCFILE, "file" + std::to_string(level));
  if (level < 2) given.strings.emplace_back(UWX_KEY_INLINED_FUNC, "inlined" + std::to_string(level));
  return given;
}

struct NamedFrames {
  NamedFrames() {
    target.answer = [this](const Asked& asked) {
      return asked.request == UWX_LKUP_LOOKUP ? frames.look_up(asked) : names_of(asked);
    };
    EXPECT_EQ(frames.begin(), UWX_OK);
  }
  UwxTarget target;
  ThreeFrames frames{target};
};

// covers: UX34 UX06 UX07 UX09 UX18
TEST(UwxNames, AreAskedForOnce) {
  NamedFrames named;
  UwxTarget& target = named.target;
  char *module = nullptr, *function = nullptr;
  std::uint64_t base = 0, offset = 0;
  ASSERT_EQ(uwx_get_module_info(target.env, &module, &base), UWX_OK);
  EXPECT_EQ(module, "module of " + std::to_string(named.frames.ip_of(0)));
  EXPECT_EQ(base, 0x40'0000u);
  EXPECT_EQ(target.count(UWX_LKUP_SYMBOLS), 0u);
  ASSERT_EQ(uwx_get_sym_info(target.env, &module, &function, &offset), UWX_OK);
  EXPECT_STREQ(function, "function");
  EXPECT_EQ(offset, 0x20u - 4);
  ASSERT_EQ(uwx_get_sym_info(target.env, nullptr, nullptr, nullptr), UWX_OK);
  ASSERT_EQ(uwx_get_module_info(target.env, nullptr, nullptr), UWX_OK);
  char *inlined = nullptr, *file = nullptr;
  int line = 0, context = 0;
  ASSERT_EQ(uwx_get_source_info(target.env, &inlined, &file, &line, &context), UWX_OK);
  EXPECT_STREQ(inlined, "inlined0");
  EXPECT_STREQ(file, "file0");
  EXPECT_EQ(line, 10);
  EXPECT_EQ(context, 1);
  ASSERT_EQ(uwx_get_source_info(target.env, nullptr, nullptr, nullptr, nullptr), UWX_OK);
  EXPECT_EQ(target.count(UWX_LKUP_MODULE), 1u);
  EXPECT_EQ(target.count(UWX_LKUP_SYMBOLS), 1u);
  EXPECT_EQ(target.count(UWX_LKUP_LOOKUP), 0u);
  for (const Asked& asked : target.asked) {
    EXPECT_EQ(asked.value_of(UWX_KEY_VERSION), 3u);
    EXPECT_FALSE(asked.value_of(UWX_KEY_PREDS));
    EXPECT_FALSE(asked.value_of(UWX_KEY_INLINE));
    EXPECT_FALSE(asked.value_of(UWX_KEY_FUNCSTART)) << "not known yet";
  }
}

/// The unwind information tells the beginning, which is passed on.
// covers: UX34 UX09
TEST(UwxNames, TheFunctionsBeginningIsKnownFromItsTable) {
  NamedFrames named;
  UwxTarget& target = named.target;
  std::uint64_t start = 0;
  ASSERT_EQ(uwx_get_funcstart(target.env, &start), UWX_OK);
  EXPECT_EQ(start, named.frames.k_code);
  EXPECT_EQ(target.asked.size(), 1u);
  ASSERT_EQ(uwx_get_module_info(target.env, nullptr, nullptr), UWX_OK);
  ASSERT_EQ(uwx_get_sym_info(target.env, nullptr, nullptr, nullptr), UWX_OK);
  for (const int request : {UWX_LKUP_MODULE, UWX_LKUP_SYMBOLS}) {
    ASSERT_EQ(target.count(request), 1u);
    for (const Asked& asked : target.asked)
      if (asked.request == request) {
        EXPECT_EQ(asked.value_of(UWX_KEY_FUNCSTART), named.frames.k_code);
      }
  }
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.count(UWX_LKUP_LOOKUP), 1u) << "made for the beginning already";
}

/// Only symbols tell the beginning here.
// covers: UX34
TEST(UwxNames, TheFunctionsBeginningMayBeItsSymbols) {
  UwxTarget target;
  target.answer = [](const Asked& asked) -> Given {
    if (asked.request == UWX_LKUP_LOOKUP) return {};
    return {UWX_LKUP_SYMINFO, {UWX_KEY_FUNCSTART, 0x1230}};
  };
  ASSERT_EQ(uwx_init_context(target.env, 0x1234, 0x5000, 0, 0), UWX_OK);
  std::uint64_t start = 0, offset = 9;
  ASSERT_EQ(uwx_get_funcstart(target.env, &start), UWX_OK);
  EXPECT_EQ(start, 0x1230u);
  char stale[] = "stale";
  char* name = stale;
  EXPECT_EQ(uwx_get_sym_info(target.env, nullptr, &name, &offset), UWX_ERR_NOSYM);
  EXPECT_EQ(name, nullptr);
  EXPECT_EQ(offset, 0u);
}

// covers: UX17 UX18 UX34
TEST(UwxNames, NothingIsKnownWhereTheClientKnowsNothing) {
  UwxTarget target;
  const ThreeFrames frames(target);
  const auto ask = [&](const Given& given) {
    target.answer = [given](const Asked&) { return given; };
    EXPECT_EQ(frames.begin(), UWX_OK);
    char stale[] = "stale";
    char *module = stale, *function = stale, *inlined = stale, *file = stale;
    std::uint64_t offset = 7;
    int line = 7, context = 7;
    const int status = uwx_get_sym_info(target.env, &module, &function, &offset);
    EXPECT_EQ(uwx_get_source_info(target.env, &inlined, &file, &line, &context), status);
    EXPECT_EQ(module, nullptr);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(inlined, nullptr);
    EXPECT_EQ(file, nullptr);
    EXPECT_EQ(offset, 0u);
    EXPECT_EQ(line, 0);
    EXPECT_EQ(context, 0);
    EXPECT_EQ(uwx_get_module_info(target.env, &module, nullptr), status);
    EXPECT_EQ(module, nullptr);
    EXPECT_EQ(target.held(), 0u);
    return status;
  };
  EXPECT_EQ(ask({UWX_LKUP_NOTFOUND}), UWX_ERR_NOSYM);
  EXPECT_EQ(ask({UWX_LKUP_SYMINFO, {UWX_KEY_MODULE, 0, UWX_KEY_FUNC, 0}}), UWX_ERR_NOSYM);
  EXPECT_EQ(ask({UWX_LKUP_ERR}), UWX_ERR_LOOKUPERR);
  EXPECT_EQ(ask({UWX_LKUP_UTABLE, {UWX_KEY_USTART, 0}}), UWX_ERR_LOOKUPERR);
  EXPECT_EQ(ask({UWX_LKUP_SYMINFO, {UWX_KEY_USTART, 1}}), UWX_ERR_BADKEY);
}

/// "Not found" is an answer: the client is not asked again.
// covers: UX07
TEST(UwxNames, AreNotAskedForAgainWhereThereAreNone) {
  UwxTarget target;
  const ThreeFrames frames(target);
  ASSERT_EQ(frames.begin(), UWX_OK);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(uwx_get_source_info(target.env, nullptr, nullptr, nullptr, nullptr), UWX_ERR_NOSYM);
    EXPECT_EQ(uwx_get_sym_info(target.env, nullptr, nullptr, nullptr), UWX_ERR_NOSYM);
    EXPECT_EQ(uwx_get_module_info(target.env, nullptr, nullptr), UWX_OK) << "the table says where it begins";
  }
  EXPECT_EQ(target.count(UWX_LKUP_SYMBOLS), 1u);
  EXPECT_EQ(target.count(UWX_LKUP_MODULE), 1u);
}

// covers: UX09
TEST(UwxNames, OnlySymbolsAreAskedForByTheInlinedCall) {
  NamedFrames named;
  UwxTarget& target = named.target;
  ASSERT_EQ(uwx_step_inline(target.env, 1), UWX_OK);
  ASSERT_EQ(uwx_get_module_info(target.env, nullptr, nullptr), UWX_OK);
  ASSERT_EQ(uwx_get_source_info(target.env, nullptr, nullptr, nullptr, nullptr), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  for (const int request : {UWX_LKUP_MODULE, UWX_LKUP_SYMBOLS, UWX_LKUP_LOOKUP}) EXPECT_EQ(target.count(request), 1u);
  for (const Asked& asked : target.asked)
    EXPECT_EQ(asked.value_of(UWX_KEY_INLINE).value_or(0), asked.request == UWX_LKUP_SYMBOLS) << asked.request;
}

/// The client's strings cannot be read any more once the answer was given back.
// covers: UX19 UX20
TEST(UwxNames, StringsLiveUntilTheNextStep) {
  NamedFrames named;
  UwxTarget& target = named.target;
  char *module = nullptr, *function = nullptr, *first = nullptr, *second = nullptr;
  int context = 0;
  ASSERT_EQ(uwx_get_sym_info(target.env, &module, &function, nullptr), UWX_OK);
  ASSERT_EQ(uwx_get_source_info(target.env, nullptr, &first, nullptr, &context), UWX_OK);
  ASSERT_EQ(uwx_step_inline(target.env, context), UWX_OK);
  ASSERT_EQ(uwx_get_source_info(target.env, nullptr, &second, nullptr, nullptr), UWX_OK);
  EXPECT_EQ(target.held(), 0u);
  EXPECT_EQ(module, "module of " + std::to_string(named.frames.ip_of(0)));
  EXPECT_STREQ(function, "function");
  EXPECT_STREQ(first, "file0");
  EXPECT_STREQ(second, "file1");
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  char* next = nullptr;
  ASSERT_EQ(uwx_get_module_info(target.env, &next, nullptr), UWX_OK);
  EXPECT_EQ(next, "module of " + std::to_string(named.frames.ip_of(1)));
  EXPECT_EQ(next, module) << "the room of the frame before is used again";
}

/// A string without an end, or at an unreadable address, is cut.
// covers: UX19
TEST(UwxNames, StringsAreReadWithCare) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.answer = [](const Asked&) { return Given{UWX_LKUP_SYMINFO, {UWX_KEY_FUNC, 0x10, UWX_KEY_MODULE, ~0ull}}; };
  ASSERT_EQ(frames.begin(), UWX_OK);
  char *module = nullptr, *function = nullptr;
  ASSERT_EQ(uwx_get_sym_info(target.env, &module, &function, nullptr), UWX_OK);
  EXPECT_STREQ(function, "");
  EXPECT_STREQ(module, "");
  target.answer = [](const Asked&) { return Given{UWX_LKUP_SYMINFO, {}, {{UWX_KEY_FUNC, std::string(100'000, 'y')}}}; };
  ASSERT_EQ(frames.begin(), UWX_OK);
  ASSERT_EQ(uwx_get_sym_info(target.env, nullptr, &function, nullptr), UWX_OK);
  EXPECT_EQ(std::string(function), std::string(1 << 16, 'y'));
}

// covers: UX35 UX09 UX18
TEST(UwxNames, InlinedCallsAreStepped) {
  NamedFrames named;
  UwxTarget& target = named.target;
  const std::uint64_t ip = target.ip();
  EXPECT_EQ(uwx_step_inline(target.env, 0), UWX_ERR_NOSYM);
  std::vector<std::string> files, functions;
  int context = 0;
  do {
    ASSERT_EQ(context == 0 ? UWX_OK : uwx_step_inline(target.env, context), UWX_OK);
    char *inlined = nullptr, *file = nullptr;
    int line = 0;
    ASSERT_EQ(uwx_get_source_info(target.env, &inlined, &file, &line, &context), UWX_OK);
    EXPECT_EQ(line, 10 + static_cast<int>(files.size()));
    files.emplace_back(file);
    functions.emplace_back(inlined ? inlined : "-");
  } while (context != 0 && files.size() < 10);
  EXPECT_EQ(files, (std::vector<std::string>{"file0", "file1", "file2"}));
  EXPECT_EQ(functions, (std::vector<std::string>{"inlined0", "inlined1", "-"}));
  EXPECT_EQ(target.ip(), ip) << "one frame";
  EXPECT_FALSE(target.asked[0].value_of(UWX_KEY_INLINE));
  EXPECT_EQ(target.asked[1].value_of(UWX_KEY_INLINE), 1u);
  EXPECT_EQ(target.asked[2].value_of(UWX_KEY_INLINE), 2u);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  ASSERT_EQ(uwx_get_source_info(target.env, nullptr, nullptr, nullptr, nullptr), UWX_OK);
  EXPECT_FALSE(target.asked.back().value_of(UWX_KEY_INLINE));
}

/// An answer to LOOKUP may bring the names if they are cheap.
// covers: UX38
TEST(UwxNames, FramesMayBringTheirNames) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.answer = [&](const Asked& asked) -> Given {
    if (asked.request != UWX_LKUP_LOOKUP) return {};
    return {UWX_LKUP_FDESC,
            {UWX_KEY_FSIZE, 8, UWX_KEY_FUNCSTART, frames.ip_of(0) - 6},
            {{UWX_KEY_FUNC, "jit"}, {UWX_KEY_MODULE, "engine"}}};
  };
  ASSERT_EQ(frames.begin(), UWX_OK);
  std::uint64_t start = 0, offset = 0;
  ASSERT_EQ(uwx_get_funcstart(target.env, &start), UWX_OK);
  char *module = nullptr, *function = nullptr;
  ASSERT_EQ(uwx_get_sym_info(target.env, &module, &function, &offset), UWX_OK);
  EXPECT_STREQ(module, "engine");
  EXPECT_STREQ(function, "jit");
  EXPECT_EQ(offset, 6u);
  EXPECT_EQ(target.count(UWX_LKUP_SYMBOLS), 0u);
}

}  // namespace
}  // namespace jitunwind::test
