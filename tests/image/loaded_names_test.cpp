// Names of libraries that come and go, are stripped and replaced, and keep their symbols in every possible place.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "jitunwind/unwind_core/image/module_cache_p.h"
#include "tests/image/local_names.h"
#include "tests/support/command.h"
#include "tests/support/linkers.h"

namespace jitunwind::test {
namespace {

std::string built(const std::string& name) { return PLUGIN_FOLDER "/" + name + ".so"; }

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// Libraries of one build id count as one library, so copies with different symbols must not have it.
const std::string k_without_build_id = "objcopy --remove-section .note.gnu.build-id ";

class Plugin {
 public:
  explicit Plugin(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_NOW)) {
    if (!handle_) ADD_FAILURE() << ::dlerror();
  }
  ~Plugin() {
    if (handle_) ::dlclose(handle_);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  Addr base() const { return static_cast<const link_map*>(handle_)->l_addr; }
  Addr address(const char* function) const {
    const auto get = reinterpret_cast<const void* (*)()>(::dlsym(handle_, function));
    return get ? addr_of(get()) : 0;
  }
  std::string hidden() const { return local_name_text(address("plugin_hidden_address")); }
  std::string entry() const { return local_name_text(address("plugin_entry_address")); }

 private:
  void* handle_;
};

TEST(LoadedNames, OfAWholeLibrary) {
  for (const char* name : linked({"plugin_bfd", "plugin_gold", "plugin_lld", "plugin_plain"})) {
    const Plugin plugin(built(name));
    EXPECT_EQ(plugin.hidden(), "plugin_hidden") << name;
    EXPECT_EQ(plugin.entry(), "plugin_entry") << name;
  }
}

// A stripped library tells its exported names; its other functions have no name, rather than a neighbour's.
TEST(LoadedNames, OfAStrippedLibrary) {
  const TemporaryFolder folder;
  for (const char* name : linked({"plugin_bfd", "plugin_gold", "plugin_plain"})) {
    const std::string path = folder / (std::string(name) + ".so");
    output_of("strip -s -o " + path + " " + built(name) + " && " + k_without_build_id + path);
    const Plugin plugin(path);
    EXPECT_EQ(plugin.hidden(), "") << name;
    EXPECT_EQ(plugin.entry(), "plugin_entry") << name;
    Dl_info info;
    ASSERT_NE(::dladdr(reinterpret_cast<void*>(plugin.address("plugin_entry_address")), &info), 0);
    EXPECT_EQ(plugin.entry(), info.dli_sname);
    EXPECT_EQ(local_name(plugin.address("plugin_entry_address"))->start, addr_of(info.dli_saddr));
  }
}

// covers: PI09
TEST(LoadedNames, OfAStrippedLibraryWithMiniDebugInfo) {
  const TemporaryFolder folder;
  const std::string little = folder / "little", path = folder / "with.so", broken = folder / "broken.so";
  output_of("objcopy --only-keep-debug --strip-debug " + built("plugin_bfd") + " " + little);
  output_of("xz " + little);
  output_of("strip -s -o " + path + " " + built("plugin_bfd") + " && " + k_without_build_id + path);
  output_of("cp " + path + " " + broken);
  output_of("objcopy --add-section .gnu_debugdata=" + little + ".xz " + path);
  output_of("head -c 100 " + little + ".xz > " + little + ".cut");
  output_of("objcopy --add-section .gnu_debugdata=" + little + ".cut " + broken);
  {
    const Plugin plugin(path);
    EXPECT_EQ(plugin.hidden(), "plugin_hidden");
    EXPECT_EQ(plugin.entry(), "plugin_entry");
  }
  const Plugin plugin(broken);
  EXPECT_EQ(plugin.hidden(), "");
  EXPECT_EQ(plugin.entry(), "plugin_entry");
}

/// Returns the possible places of separate debug files (GDB manual), for a library <folder>/lib.so and a root.
std::vector<std::string> debug_file_places(const std::string& folder, const std::string& root,
                                           const std::string& build_id) {
  return {root + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug", folder + "/lib.debug",
          folder + "/.debug/lib.debug", root + folder + "/lib.debug"};
}

std::string build_id_of(const std::string& path) {
  const std::string text = output_of("readelf -n " + path);
  const std::size_t at = text.find("Build ID: ");
  return at == std::string::npos ? "" : text.substr(at + 10, text.find('\n', at) - at - 10);
}

std::string name_in_files(const std::string& path, const std::string& root, const std::string& symbol) {
  std::istringstream in(output_of("nm " + built("plugin_bfd") + " | grep ' " + symbol + "$'"));
  Addr at = 0;
  in >> std::hex >> at;
  const auto files = ModuleFiles::open(path.c_str(), nullptr, root.c_str());
  EXPECT_TRUE(files) << path;
  const auto found = files ? (*files)->find_symbol(at + 2) : std::nullopt;
  return found ? std::string(found->name) : "";
}

TEST(DebugFiles, AreFoundWhereGdbLooks) {
  const std::string id = build_id_of(built("plugin_bfd"));
  ASSERT_EQ(id.size(), 40u);
  for (std::size_t place = 0; place < 4; ++place) {
    const TemporaryFolder folder, root;
    const std::string debug = debug_file_places(folder.path(), root.path(), id)[place];
    const std::string path = folder / "lib.so";
    output_of("mkdir -p $(dirname " + debug + ") && cd $(dirname " + debug + ") && objcopy --only-keep-debug " +
              built("plugin_bfd") + " lib.debug && strip -s -o " + path + " " + built("plugin_bfd") +
              " && objcopy --add-gnu-debuglink=lib.debug " + path + " && [ lib.debug -ef " + debug +
              " ] || mv lib.debug " + debug);
    EXPECT_EQ(name_in_files(path, root.path(), "plugin_hidden"), "plugin_hidden") << debug;
    // The folder of the file itself counts, not that of a symbolic link to it.
    const TemporaryFolder elsewhere;
    output_of("ln -s " + path + " " + (elsewhere / "link.so"));
    EXPECT_EQ(name_in_files(elsewhere / "link.so", root.path(), "plugin_hidden"), "plugin_hidden") << debug;
    std::filesystem::remove(debug);
    EXPECT_EQ(name_in_files(path, root.path(), "plugin_hidden"), "") << debug;
  }
}

TEST(DebugFiles, OfAnotherBuildAreRefused) {
  const TemporaryFolder folder, root;
  const std::string path = folder / "lib.so", debug = folder / "lib.debug";
  output_of("cd " + folder.path() + " && objcopy --only-keep-debug " + built("plugin_bfd") +
            " lib.debug && strip -s -o " + path + " " + built("plugin_bfd") +
            " && objcopy --add-gnu-debuglink=lib.debug " + path);
  ASSERT_EQ(name_in_files(path, root.path(), "plugin_hidden"), "plugin_hidden");
  output_of("objcopy --only-keep-debug " + built("plugin_second") + " " + debug);
  EXPECT_EQ(name_in_files(path, root.path(), "plugin_hidden"), "") << "another build id";
}

// The checksum of the link decides if there are no build ids.
TEST(DebugFiles, OfAnotherChecksumAreRefused) {
  const TemporaryFolder folder, root;
  const std::string path = folder / "lib.so", debug = folder / "lib.debug";
  output_of("cd " + folder.path() + " && objcopy --only-keep-debug " + built("plugin_plain") +
            " lib.debug && strip -s -o " + path + " " + built("plugin_plain") +
            " && objcopy --add-gnu-debuglink=lib.debug " + path);
  ASSERT_EQ(build_id_of(path), "");
  EXPECT_TRUE((*ModuleFiles::open(path.c_str(), nullptr, root.path().c_str()))->has_debug_file());
  output_of("printf x >> " + debug);
  EXPECT_FALSE((*ModuleFiles::open(path.c_str(), nullptr, root.path().c_str()))->has_debug_file());
}

/// Only `size` bytes are left of a file: what was read of it before stays, and the rest is absent.
void expect_survives(const std::string& path, const std::string& truncated, std::uintmax_t size) {
  const auto read_before = *ModuleFiles::open(path.c_str(), nullptr, "/nowhere");
  const auto read_after = *ModuleFiles::open(path.c_str(), nullptr, "/nowhere");
  ASSERT_TRUE(read_before->symbols());
  const SymbolIndex& symbols = *read_before->symbols();
  std::vector<std::string> names;
  const auto name_at = [](const SymbolIndex& index, Addr at) {
    const auto found = index.find(at);
    return found ? std::string(found->name) : "";
  };
  for (Addr at = 0; at < 0x4000; at += 4) names.push_back(name_at(symbols, at));
  EXPECT_TRUE(std::ranges::find(names, "plugin_hidden") != names.end());
  std::filesystem::resize_file(truncated, size);
  for (Addr at = 0; at < 0x4000; at += 4) EXPECT_EQ(name_at(symbols, at), names[at / 4]) << truncated << size;
  (void)read_before->debug_frame();
  (void)read_before->eh_frame();
  if (const SymbolIndex* const left = read_after->symbols()) {
    for (Addr at = 0; at < 0x4000; at += 4) (void)left->find(at);
  }
  (void)ModuleFiles::open(path.c_str(), nullptr, "/nowhere");
}

TEST(DebugFiles, MayBeTruncatedAnyTime) {
  for (const std::uintmax_t size : {0u, 1u, 64u, 4096u}) {
    const TemporaryFolder folder;
    const std::string path = folder / "lib.so", debug = folder / "lib.debug";
    output_of("cd " + folder.path() + " && objcopy --only-keep-debug " + built("plugin_bfd") +
              " lib.debug && strip -s -o " + path + " " + built("plugin_bfd") +
              " && objcopy --add-gnu-debuglink=lib.debug " + path);
    expect_survives(path, debug, size);
    output_of("cp " + built("plugin_bfd") + " " + path);
    expect_survives(path, path, size);
  }
}

/// The loader does not map a loaded library's debug file.
TEST(DebugFiles, OfLoadedLibrariesMayBeTruncated) {
  const TemporaryFolder folder;
  const std::string path = folder / "lib.so", debug = folder / "lib.debug";
  // The library is unknown, because it has another build id.
  output_of("cd " + folder.path() + " && objcopy --remove-section .note.gnu.build-id " + built("plugin_plain") +
            " whole && objcopy --only-keep-debug whole lib.debug && strip -s -o " + path +
            " whole && objcopy --add-gnu-debuglink=lib.debug " + path);
  const Plugin plugin(path);
  ASSERT_EQ(local_name_text(plugin.address("plugin_hidden_address")), "plugin_hidden");
  std::filesystem::resize_file(debug, 0);
  EXPECT_EQ(local_name_text(plugin.address("plugin_hidden_address")), "plugin_hidden");
  EXPECT_EQ(local_name_text(plugin.address("plugin_entry_address")), "plugin_entry");
}

/// Names of libraries that were deleted and unloaded keep nothing mapped.
TEST(Libraries, AreForgottenWhenTheyAreUnloaded) {
  const TemporaryFolder folder;
  std::string bytes = text_of_file(built("plugin_bfd"));
  const std::string note("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
  const std::size_t id = bytes.find(note);
  ASSERT_NE(id, std::string::npos);
  const auto mappings = [] { return lines_of(output_of("cat /proc/$PPID/maps")); };
  const auto use_one = [&](unsigned number) {
    std::memcpy(bytes.data() + id + note.size(), &number, sizeof number);
    const std::string path = folder / ("plugin" + std::to_string(number) + ".so");
    std::ofstream(path, std::ios::binary) << bytes;
    {
      const Plugin plugin(path);
      EXPECT_EQ(local_name_text(plugin.address("plugin_hidden_address")), "plugin_hidden");
    }
    std::filesystem::remove(path);
  };
  constexpr unsigned k_before = 40, k_more = 400;
  for (unsigned i = 0; i < k_before; ++i) use_one(i);
  const std::size_t before = mappings().size();
  for (unsigned i = 0; i < k_more; ++i) use_one(k_before + i);
  const auto after = mappings();
  EXPECT_LT(after.size(), before + 5 * k_openings_to_forget) << "of each some mappings";
  for (const std::string& line : after) EXPECT_EQ(line.find(folder.path()), std::string::npos) << line;
}

std::span<const std::byte> debug_frame_of(const ModuleFiles& files) {
  const CopiedSection* const section = files.debug_frame();
  return section ? section->bytes.bytes() : std::span<const std::byte>();
}

TEST(DebugFiles, GiveDebugFrameHoweverItIsCompressed) {
  const TemporaryFolder folder;
  const std::string source = folder / "f.c", object = folder / "f.o";
  std::ofstream(source) << "int f(int (*g)(int), int x) { return g(x + 1) * 2; }\n";
  output_of("gcc -c -g -O1 -fno-asynchronous-unwind-tables " + source + " -o " + object);
  const auto plain = *ModuleFiles::open(object.c_str(), nullptr);
  ASSERT_GT(debug_frame_of(*plain).size(), 40u);
  // A section that is too small is left uncompressed, so it is made large first.
  std::string many;
  for (int i = 0; i < 200; ++i) many += "int f" + std::to_string(i) + "(int (*g)(int)) { return g(1) * 2; }\n";
  std::ofstream(source) << many;
  output_of("gcc -c -g -O1 -fno-asynchronous-unwind-tables " + source + " -o " + object);
  const auto large = *ModuleFiles::open(object.c_str(), nullptr);
  for (const std::string kind : {"zlib", "zlib-gnu"}) {
    const std::string compressed = folder / kind;
    output_of("objcopy --compress-debug-sections=" + kind + " " + object + " " + compressed);
    const auto files = *ModuleFiles::open(compressed.c_str(), nullptr);
    ASSERT_LT(std::filesystem::file_size(compressed), std::filesystem::file_size(object));
    EXPECT_TRUE(std::ranges::equal(debug_frame_of(*files), debug_frame_of(*large))) << kind;
  }
}

/// Files of a hostile process may have any number of sections that decompress to a GiB each. The block that takes the
/// room here is never written to.
TEST(DebugFiles, AreNotReadWhereOthersTakeTheRoom) {
  const TemporaryFolder folder;
  const std::string source = folder / "f.c", object = folder / "f.o";
  std::ofstream(source) << "int f(int (*g)(int), int x) { return g(x + 1) * 2; }\n";
  output_of("gcc -c -g -O1 -fno-asynchronous-unwind-tables " + source + " -o " + object);
  const auto symbols_of = [](const ModuleFiles& files) { return files.symbols()->size(); };
  {
    const KeptBlock others{Block(KeptBlock::k_most_bytes)};
    ASSERT_FALSE(others.empty());
    const auto files = *ModuleFiles::open(object.c_str(), nullptr);
    EXPECT_STREQ(files->debug_frame()->unread, k_no_room);
    EXPECT_EQ(symbols_of(*files), 0u);
  }
  const auto files = *ModuleFiles::open(object.c_str(), nullptr);
  EXPECT_GT(debug_frame_of(*files).size(), 40u);
  EXPECT_EQ(symbols_of(*files), 1u);
  EXPECT_FALSE(KeptBlock(Block(KeptBlock::k_most_bytes)).empty());
  EXPECT_TRUE(KeptBlock::has_room()) << "it was given back";
}

TEST(LoadedNames, OfADeletedLibraryComeFromMemory) {
  const TemporaryFolder folder;
  for (const char* name : linked({"plugin_bfd", "plugin_gold", "plugin_lld", "plugin_plain"})) {
    const std::string path = folder / "deleted.so";
    output_of("cp " + built(name) + " " + path + " && " + k_without_build_id + path);
    const Plugin plugin(path);
    std::filesystem::remove(path);
    EXPECT_EQ(plugin.entry(), "plugin_entry") << name;
    EXPECT_EQ(plugin.hidden(), "") << name;
  }
}

// The library was upgraded while the program runs: the path leads to another library, with other functions at the same
// addresses.
TEST(LoadedNames, OfAReplacedLibraryAreNotThoseOfTheNewFile) {
  const TemporaryFolder folder;
  for (const char* suffix : {"", "_plain"}) {
    const std::string path = folder / "replaced.so", next = folder / "next.so";
    output_of("cp " + built(*suffix ? "plugin_plain" : "plugin_bfd") + " " + path);
    output_of(k_without_build_id + path);
    const Plugin plugin(path);
    output_of("cp " + built(std::string("plugin_second") + suffix) + " " + next + " && mv " + next + " " + path);
    EXPECT_EQ(plugin.entry(), "plugin_entry");
    EXPECT_EQ(plugin.hidden(), "");
  }
}

/// Opens one library after the other until the second is where the first was.
void expect_names_follow(const std::string& first, const std::string& second, const std::string& second_source = "") {
  for (int attempt = 0; attempt < 50; ++attempt) {
    Addr base = 0;
    {
      const Plugin plugin(first);
      base = plugin.base();
      ASSERT_EQ(plugin.hidden(), "plugin_hidden");
      ASSERT_EQ(plugin.entry(), "plugin_entry");
    }
    if (!second_source.empty())
      output_of("cp " + second_source + " " + second + ".new && mv " + second + ".new " + second);
    const Plugin plugin(second);
    if (plugin.base() == base) {
      EXPECT_EQ(plugin.hidden(), "second_hidden");
      EXPECT_EQ(plugin.entry(), "second_entry");
      return;
    }
  }
  FAIL() << "the second library was never loaded where the first had been";
}

TEST(LoadedNames, FollowAnotherLibraryAtTheSameAddress) {
  expect_names_follow(built("plugin_bfd"), built("plugin_second"));
  expect_names_follow(built("plugin_plain"), built("plugin_second_plain"));
}

TEST(LoadedNames, FollowAnotherFileOfTheSameName) {
  const TemporaryFolder folder;
  for (const char* suffix : {"", "_plain"}) {
    const std::string path = folder / (std::string("same") + suffix + ".so");
    output_of("cp " + built(*suffix ? "plugin_plain" : "plugin_bfd") + " " + path);
    expect_names_follow(path, path, built(std::string("plugin_second") + suffix));
  }
}

TEST(LoadedNames, OfTheKernelsObjectComeFromMemory) {
  const Addr vdso = ::getauxval(AT_SYSINFO_EHDR);
  void* const handle = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  for (const char* function : {"__vdso_gettimeofday", "__vdso_clock_gettime", "__vdso_getcpu"}) {
    const Addr at = addr_of(::dlvsym(handle, function, "LINUX_2.6"));
    ASSERT_GT(at, vdso);
    // An alias may be returned: gettimeofday and __vdso_gettimeofday are one function.
    const auto found = local_name(at);
    ASSERT_TRUE(found) << function;
    EXPECT_EQ(found->start, at);
    EXPECT_NE(std::string(function).find(found->text), std::string::npos) << found->text;
  }
  ::dlclose(handle);
}

// covers: SF02
TEST(LoadedNames, AreRightWhileLibrariesComeAndGo) {
  std::atomic<bool> stop = false;
  std::thread opener([&stop] {
    while (!stop) {
      const Plugin first(built("plugin_second"));
      const Plugin second(built("plugin_second_plain"));
    }
  });
  const Plugin plugin(built("plugin_plain"));
  const Addr hidden = plugin.address("plugin_hidden_address");
  const Addr entry = plugin.address("plugin_entry_address");
  std::vector<std::thread> readers;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      for (int n = 0; n < 300; ++n)
        if (local_name_text(hidden) != "plugin_hidden" || local_name_text(entry) != "plugin_entry") ++wrong;
    });
  for (std::thread& t : readers) t.join();
  stop = true;
  opener.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace jitunwind::test
