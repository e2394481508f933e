// Jitdumps of this process, as they grow: names, lines, and call frame information of code.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <list>
#include <string>
#include <utility>

#include "jitunwind/adapters/listen/followers_p.h"
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/dump_writer.h"
#include "tests/listen/told_section.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

/// A dump whose first page is mapped as code, so that the library finds it.
class Dumps : public testing::Test {
 protected:
  Dumps() {
    append(dump_header());
    const int file = ::open(path_.c_str(), O_RDONLY);
    page_ = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    ::close(file);
  }
  ~Dumps() override {
    say_gone(Dialect::itt, {k_code, k_code + 0x10000});
    EXPECT_EQ(registry_statistics().registered, 0u);
    ::munmap(page_, 4096);
  }
  void append(const Bytes& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::app)
        .write(reinterpret_cast<const char*>(bytes.vector().data()), static_cast<std::streamsize>(bytes.size()));
  }
  void hear(const Bytes& bytes) {
    append(bytes);
    follower_.look();
  }
  static std::string line_at(Addr at) {
    const auto line = heard_line(at);
    return line ? line->file + ":" + std::to_string(line->line) : "none";
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "jit-1.dump";
  void* page_ = nullptr;
  DumpFollower follower_;
  const RegisteredCode code_;
};

Bytes code_of(std::size_t size) { return Bytes().fill(size, 0x90); }

TEST_F(Dumps, NameCodeWhileTheyGrow) {
  hear(dump_line(k_code, 7, "a.js").add(dump_loaded("dumped", k_code, code_of(4))));
  EXPECT_EQ(code_.name_at(k_code + 3), "dumped");
  EXPECT_EQ(line_at(k_code + 3), "a.js:7");
  EXPECT_EQ(code_.row_at(k_code + 4), "no row");
  hear(dump_moved(k_code, k_code + 0x100, 4));
  EXPECT_EQ(code_.name_at(k_code + 3), "");
  EXPECT_EQ(code_.name_at(k_code + 0x103), "dumped");
  EXPECT_EQ(line_at(k_code + 3), "none");
  EXPECT_EQ(line_at(k_code + 0x103), "a.js:7");
}

// covers: LS04
TEST_F(Dumps, DescribeCodeWhereverItIs) {
  constexpr Addr k_unit = ToldFrameCode::k_code_alignment, k_size = 13 * k_unit, k_elsewhere = k_code + 0x103 * k_unit;
  hear(dump_line(k_code, 7, "a.js").add(dump_frames(k_code, k_size)).add(dump_loaded("f", k_code, code_of(k_size))));
  EXPECT_EQ(code_.name_at(k_code + 4), "f");
  EXPECT_EQ(code_.row_at(k_code), std::string("dyn_table: ") + ToldFrameCode::k_entry_row);
  EXPECT_EQ(code_.row_at(k_code + k_size - 1), k_row);
  EXPECT_EQ(code_.row_at(k_code + k_size), "no row");
  hear(dump_moved(k_code, k_elsewhere, k_size));
  EXPECT_EQ(code_.row_at(k_code + 4), "no row");
  EXPECT_EQ(code_.name_at(k_elsewhere), "f");
  EXPECT_EQ(code_.row_at(k_elsewhere + 4), k_row);
  EXPECT_EQ(line_at(k_elsewhere), "a.js:7");
  EXPECT_EQ(registry_statistics().registered, 1u);
}

#ifdef JITUNWIND_TEST_PID_NAMESPACE
/// A process that is number 1 in its own namespace of processes has another number in that of /proc.
TEST_F(Dumps, AreFoundInAnotherNamespaceOfProcesses) {
  enum Result { named, not_named, no_namespace };
  const auto in_child = [](auto function) -> int {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(function());
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  const int result = in_child([&] {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return int{no_namespace};
    return in_child([&] {
      if (::getpid() != 1) return no_namespace;
      hear(dump_loaded("dumped", k_code, code_of(4)));
      return code_.name_at(k_code + 3) == "dumped" ? named : not_named;
    });
  });
  EXPECT_EQ(result, named);
}
#endif

TEST_F(Dumps, DescribeCodeUntilItIsOther) {
  hear(dump_frames(k_code, 16).add(dump_loaded("old", k_code, code_of(16))));
  EXPECT_EQ(code_.row_at(k_code + 4), k_row);
  hear(dump_loaded("new", k_code + 8, code_of(16)));
  EXPECT_EQ(code_.row_at(k_code + 4), "no row");
  EXPECT_EQ(code_.name_at(k_code + 4), "");
  EXPECT_EQ(code_.name_at(k_code + 8), "new");
}

/// The frames that follow the code stay those of the dump.
TEST_F(Dumps, KeepTheirFramesWhenAnotherVoiceNamesTheCode) {
  hear(dump_frames(k_code, 16).add(dump_loaded("f", k_code, code_of(16))));
  say_name(Dialect::itt, {k_code, k_code + 16}, "renamed");
  EXPECT_EQ(code_.name_at(k_code + 4), "renamed");
  EXPECT_EQ(code_.row_at(k_code + 4), k_row);
  hear(dump_loaded("g", k_code, code_of(16)));
  EXPECT_EQ(code_.name_at(k_code + 4), "g");
  EXPECT_EQ(code_.row_at(k_code + 4), "no row");
}

TEST_F(Dumps, AreNotBelievedOfOtherCodeThanTheirOwn) {
  hear(dump_frames(k_code + 0x100, 64).add(dump_loaded("g", k_code + 0x100, code_of(16))));  // of more than there is
  EXPECT_EQ(code_.name_at(k_code + 0x104), "g");
  EXPECT_EQ(code_.row_at(k_code + 0x104), "no row");
  hear(dump_record(4, Bytes().u64(30).u64(20).u64(30).fill(30, 0xff))
           .add(dump_loaded("h", k_code + 0x200, code_of(16))));
  EXPECT_EQ(code_.name_at(k_code + 0x204), "h");
}

TEST_F(Dumps, AreNotReadWhereTheyAreFilesOfOthers) {
  append(dump_loaded("dumped", k_code, code_of(16)));
  follower_.look(::geteuid() + 1);
  EXPECT_EQ(code_.name_at(k_code + 4), "");
  follower_.look();
  EXPECT_EQ(code_.name_at(k_code + 4), "dumped");
}

TEST_F(Dumps, AreReadAnewWhereTheyAreWrittenAnew) {
  hear(dump_loaded("first", k_code, code_of(16)).fill(100, 0x90));  // the begin of a record that never comes
  EXPECT_EQ(code_.name_at(k_code + 4), "first");
  std::ofstream(path_, std::ios::binary | std::ios::trunc).close();
  hear(dump_header().add(dump_loaded("anew", k_code, code_of(16))));
  EXPECT_EQ(code_.name_at(k_code + 4), "anew");
}

/// Maps a page of the dump as code, as engines do so that others find it.
class MappedDump {
 public:
  MappedDump(std::string path, const Bytes& dump) : path_(std::move(path)) {
    write(dump);
    const int file = ::open(path_.c_str(), O_RDONLY);
    page_ = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    ::close(file);
  }
  ~MappedDump() { ::munmap(page_, 4096); }
  MappedDump(const MappedDump&) = delete;
  MappedDump& operator=(const MappedDump&) = delete;
  void write(const Bytes& dump) const {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(dump.vector().data()), static_cast<std::streamsize>(dump.size()));
  }

 private:
  std::string path_;
  void* page_ = nullptr;
};

/// A program may map any number of dumps.
TEST(DumpFiles, AreFollowedUpToALimit) {
  constexpr std::size_t k_most = 16;
  const TemporaryFolder folder;
  std::list<MappedDump> dumps;
  for (std::size_t i = 0; i < k_most + 3; ++i)
    dumps.emplace_back(folder / ("jit-" + std::to_string(i) + ".dump"),
                       dump_header().add(dump_loaded("dumped", k_code + 0x100 * i, code_of(16))));
  DumpFollower().look();
  EXPECT_EQ(listen_status().names, k_most);
  say_gone(Dialect::itt, {k_code, k_code + 0x10000});
}

/// Another file has the dump's name by now.
TEST(DumpFiles, AreNotReadWhereTheyWereDeleted) {
  const TemporaryFolder folder;
  const std::string path = folder / "jit-3.dump";
  const MappedDump dump(path, dump_header());
  ASSERT_EQ(::unlink(path.c_str()), 0);
  dump.write(dump_header().add(dump_loaded("other", k_code, code_of(16))));
  DumpFollower().look();
  EXPECT_EQ(RegisteredCode().name_at(k_code + 2), "");
  EXPECT_EQ(registry_statistics().registered, 0u);
}

/// A page that is mapped as code marks a file as a dump. Files that are mapped only for reading are ignored.
TEST(DumpFiles, AreFoundWhereTheyAreMappedAsCode) {
  const TemporaryFolder folder;
  const std::string path = folder / "jit-2.dump";
  const Bytes dump = dump_header().add(dump_loaded("dumped", k_code, code_of(16)));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(dump.vector().data()), static_cast<std::streamsize>(dump.size()));
  const RegisteredCode code;
  for (const int protection : {PROT_READ, PROT_READ | PROT_EXEC}) {
    const int file = ::open(path.c_str(), O_RDONLY);
    void* const page = ::mmap(nullptr, 4096, protection, MAP_PRIVATE, file, 0);
    ::close(file);
    DumpFollower().look();
    EXPECT_EQ(code.name_at(k_code + 4), (protection & PROT_EXEC) != 0 ? "dumped" : "");
    ::munmap(page, 4096);
  }
  say_gone(Dialect::itt, {k_code, k_code + 0x10000});
}

// covers: LS10
TEST_F(Dumps, AreForgottenWhereTheCodeIsUnmapped) {
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Addr begin = reinterpret_cast<std::uintptr_t>(code);
  hear(dump_frames(begin, 16).add(dump_loaded("gone", begin, code_of(16))));
  EXPECT_EQ(code_.row_at(begin + 4), k_row);
  ::munmap(code, 4096);
  follower_.look();
  EXPECT_EQ(code_.row_at(begin + 4), "no row");
  EXPECT_EQ(code_.name_at(begin + 4), "");
}

}  // namespace
}  // namespace jitunwind::test
