// Files that a target's JITs write for perf, when they are written to harm their reader.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "jitunwind/sdk/targets/jit_names_p.h"
#include "tests/listen/dump_writer.h"
#include "tests/support/command.h"
#include "tests/support/fake_space.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_named = 0x5'0000'0000;
constexpr std::size_t k_named_size = 64;

void write_dump(const std::string& path, const Bytes& records) {
  const Bytes all = Bytes().add(dump_header()).add(records);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(all.vector().data()), static_cast<std::streamsize>(all.size()));
}
/// One page of the dump is mapped.
Mappings mappings_of_dump(const std::string& path) {
  return Mappings({{.range = {0x1000, 0x2000}, .path = path, .inode = 1, .readable = true, .executable = true}});
}

/// A dump; the target has mapped one page of it.
class WrittenNames {
 public:
  explicit WrittenNames(const Bytes& records) { write_dump(path_, records); }
  /// Returns "FILE:LINE" of the code there, and how much memory is held once that is known.
  std::string line_at(Addr at) const {
    const auto line = names_.find_line(at);
    return line ? line->file + ":" + std::to_string(line->line) : "none";
  }
  AddrRange procedure_at(Addr at) const {
    const FakeSpace space(*host_arch());
    MemoryWindow window;
    Lookup lookup(space.space, CodeAddress::interrupted(at), window);
    ProcedureInfo procedure;
    const Found found = names_.find_procedure(lookup, procedure);
    return found && *found ? procedure.range : AddrRange{};
  }
  std::vector<AddrRange> described_code() const {
    std::vector<AddrRange> code;
    names_.append_described_code(code);
    return code;
  }

 private:
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "jit-1.dump";
  const Mappings mappings_ = mappings_of_dump(path_);
  const TargetFiles files_;
  const JitNames names_{*host_arch(), mappings_, files_};
};

std::size_t bytes_held() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

/// If each lookup read all entries, all of them would take minutes.
TEST(JitNames, FindOneOfManyFramesAtOnce) {
  constexpr std::size_t k_entries = 100'000, k_each = 16;
  CfiSection section(k_named + k_entries * k_each);
  const Addr cie = section.cie(host_cie("zR", Bytes{0x1b}));
  const auto code_of = [](std::size_t entry) {
    return AddrRange{k_named + entry * k_each, k_named + (entry + 1) * k_each};
  };
  for (std::size_t i = 0; i < k_entries; ++i)
    section.fde(cie, section.bytes().u32(code_of(i).begin - (section.here() + 8)).u32(k_each).u8(0));
  const std::size_t size = section.data().size();
  const WrittenNames names(Bytes()
                               .add(dump_record(4, Bytes().u64(size).u64(0).u64(size).add(section.data())))
                               .add(dump_loaded("many", k_named, Bytes().fill(k_entries * k_each, 0x90))));
  ::alarm(60);
  for (std::size_t i = 0; i < k_entries; ++i) ASSERT_EQ(names.procedure_at(code_of(i).end - 1), code_of(i));
  ::alarm(0);
  EXPECT_EQ(names.described_code(), (std::vector{AddrRange{k_named, k_named + k_entries * k_each}}));
}

TEST(JitNames, AreOfDescribedCodeIfADumpHasFramesOfItWhereItIs) {
  const Bytes names_alone = Bytes().add(dump_loaded("a", k_named, Bytes().fill(k_named_size, 0x90)));
  EXPECT_TRUE(WrittenNames(names_alone).described_code().empty());
  const Bytes with_frames = Bytes().add(dump_record(4, Bytes().u64(8).u64(0).u64(8).u64(0))).add(names_alone);
  const Bytes again = Bytes().add(with_frames).add(with_frames);
  EXPECT_EQ(WrittenNames(again).described_code(), (std::vector{AddrRange{k_named, k_named + k_named_size}}));
}

/// Each move takes 72 bytes of the file; the names and lines are kept once.
TEST(JitNames, AreKeptOnceHoweverOftenTheirCodeIsMoved) {
  constexpr std::size_t k_frames = std::size_t{1} << 20, k_moves = 1000;
  Bytes records;
  records.add(dump_line(k_named, 7, "a.js"));
  records.add(dump_record(4, Bytes().u64(k_frames).u64(0).u64(k_frames).fill(k_frames, 0)));
  records.add(dump_loaded(std::string(4000, 'x'), k_named, Bytes().fill(k_named_size, 0x90)));
  for (std::size_t i = 0; i < k_moves; ++i)
    records.add(dump_moved(k_named + i * k_named_size, k_named + (i + 1) * k_named_size, k_named_size));
  const WrittenNames names(records);
  const std::size_t before = bytes_held();
  EXPECT_EQ(names.line_at(k_named + k_moves * k_named_size), "a.js:7");
  EXPECT_LT(bytes_held() - before, 8 * k_frames);
}

/// Writes a map that gives the code that name.
void write_map(const std::string& folder, const std::string& name) {
  std::ofstream(folder + "/perf-1.map") << std::hex << k_named << " 40 " << name << "\n";
}
/// Returns the name of the code, "" if it has none.
std::string name_by(const JitNames& names) {
  const FakeSpace space(*host_arch());
  MemoryWindow window;
  Lookup lookup(space.space, CodeAddress::interrupted(k_named), window);
  std::array<char, 16> into{};
  ProcedureName name;
  const Found found = names.find_name(lookup, into, name);
  return found && *found ? into.data() : "";
}

/// A user can put a map into /tmp before another user's process gets its number.
TEST(JitNames, AreReadOfFilesOfTheProcessesUser) {
  const TemporaryFolder folder;
  write_map(folder.path(), "named");
  const Mappings mappings;
  const TargetFiles files;
  for (const bool is_own : {true, false}) {
    JitNames names(*host_arch(), mappings, files);
    names.set_process(folder / "perf-1.map", ::geteuid() + (is_own ? 0 : 1));
    EXPECT_EQ(name_by(names), is_own ? "named" : "");
  }
}

/// The process has mapped the dump, and yet may not have written it.
TEST(JitNames, AreReadOfDumpsOfTheProcessesUser) {
  const TemporaryFolder folder;
  write_dump(folder / "jit-1.dump", Bytes().add(dump_loaded("named", k_named, Bytes().fill(k_named_size, 0x90))));
  const Mappings mappings = mappings_of_dump(folder / "jit-1.dump");
  const TargetFiles files;
  for (const bool is_own : {true, false}) {
    JitNames names(*host_arch(), mappings, files);
    names.set_process(folder / "perf-1.map", ::geteuid() + (is_own ? 0 : 1));
    EXPECT_EQ(name_by(names), is_own ? "named" : "");
  }
}

/// The process has another root, in which a folder is a link. This machine has files there, too.
class LinkedRoot {
 public:
  LinkedRoot() {
    std::filesystem::create_directories(inside());
    std::filesystem::create_symlink(outside(), root_ / "jits");
  }
  std::string root() const { return root_.path(); }
  std::string inside() const { return root_.path() + outside(); }
  std::string outside() const { return elsewhere_.path(); }

 private:
  TemporaryFolder root_, elsewhere_;
};

TEST(JitNames, AreReadWhereLinksOfTheProcessLead) {
  const LinkedRoot root;
  write_map(root.inside(), "inside");
  write_map(root.outside(), "outside");
  const Mappings mappings;
  const TargetFiles files(root.root());
  JitNames names(*host_arch(), mappings, files);
  names.set_process("/jits/perf-1.map", ::geteuid());
  EXPECT_EQ(name_by(names), "inside");
}

TEST(JitNames, AreReadOfDumpsWhereLinksOfTheProcessLead) {
  const LinkedRoot root;
  const Bytes code = Bytes().fill(k_named_size, 0x90);
  write_dump(root.inside() + "/jit-1.dump", dump_loaded("inside", k_named, code));
  write_dump(root.outside() + "/jit-1.dump", dump_loaded("outside", k_named, code));
  const Mappings mappings = mappings_of_dump("/jits/jit-1.dump");
  const TargetFiles files(root.root());
  EXPECT_EQ(name_by(JitNames(*host_arch(), mappings, files)), "inside");
}

/// The records have 32 bytes and are of code that is never loaded.
TEST(JitNames, WaitForFewLines) {
  constexpr std::size_t k_records = std::size_t{1} << 18;
  Bytes records;
  for (std::size_t i = 0; i < k_records; ++i) records.add(dump_record(2, Bytes().u64(k_named + i).u64(0)));
  const WrittenNames names(records);
  const std::size_t before = bytes_held();
  EXPECT_EQ(names.line_at(k_named), "none");
  EXPECT_LT(bytes_held() - before, k_records * 32);
}

}  // namespace
}  // namespace jitunwind::test
