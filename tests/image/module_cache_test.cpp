// The kept files: they are found again by build id or by identity, are never confused, and work when the table is full.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "jitunwind/unwind_core/image/module_cache_p.h"
#include "tests/support/command.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test {
namespace {

/// Makes a small object with one function, whose address distinguishes objects.
RawBytes object(const std::string& build_id, Addr function) {
  ElfBuilder b(true, false);
  b.sections = {
      {".text", SHT_NOBITS, {}, 0x1000, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 16, 0x1000000},
      {".symtab", SHT_SYMTAB, b.symbols({{1, function, 16, STT_FUNC, STB_GLOBAL, 1}}), 0, 0, 3, sizeof(Elf64_Sym)},
      {".strtab", SHT_STRTAB, b.bytes().text("").text("f").vector()},
      {".note", SHT_NOTE, b.note("GNU", NT_GNU_BUILD_ID, build_id).vector()}};
  b.segments = {{}, {}};
  const std::size_t note = b.offset_of(3);
  b.segments = {{PT_LOAD, PF_R, 0, 0, note + 64, note + 64, 4096}, {PT_NOTE, PF_R, note, note, 64, 64, 4}};
  if (build_id.empty()) b.sections.pop_back(), b.segments.pop_back();
  return b.build();
}

void write(const std::string& path, const RawBytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Objects are "loaded" at these addresses.
std::map<Addr, RawBytes> g_loaded;

class Object final : public WantedObject {
 public:
  Object(std::string path, const RawBytes& in_memory, Addr place = 0)
      : path_(std::move(path)), image_(*ElfImage::parse_loaded(in_memory, in_memory.size())), place_(place) {}
  std::span<const std::byte> build_id() noexcept override { return image_.build_id(); }
  const ElfImage* image() noexcept override { return &image_; }
  const char* path() noexcept override { return path_.c_str(); }
  Addr place() noexcept override { return place_; }
  bool is_still_at(Addr place, const ObjectIdentity& identity) noexcept override {
    const auto there = g_loaded.find(place);
    if (there == g_loaded.end()) return false;
    Object object(path_, there->second);
    return identity_of(object) == identity;
  }

 private:
  std::string path_;
  ElfImage image_;
  Addr place_;
};

ModuleFilesLease lookup(const std::string& path, const RawBytes& in_memory, Addr place = 0) {
  Object object(path, in_memory, place);
  return find_module_files(object);
}

bool names(const ModuleFilesLease& lease, Addr function) {
  return lease.files() && lease.files()->find_symbol(function + 1).has_value();
}

TEST(ModuleCache, KeepsFilesByBuildId) {
  const TemporaryFolder folder;
  const RawBytes one = object("identity one", 0x1000), two = object("identity two", 0x2000);
  write(folder / "one", one);
  const ModuleFilesLease first = lookup(folder / "one", one);
  ASSERT_TRUE(names(first, 0x1000));
  EXPECT_TRUE(first.is_kept());
  EXPECT_EQ(lookup(folder / "one", one).files(), first.files());
  // A known file stays known wherever it lies, and after it was removed.
  std::filesystem::remove(folder / "one");
  EXPECT_EQ(lookup(folder / "one", one).files(), first.files());
  EXPECT_EQ(lookup(folder / "elsewhere", one).files(), first.files());
  // Another object under the same path is not confused with it.
  write(folder / "one", two);
  EXPECT_TRUE(names(lookup(folder / "one", two), 0x2000));
  EXPECT_FALSE(names(lookup(folder / "one", two), 0x1000));
  EXPECT_EQ(lookup(folder / "one", one).files(), first.files());
}

TEST(ModuleCache, RefusesFilesThatAreNotLoaded) {
  const TemporaryFolder folder;
  write(folder / "file", object("on disk", 0x1000));
  EXPECT_FALSE(lookup(folder / "file", object("in memory", 0x1000)).files());
  write(folder / "plain", object("", 0x1000));
  EXPECT_FALSE(lookup(folder / "plain", object("", 0x2000)).files());
  EXPECT_TRUE(lookup(folder / "plain", object("", 0x1000)).files());
  EXPECT_FALSE(lookup(folder / "none", object("", 0x1000)).files());
}

TEST(ModuleCache, KeepsFilesWithoutBuildIdByTheirIdentity) {
  const TemporaryFolder folder;
  const RawBytes one = object("", 0x1000), two = object("", 0x2000);
  const std::string path = folder / "file";
  write(path, one);
  const ModuleFilesLease first = lookup(path, one);
  ASSERT_TRUE(names(first, 0x1000));
  EXPECT_EQ(lookup(path, one).files(), first.files());
  // The library was upgraded: the loaded one is still the old one, to which the path no longer leads.
  write(folder / "next", two);
  std::filesystem::rename(folder / "next", path);
  EXPECT_FALSE(lookup(path, one).files());
  EXPECT_TRUE(names(lookup(path, two), 0x2000));
}

TEST(ModuleCache, GivesOneAnswerToManyThreads) {
  const TemporaryFolder folder;
  const RawBytes bytes = object("asked by many", 0x3000);
  write(folder / "file", bytes);
  std::vector<const ModuleFiles*> answers(8);
  std::vector<std::thread> threads;
  for (const ModuleFiles*& answer : answers)
    threads.emplace_back([&] {
      const ModuleFilesLease lease = lookup(folder / "file", bytes);
      if (names(lease, 0x3000)) answer = lease.files();
    });
  for (std::thread& t : threads) t.join();
  for (const ModuleFiles* answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_NE(answers[0], nullptr);
}

/// Looks up other files until the cache forgets.
void look_up_others(const TemporaryFolder& folder) {
  const RawBytes other = object("some other", 0x1000);
  write(folder / "other", other);
  for (std::size_t i = 0; i <= k_lookups_to_forget; ++i) (void)lookup(folder / "other", other);
}

class UnloadedObjects : public testing::Test {
 protected:
  ~UnloadedObjects() override { g_loaded.clear(); }
  /// The library is looked up while it is loaded there and its file is gone, so only kept knowledge finds it.
  ModuleFilesLease load(const std::string& name, Addr place) {
    g_loaded[place] = object(name, 0x1000);
    write(folder_ / name, g_loaded[place]);
    ModuleFilesLease lease = lookup(folder_ / name, g_loaded[place], place);
    EXPECT_TRUE(names(lease, 0x1000));
    std::filesystem::remove(folder_ / name);
    return lease;
  }
  bool is_kept(const std::string& name) {
    return lookup(folder_ / name, object(name, 0x1000), 0x1000).files() != nullptr;
  }

  TemporaryFolder folder_;
};

TEST_F(UnloadedObjects, AreForgotten) {
  (void)load("stays loaded", 0x1000);
  (void)load("goes", 0x2000);
  look_up_others(folder_);
  g_loaded.erase(0x2000);
  look_up_others(folder_);
  EXPECT_TRUE(is_kept("stays loaded"));
  EXPECT_FALSE(is_kept("goes"));
}

TEST_F(UnloadedObjects, AreForgottenWhereOthersTookTheirPlace) {
  (void)load("first there", 0x1000);
  (void)load("second there", 0x1000);
  look_up_others(folder_);
  EXPECT_FALSE(is_kept("first there"));
  EXPECT_TRUE(is_kept("second there"));
}

TEST_F(UnloadedObjects, AreForgottenByLookupsThatOpenFiles) {
  for (int i = 0; i < 200; ++i) (void)load("opened as number " + std::to_string(i), 0x1000);
  unsigned kept = 0;
  for (int i = 0; i < 200; ++i) kept += is_kept("opened as number " + std::to_string(i));
  EXPECT_GE(kept, 1u);
  EXPECT_LE(kept, k_openings_to_forget + 1);
}

TEST_F(UnloadedObjects, StayWhileTheyAreAtAnotherPlace) {
  (void)load("at two places", 0x1000);
  const RawBytes bytes = g_loaded[0x2000] = g_loaded[0x1000];
  ASSERT_TRUE(lookup(folder_ / "gone", bytes, 0x2000).files());
  g_loaded.erase(0x2000);
  look_up_others(folder_);
  EXPECT_TRUE(is_kept("at two places"));
}

TEST_F(UnloadedObjects, StayAsLongAsTheyAreLeased) {
  ModuleFilesLease lease = load("leased", 0x1000);
  g_loaded.clear();
  look_up_others(folder_);
  EXPECT_TRUE(names(lease, 0x1000));
  lease = {};
  EXPECT_TRUE(is_kept("leased"));
  g_loaded.clear();
  look_up_others(folder_);
  EXPECT_FALSE(is_kept("leased"));
}

TEST_F(UnloadedObjects, AreTakenFromNobodyWhoUsesThem) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  write(folder_ / "used", object("used", 0x1000));
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      // Nothing is loaded, so each thread finds what the others keep removing.
      while (!stop) EXPECT_TRUE(names(lookup(folder_ / "used", object("used", 0x1000), 0x5000), 0x1000));
    });
  for (int i = 0; i < 300; ++i) {
    const std::string name = "by the way " + std::to_string(i);
    write(folder_ / name, object(name, 0x1000));
    EXPECT_TRUE(names(lookup(folder_ / name, object(name, 0x1000), 0x6000), 0x1000));
  }
  stop = true;
  for (std::thread& t : threads) t.join();
}

// This is the last test, because it fills the table of the process.
TEST(ModuleCacheWhenFull, OpensFilesForOneLookupEach) {
  const TemporaryFolder folder;
  std::size_t kept = 0, opened = 0;
  for (unsigned i = 0; i < 4800; ++i) {
    const Addr function = 0x1000 + 16 * i;
    const RawBytes bytes = object("number " + std::to_string(i), function);
    const std::string path = folder / "file";
    write(path + ".new", bytes);
    std::filesystem::rename(path + ".new", path);
    const ModuleFilesLease lease = lookup(path, bytes);
    ASSERT_TRUE(names(lease, function)) << i;
    ++(lease.is_kept() ? kept : opened);
    if (i % 64 == 0) {
      ASSERT_TRUE(names(lookup(path, bytes), function)) << i;
    }
  }
  std::printf("%zu kept, %zu opened for one look-up\n", kept, opened);
  EXPECT_GT(kept, 3900u);
  EXPECT_GT(opened, 500u);
}

}  // namespace
}  // namespace jitunwind::test
