// Names and source lines from files: of frames of the thread itself, and by module and relative address. binutils'
// addr2line is the witness.
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/jit_frame.h"
#include "tests/uwx/self_walks.h"

namespace jitunwind::test {
namespace {

constexpr const char* k_library = INLINED_CALLS;

/// One level of inlined calls.
struct Level {
  std::string function;  ///< that the place is inlined from, or the one that stands there
  std::string place;     ///< "inlined_calls.c:7"
  friend bool operator==(const Level&, const Level&) = default;
};
std::ostream& operator<<(std::ostream& out, const Level& level) { return out << level.function << " " << level.place; }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Returns addr2line's functions, from the innermost one outwards.
std::vector<Level> levels_by_witness(std::uint64_t address) {
  std::ostringstream command;
  command << "addr2line -fi -e '" << k_library << "' 0x" << std::hex << address;
  std::istringstream lines(output_of(command.str()));
  std::vector<Level> levels;
  for (std::string function, place; std::getline(lines, function) && std::getline(lines, place);)
    levels.push_back({function, base_name(place.substr(0, place.find(" (")))});
  return levels;
}

struct Found {
  std::vector<Level> levels;
  std::string function, module;
  std::uint64_t offset = 0, ip = 0, text_base = 0;
  int again = 0;
};

/// Looks at the calling frame.
int look(void* into) {
  Found& found = *static_cast<Found*>(into);
  const SelfEnv self;
  EXPECT_EQ(uwx_self_init_context(self.env), UWX_OK);
  EXPECT_EQ(uwx_step(self.env), UWX_OK);
  found.ip = self.reg(UWX_REG_IP);
  char *module = nullptr, *function = nullptr;
  EXPECT_EQ(uwx_get_sym_info(self.env, &module, &function, &found.offset), UWX_OK);
  EXPECT_EQ(uwx_get_module_info(self.env, &module, &found.text_base), UWX_OK);
  found.module = module;
  found.function = function;
  for (int context = 0;;) {
    char *inlined = nullptr, *file = nullptr;
    int line = 0;
    EXPECT_EQ(uwx_get_source_info(self.env, &inlined, &file, &line, &context), UWX_OK);
    found.levels.push_back({inlined ? inlined : function, base_name(file ? file : "?") + ":" + std::to_string(line)});
    if (context == 0 || found.levels.size() > 5) break;
    EXPECT_EQ(uwx_step_inline(self.env, context), UWX_OK);
  }
  EXPECT_STREQ(function, found.function.c_str()) << "strings live until the next step";
  EXPECT_EQ(uwx_step_inline(self.env, 17), UWX_OK);
  char* file = nullptr;
  found.again = uwx_get_source_info(self.env, nullptr, &file, nullptr, nullptr);
  EXPECT_EQ(file, nullptr) << "so many are not there";
  return 0;
}

Found found_through_inlined() {
  void* const library = ::dlopen(k_library, RTLD_NOW);
  EXPECT_NE(library, nullptr) << ::dlerror();
  using Through = int (*)(int (*)(void*), void*);
  const auto through = reinterpret_cast<Through>(::dlsym(library, "jitunwind_test_through_inlined"));
  Found found;
  EXPECT_EQ(through(&look, &found), 7);
  ::dlclose(library);
  return found;
}

// covers: UX34 UX35 UX18
TEST(UwxFiles, FramesHaveTheirSourceThroughInlinedCalls) {
  const Found found = found_through_inlined();
  EXPECT_EQ(found.function, "jitunwind_test_through_inlined");
  EXPECT_EQ(base_name(found.module), base_name(k_library));
  ASSERT_EQ(found.levels.size(), 3u);
  EXPECT_EQ(found.levels, levels_by_witness(found.ip - 1 - found.text_base));
  EXPECT_EQ(found.levels[0].function, "jitunwind_test_inner");
}

// covers: UX34
TEST(UwxFiles, FilesAreAskedWithoutAWalk) {
  const Found walked = found_through_inlined();
  const std::uint64_t relip = walked.ip - 1 - walked.text_base;
  uwx_env* const env = uwx_init();
  uwx_symbol_cache* cache = nullptr;
  std::string path = k_library;
  for (uwx_symbol_cache** const kept : {static_cast<uwx_symbol_cache**>(nullptr), &cache, &cache}) {
    char* function = nullptr;
    std::uint64_t offset = 0;
    ASSERT_EQ(uwx_find_symbol(env, kept, path.data(), relip, &function, &offset), UWX_OK);
    EXPECT_STREQ(function, "jitunwind_test_through_inlined");
    EXPECT_EQ(offset, walked.offset - 1);
    std::vector<Level> levels;
    int context = 0;
    do {
      char *inlined = nullptr, *file = nullptr;
      int line = 0;
      ASSERT_EQ(uwx_find_source_info(env, kept, path.data(), relip, relip - offset, context, &inlined, &function,
                                     &offset, &file, &line, &context),
                UWX_OK);
      levels.push_back({inlined ? inlined : function, base_name(file) + ":" + std::to_string(line)});
    } while (context != 0 && levels.size() < 9);
    EXPECT_EQ(levels, walked.levels);
  }
  EXPECT_NE(cache, nullptr);
  EXPECT_EQ(
      uwx_find_source_info(env, &cache, path.data(), relip, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      UWX_OK);
  EXPECT_EQ(uwx_find_symbol(env, &cache, path.data(), relip, nullptr, nullptr), UWX_OK);
  EXPECT_EQ(uwx_release_symbol_cache(env, cache), UWX_OK);
  EXPECT_EQ(uwx_release_symbol_cache(env, nullptr), UWX_OK);
  EXPECT_EQ(uwx_release_symbol_cache(nullptr, nullptr), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_free(env), UWX_OK);
}

/// clang writes no .debug_aranges.
// covers: UX34 UX35
TEST(UwxFiles, UnitsAreFoundWithoutTheirTableOfAddresses) {
  const Found walked = found_through_inlined();
  const std::string folder = output_of("mktemp -d | tr -d '\\n'");
  std::string copy = folder + "/without.so";
  (void)output_of("objcopy --remove-section .debug_aranges '" + std::string(k_library) + "' " + copy);
  uwx_env* const env = uwx_init();
  char *inlined = nullptr, *file = nullptr;
  int line = 0, context = 0;
  EXPECT_EQ(uwx_find_source_info(env, nullptr, copy.data(), walked.ip - 1 - walked.text_base, 0, 0, &inlined, nullptr,
                                 nullptr, &file, &line, &context),
            UWX_OK);
  EXPECT_STREQ(inlined, "jitunwind_test_inner");
  EXPECT_EQ(base_name(file ? file : "?") + ":" + std::to_string(line), walked.levels[0].place);
  EXPECT_EQ(context, 1);
  EXPECT_EQ(uwx_free(env), UWX_OK);
  (void)output_of("rm -r '" + folder + "'");
}

// covers: UX34 UX29
TEST(UwxFiles, WhatIsNotThereIsSaidNotToBe) {
  uwx_env* const env = uwx_init();
  char stale[] = "stale";
  for (std::string path : {std::string("/nowhere"), std::string("/etc/passwd"), std::string(k_library)}) {
    char *function = stale, *file = stale;
    std::uint64_t offset = 9;
    int line = 9, context = 9;
    EXPECT_EQ(uwx_find_symbol(env, nullptr, path.data(), 1 << 30, &function, &offset), UWX_ERR_NOSYM);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(offset, 0u);
    EXPECT_EQ(uwx_find_source_info(env, nullptr, path.data(), 1 << 30, 0, 0, nullptr, nullptr, nullptr, &file, &line,
                                   &context),
              UWX_ERR_NOSYM);
    EXPECT_EQ(file, nullptr);
    EXPECT_EQ(line, 0);
    EXPECT_EQ(context, 0);
  }
  std::string path = k_library;
  EXPECT_EQ(uwx_find_symbol(env, nullptr, nullptr, 1, nullptr, nullptr), UWX_ERR_NOSYM);
  EXPECT_EQ(uwx_find_symbol(nullptr, nullptr, path.data(), 1, nullptr, nullptr), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_free(env), UWX_OK);
}

/// A program that is not relocated: addresses in its file begin at 0x400000, relative ones at 0.
// covers: UX34
TEST(UwxFiles, RelativeAddressesCountFromTheModule) {
  const std::string folder = output_of("mktemp -d | tr -d '\\n'"), file = folder + "/program";
  (void)output_of("echo 'int apart(void) { return 3; } int main(void) { return apart(); }' | cc -no-pie -x c - -o " +
                  file);
  const std::uint64_t at = std::stoull(output_of("nm " + file + " | grep ' T apart' | cut -d' ' -f1"), nullptr, 16);
  ASSERT_GE(at, 0x400000u);
  uwx_env* const env = uwx_init();
  char* function = nullptr;
  std::uint64_t offset = 9;
  std::string path = file;
  EXPECT_EQ(uwx_find_symbol(env, nullptr, path.data(), at - 0x400000 + 1, &function, &offset), UWX_OK);
  EXPECT_STREQ(function, "apart");
  EXPECT_EQ(offset, 1u);
  EXPECT_EQ(uwx_free(env), UWX_OK);
  (void)output_of("rm -r '" + folder + "'");
}

/// A file that has changed is read again.
// covers: UX34
TEST(UwxFiles, CachesAreOfTheFilesThatThereAre) {
  const std::string folder = output_of("mktemp -d | tr -d '\\n'"), file = folder + "/lib.so";
  uwx_env* const env = uwx_init();
  uwx_symbol_cache* cache = nullptr;
  std::string path = file;
  for (const std::string name : {"first", "second"}) {
    (void)output_of("rm -f '" + file + "'; echo 'int " + name +
                    "(void) { return 3; }' | cc -shared -fPIC -nostdlib -x c - -o " + file);
    const std::uint64_t at = std::stoull(output_of("nm " + file + " | grep ' T ' | cut -d' ' -f1"), nullptr, 16);
    char* function = nullptr;
    EXPECT_EQ(uwx_find_symbol(env, &cache, path.data(), at, &function, nullptr), UWX_OK);
    EXPECT_STREQ(function, name.c_str());
  }
  EXPECT_EQ(uwx_release_symbol_cache(env, cache), UWX_OK);
  EXPECT_EQ(uwx_free(env), UWX_OK);
  (void)output_of("rm -r '" + folder + "'");
}

struct OfRegisteredCode {
  std::string name;
  std::uint64_t offset = 0, start = 0, base = 9;
  int module_status = 0;
  char* module = nullptr;
  char* file = nullptr;
};

/// Looks at the calling frame.
[[gnu::noinline]] void* look_at_registered(void* into) {
  OfRegisteredCode& seen = *static_cast<OfRegisteredCode*>(into);
  const SelfEnv self;
  EXPECT_EQ(uwx_self_init_context(self.env), UWX_OK);
  EXPECT_EQ(uwx_step(self.env), UWX_OK);
  char* name = nullptr;
  EXPECT_EQ(uwx_get_sym_info(self.env, &seen.module, &name, &seen.offset), UWX_OK);
  seen.name = name ? name : "?";
  EXPECT_EQ(uwx_get_funcstart(self.env, &seen.start), UWX_OK);
  seen.module_status = uwx_get_module_info(self.env, nullptr, &seen.base);
  EXPECT_EQ(uwx_get_source_info(self.env, nullptr, &seen.file, nullptr, nullptr), UWX_OK);
  return nullptr;
}

/// Registered code has the name that it was registered with, and no module.
// covers: UX34 UX17
TEST(UwxFiles, RegisteredCodeHasItsName) {
  const JitFrame frame;
  OfRegisteredCode seen;
  (void)frame(&look_at_registered, &seen);
  EXPECT_EQ(seen.name, "jit_frame");
  EXPECT_EQ(seen.start, frame.start());
  EXPECT_EQ(seen.offset, frame.return_address() - frame.start());
  EXPECT_EQ(seen.module, nullptr);
  EXPECT_EQ(seen.module_status, UWX_ERR_NOSYM);
  EXPECT_EQ(seen.base, 0u);
  EXPECT_EQ(seen.file, nullptr);
}

bool has_memory = true;
void* allocate(std::size_t size) { return has_memory ? std::malloc(size) : nullptr; }

// covers: UX29 UX30
TEST(UwxFiles, MemoryIsTheClients) {
  ASSERT_EQ(uwx_register_alloc_cb(&allocate, &std::free), UWX_OK);
  uwx_env* const env = uwx_init();
  ASSERT_EQ(uwx_register_alloc_cb(nullptr, nullptr), UWX_OK);
  has_memory = false;
  uwx_symbol_cache* cache = nullptr;
  std::string path = k_library;
  EXPECT_EQ(uwx_find_symbol(env, &cache, path.data(), 1, nullptr, nullptr), UWX_ERR_NOMEM);
  EXPECT_EQ(cache, nullptr);
  EXPECT_EQ(uwx_find_symbol(env, nullptr, path.data(), 1, nullptr, nullptr), UWX_ERR_NOMEM);
  EXPECT_EQ(uwx_self_init_info(env), nullptr);
  has_memory = true;
  EXPECT_EQ(uwx_free(env), UWX_OK);
}

}  // namespace
}  // namespace jitunwind::test
