// The kept files: found again by build id or by identity, never confused, and no end of them when the table is full.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <vector>

#include "tests/image/elf_builder.h"
#include "tests/support/command.h"
#include "unwind_core/image/module_cache_p.h"

namespace jitunwind::test {
namespace {

/// A small object with one function, whose address tells objects apart.
Bytes object(const std::string& build_id, Addr function) {
  ElfBuilder b(true, false);
  ElfBytes symbols = b.bytes();
  symbols.symbol(0, 0, 0, 0, 0, 0).symbol(1, function, 16, STT_FUNC, STB_GLOBAL, 1);
  b.sections = {{".text", SHT_NOBITS, {}, 0x1000, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 16, 0x1000000},
                {".symtab", SHT_SYMTAB, symbols.bytes(), 0, 0, 3, sizeof(Elf64_Sym)},
                {".strtab", SHT_STRTAB, b.bytes().u8(0).text("f").u8(0).bytes()},
                {".note", SHT_NOTE, b.bytes().note("GNU", NT_GNU_BUILD_ID, build_id).bytes()}};
  b.segments = {{}, {}};
  const std::size_t note = b.offset_of(3);
  b.segments = {{PT_LOAD, PF_R, 0, 0, note + 64, note + 64, 4096}, {PT_NOTE, PF_R, note, note, 64, 64, 4}};
  if (build_id.empty()) b.sections.pop_back(), b.segments.pop_back();
  return b.build();
}

void write(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

ModuleFilesLease lookup(const std::string& path, const Bytes& in_memory) {
  const auto loaded = ElfImage::parse_loaded(in_memory, in_memory.size());
  return find_module_files(path.c_str(), &*loaded);
}

bool names(const ModuleFilesLease& lease, Addr function) {
  return lease.files && lease.files->find_symbol(function + 1).has_value();
}

TEST(ModuleCache, KeepsFilesByBuildId) {
  const TemporaryFolder folder;
  const Bytes one = object("identity one", 0x1000), two = object("identity two", 0x2000);
  write(folder / "one", one);
  const ModuleFilesLease first = lookup(folder / "one", one);
  ASSERT_TRUE(names(first, 0x1000));
  EXPECT_FALSE(first.own);
  EXPECT_EQ(lookup(folder / "one", one).files, first.files);
  // Known once, known wherever it is and when its file is gone.
  std::filesystem::remove(folder / "one");
  EXPECT_EQ(lookup(folder / "one", one).files, first.files);
  EXPECT_EQ(lookup(folder / "elsewhere", one).files, first.files);
  // Another object under the same path is another.
  write(folder / "one", two);
  EXPECT_TRUE(names(lookup(folder / "one", two), 0x2000));
  EXPECT_FALSE(names(lookup(folder / "one", two), 0x1000));
  EXPECT_EQ(lookup(folder / "one", one).files, first.files);
}

TEST(ModuleCache, RefusesFilesThatAreNotLoaded) {
  const TemporaryFolder folder;
  write(folder / "file", object("on disk", 0x1000));
  EXPECT_FALSE(lookup(folder / "file", object("in memory", 0x1000)).files);
  write(folder / "plain", object("", 0x1000));
  EXPECT_FALSE(lookup(folder / "plain", object("", 0x2000)).files);
  EXPECT_TRUE(lookup(folder / "plain", object("", 0x1000)).files);
  EXPECT_FALSE(lookup(folder / "none", object("", 0x1000)).files);
}

TEST(ModuleCache, KeepsFilesWithoutBuildIdByTheirIdentity) {
  const TemporaryFolder folder;
  const Bytes one = object("", 0x1000), two = object("", 0x2000);
  const std::string path = folder / "file";
  write(path, one);
  const ModuleFilesLease first = lookup(path, one);
  ASSERT_TRUE(names(first, 0x1000));
  EXPECT_EQ(lookup(path, one).files, first.files);
  // Upgraded: what is loaded still is the old one, which the path does not lead to any more.
  write(folder / "next", two);
  std::filesystem::rename(folder / "next", path);
  EXPECT_FALSE(lookup(path, one).files);
  EXPECT_TRUE(names(lookup(path, two), 0x2000));
}

TEST(ModuleCache, GivesOneAnswerToManyThreads) {
  const TemporaryFolder folder;
  const Bytes bytes = object("asked by many", 0x3000);
  write(folder / "file", bytes);
  std::vector<const ModuleFiles*> answers(8);
  std::vector<std::thread> threads;
  for (const ModuleFiles*& answer : answers)
    threads.emplace_back([&] {
      const ModuleFilesLease lease = lookup(folder / "file", bytes);
      if (names(lease, 0x3000)) answer = lease.files;
    });
  for (std::thread& t : threads) t.join();
  for (const ModuleFiles* answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_NE(answers[0], nullptr);
}

// Last: it fills the table of the process.
TEST(ModuleCacheWhenFull, OpensFilesForOneLookupEach) {
  const TemporaryFolder folder;
  std::size_t kept = 0, opened = 0;
  for (unsigned i = 0; i < 4800; ++i) {
    const Addr function = 0x1000 + 16 * i;
    const Bytes bytes = object("number " + std::to_string(i), function);
    const std::string path = folder / "file";
    write(path + ".new", bytes);
    std::filesystem::rename(path + ".new", path);
    const ModuleFilesLease lease = lookup(path, bytes);
    ASSERT_TRUE(names(lease, function)) << i;
    ++(lease.own ? opened : kept);
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
