// Files that a target's JITs write for perf, when they are written to harm their reader.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "jitunwind/sdk/targets/jit_names_p.h"
#include "tests/listen/dump_writer.h"
#include "tests/support/command.h"
#include "tests/support/fake_space.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x5'0000'0000;
constexpr std::size_t k_size = 64;

/// A dump; the target has mapped one page of it.
class WrittenNames {
 public:
  explicit WrittenNames(const Bytes& records) {
    const Bytes all = Bytes().add(dump_header()).add(records);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(all.vector().data()), static_cast<std::streamsize>(all.size()));
  }
  /// Returns "FILE:LINE" of the code there, and how much memory is held once that is known.
  std::string line_at(Addr at) const {
    const auto line = names_.find_line(at);
    return line ? line->file + ":" + std::to_string(line->line) : "none";
  }

 private:
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "jit-1.dump";
  const Mappings mappings_{
      {{.range = {0x1000, 0x2000}, .path = path_, .inode = 1, .readable = true, .executable = true}}};
  const TargetFiles files_;
  const JitNames names_{*host_arch(), mappings_, files_};
};

std::size_t bytes_held() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

/// Each move takes 72 bytes of the file; the names and lines are kept once.
TEST(JitNames, AreKeptOnceHoweverOftenTheirCodeIsMoved) {
  constexpr std::size_t k_frames = std::size_t{1} << 20, k_moves = 1000;
  Bytes records;
  records.add(dump_line(k_code, 7, "a.js"));
  records.add(dump_record(4, Bytes().u64(k_frames).u64(0).u64(k_frames).fill(k_frames, 0)));
  records.add(dump_loaded(std::string(4000, 'x'), k_code, Bytes().fill(k_size, 0x90)));
  for (std::size_t i = 0; i < k_moves; ++i)
    records.add(dump_moved(k_code + i * k_size, k_code + (i + 1) * k_size, k_size));
  const WrittenNames names(records);
  const std::size_t before = bytes_held();
  EXPECT_EQ(names.line_at(k_code + k_moves * k_size), "a.js:7");
  EXPECT_LT(bytes_held() - before, 8 * k_frames);
}

/// A user can put a map into /tmp before another user's process gets its number.
TEST(JitNames, AreReadOfFilesOfTheProcessesUser) {
  const TemporaryFolder folder;
  const std::string map = folder / "perf-1.map";
  std::ofstream(map) << std::hex << k_code << " 40 named\n";
  const Mappings mappings;
  const TargetFiles files;
  const FakeSpace space(*host_arch());
  for (const bool is_own : {true, false}) {
    JitNames names(*host_arch(), mappings, files);
    names.set_process(map, ::geteuid() + (is_own ? 0 : 1));
    MemoryWindow window;
    Lookup lookup(space.space, CodeAddress::interrupted(k_code), window);
    std::array<char, 16> into{};
    ProcedureName name;
    const Found found = names.find_name(lookup, into, name);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, is_own);
  }
}

/// The records have 32 bytes and are of code that is never loaded.
TEST(JitNames, WaitForFewLines) {
  constexpr std::size_t k_records = std::size_t{1} << 18;
  Bytes records;
  for (std::size_t i = 0; i < k_records; ++i) records.add(dump_record(2, Bytes().u64(k_code + i).u64(0)));
  const WrittenNames names(records);
  const std::size_t before = bytes_held();
  EXPECT_EQ(names.line_at(k_code), "none");
  EXPECT_LT(bytes_held() - before, k_records * 32);
}

}  // namespace
}  // namespace jitunwind::test
