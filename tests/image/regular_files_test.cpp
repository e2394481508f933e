// A user who may write to a folder can put a FIFO, or a link to a device, where a file is looked for. Such files are
// never opened: inotify(7) reports every open.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "tests/support/command.h"
#include "tests/support/elf_builder.h"

namespace jitunwind::test {
namespace {

/// A FIFO that notices whether a process opens it.
class WatchedFifo {
 public:
  explicit WatchedFifo(const std::string& path) : watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_GE(::inotify_add_watch(watch_, path.c_str(), IN_OPEN), 0);
  }
  ~WatchedFifo() { ::close(watch_); }
  WatchedFifo(const WatchedFifo&) = delete;
  WatchedFifo& operator=(const WatchedFifo&) = delete;

  bool was_opened() const {
    pollfd event{watch_, POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
  }

 private:
  int watch_;
};

/// Makes a program whose debug file is "p.debug", by its name and, if `has_id` is set, by its build id ab cd.
std::string stripped_program(const TemporaryFolder& folder, bool has_id = true) {
  ElfBuilder elf(sizeof(void*) == 8, false);
  elf.sections = {{".gnu_debuglink", SHT_PROGBITS, elf.bytes().text("p.debug").align(4).u32(0x1234).vector()}};
  if (has_id) {
    elf.sections.push_back({".note.gnu.build-id", SHT_NOTE, elf.note("GNU", NT_GNU_BUILD_ID, "\xab\xcd").vector()});
    elf.segments = {{.type = PT_NOTE, .section = 1}};
  }
  const RawBytes bytes = elf.build();
  const std::string path = folder / "p";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

TEST(RegularFiles, AreAllThatIsOpened) {
  const TemporaryFolder folder;
  const std::string program = stripped_program(folder), fifo = folder / "p.debug", debug_root = folder / "debug";
  const WatchedFifo watched(fifo);
  (void)output_of("cd " + folder.path() + " && mkdir -p .debug debug/.build-id/ab debug" + folder.path() +
                  " && ln -s ../p.debug .debug && ln -s " + fifo + " debug/.build-id/ab/cd.debug && ln -s " + fifo +
                  " debug" + folder.path());
  const auto files = ModuleFiles::open(program.c_str(), nullptr, debug_root.c_str());
  ASSERT_TRUE(files);
  EXPECT_FALSE((*files)->has_debug_file());
  EXPECT_FALSE(watched.was_opened()) << "as a debug file";

  EXPECT_FALSE(ModuleFiles::open(fifo.c_str(), nullptr));
  EXPECT_FALSE(watched.was_opened()) << "as a file of a module";

  const auto core = Target::open_core(fifo);
  ASSERT_FALSE(core);
  EXPECT_NE(core.error().what.find("no file with contents"), std::string::npos) << core.error().what;
  EXPECT_FALSE(watched.was_opened()) << "as a core";

  GrowingFile growing(fifo);
  EXPECT_EQ(growing.read(
                100, std::nullopt, [](std::span<const std::byte>) {}, [] {}),
            0u);
  EXPECT_FALSE(watched.was_opened()) << "as a file that JITs write";

  ::close(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_TRUE(watched.was_opened());
}

/// The ELF file is followed by a hole of a TiB: reading it for the link's checksum would take a quarter of an hour.
TEST(RegularFiles, AreNotReadForEver) {
  const TemporaryFolder folder;
  const std::string program = stripped_program(folder, false), debug = folder / "p.debug";
  std::filesystem::copy_file(program, debug);
  std::filesystem::resize_file(debug, std::uintmax_t{1} << 40);
  ::alarm(60);
  const auto files = ModuleFiles::open(program.c_str(), nullptr);
  ::alarm(0);
  ASSERT_TRUE(files);
  EXPECT_FALSE((*files)->has_debug_file());
}

/// A process may have no /proc, as behind chroot(2). A file has its name alone then.
TEST(RegularFiles, AreOpenedWithoutProc) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::chroot(folder.path().c_str()) != 0) ::_exit(2);
    const std::string path = ::geteuid() == 0 ? "/file" : folder / "file";
    ::_exit(ReadableFile::regular(path.c_str()).is_open() && !ReadableFile::regular("/").is_open() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace jitunwind::test
