// Symbolic links below a root lead to files below it, as for a process behind chroot(2). The judge is the kernel, which
// has openat2(2) for this.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "jitunwind/unwind_core/uncancelled_internal.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

/// The inode of the file and its folder's device, or the reason why there is none.
std::string which(int number) {
  struct stat status;
  if (number < 0) return std::strerror(errno);
  EXPECT_EQ(::fstat(number, &status), 0);
  ::close(number);
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}
std::string found_below(const std::string& root, const std::string& path, int flags = 0) {
  return which(find_below_root({path.c_str(), root.c_str()}, flags));
}
std::string kernel_finds_below(const std::string& root, const std::string& path, int flags = 0) {
  const ReadableFile folder(root.c_str(), O_PATH | O_DIRECTORY);
  open_how how{};
  how.flags = static_cast<std::uint64_t>(O_PATH | O_CLOEXEC | flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  long number;
  do  // it gives up when anybody renames anything meanwhile
    number = ::syscall(SYS_openat2, folder.number(), path.c_str(), &how, sizeof how);
  while (number < 0 && errno == EAGAIN);
  return which(static_cast<int>(number));
}

/// A folder with a root, and with a file outside of it.
class Tree {
 public:
  Tree() {
    std::filesystem::create_directories(root() + "/etc");
    std::filesystem::create_directories(root() + "/usr/lib");
    std::ofstream(root() + "/file").put('i');
    std::ofstream(outside()).put('o');
  }
  std::string root() const { return folder_ / "root"; }
  std::string outside() const { return folder_ / "file"; }
  void link(const std::string& target, const std::string& name) const {
    std::filesystem::create_symlink(target, root() + "/" + name);
  }

 private:
  TemporaryFolder folder_;
};

TEST(FilesBelowARoot, AreNeverOutside) {
  const Tree tree;
  const std::string file = found_below(tree.root(), "/file");
  tree.link("/file", "etc/absolute");
  tree.link("../../../file", "etc/relative");
  tree.link("/etc", "tmp");
  tree.link(tree.outside(), "outside");
  tree.link("around", "around");
  for (const char* const path : {"file", "//file", "etc/absolute", "etc/relative", "tmp/absolute", "tmp/./relative",
                                 "tmp/../../../file", "usr/./lib/../../file"})
    EXPECT_EQ(found_below(tree.root(), path), file) << path;
  EXPECT_EQ(found_below(tree.root(), "/outside"), std::strerror(ENOENT));
  EXPECT_EQ(found_below(tree.root(), tree.outside()), std::strerror(ENOENT));
  EXPECT_EQ(found_below(tree.root(), "/around"), std::strerror(ELOOP));
  EXPECT_EQ(found_below(tree.root(), "/file/file"), std::strerror(ENOTDIR));
  EXPECT_EQ(found_below(tree.root() + "/none", "/file"), std::strerror(ENOENT));
  EXPECT_FALSE(ReadableFile::regular({"/etc/absolute", tree.root().c_str()}, O_NOFOLLOW).is_open());
  EXPECT_TRUE(ReadableFile::regular({"/tmp/absolute", tree.root().c_str()}).is_open());
}

TEST(FilesBelowARoot, AreThoseThatTheKernelFinds) {
  std::mt19937 random(20);
  const auto any = [&](auto... words) {
    const char* const all[] = {words...};
    return std::string(all[random() % sizeof...(words)]);
  };
  const auto path = [&] {
    std::string text = any("", "/");
    for (std::size_t names = 1 + random() % 5; names != 0; --names)
      text += any("a", "b", "c", "usr", "lib", "file", "..", ".", "") + any("/", "/", "/", "//");
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
  };
  std::size_t found = 0;
  for (int trees = 0; trees < 40; ++trees) {
    const Tree tree;
    for (const char* const folder : {"", "usr/", "usr/lib/", "etc/"})
      for (const char* const name : {"a", "b", "c"}) tree.link(path(), folder + std::string(name));
    for (int tried = 0; tried < 200; ++tried) {
      const std::string wanted = path();
      const int flags = tried % 2 == 0 ? 0 : O_NOFOLLOW;
      const std::string kernels = kernel_finds_below(tree.root(), wanted, flags);
      ASSERT_EQ(found_below(tree.root(), wanted, flags), kernels)
          << wanted << "\n"
          << output_of("find " + tree.root() + " -printf '%P %i %l\\n'");
      found += kernels.find(':') != kernels.npos;
    }
  }
  EXPECT_GT(found, 2000u);
}

/// ".." of a folder that was moved out of the root leads to where it is now.
TEST(FilesBelowARoot, AreNotOutsideIfFoldersMove) {
  const Tree tree;
  const std::string inside = tree.root() + "/usr/lib", moved = tree.root() + "/../lib";
  const std::string file = found_below(tree.root(), "/file");
  std::atomic<bool> ends{false};
  std::thread mover([&] {
    while (!ends) (void)::rename(inside.c_str(), moved.c_str()), (void)::rename(moved.c_str(), inside.c_str());
  });
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string seen = found_below(tree.root(), "/usr/lib/../../file");
    if (seen == std::strerror(ENOENT)) continue;
    ++found;
    EXPECT_EQ(seen, file);
  }
  ends = true;
  mover.join();
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace jitunwind::test
