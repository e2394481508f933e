// Finds the files of a live process: below its own root folder, in its own mount namespace, at places that only the
// process knows, deleted, and replaced. The judges are names that only the files' tables have.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/command.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

using Names = std::vector<std::string>;

Names names_in(pid_t process) {
  Names names;
  const auto target = Target::attach(process);
  EXPECT_TRUE(target) << target.error().text();
  if (!target || target->threads().empty()) return names;
  const SeenStack stack = seen(target->walk(target->threads().front()));
  EXPECT_EQ(stack.why, "complete");
  for (const SeenFrame& frame : stack.frames) names.push_back(frame.name);
  return names;
}

bool has(const Names& names, const char* name) { return std::ranges::find(names, name) != names.end(); }

/// Returns whether the kernel opens mapped files of a process: proc_pid_map_files(5), which needs privileges.
bool may_open_mappings() {
  std::error_code failed;
  for (const auto& mapped : std::filesystem::directory_iterator("/proc/self/map_files", failed))
    if (const int file = ::open(mapped.path().c_str(), O_RDONLY | O_CLOEXEC); file >= 0) return ::close(file) == 0;
  return false;
}

/// "program" and "plugin.so" in a folder, with all libraries that they need at the paths where they look for them.
class Files {
 public:
  Files() {
    (void)output_of("cd '" + root() +
                    "' && cp '" TARGET_PROGRAM "' program && cp '" TARGET_PLUGIN
                    "' plugin.so && mkdir -p proc && ldd program plugin.so | grep -o '/[^ ]*' | grep -v : | sort -u | "
                    "xargs cp -L --parents -t . && chmod -R a+rX .");
  }
  std::string root() const { return folder_ / ""; }

 private:
  TemporaryFolder folder_;
};

/// Runs a script in the same mount namespace or in one of its own; without root's rights, as root of a user namespace.
/// $1 is the folder with the files.
enum class Mounts { same, own };
#ifdef HAS_MOUNT_NAMESPACES
constexpr Mounts k_own_mounts = Mounts::own;
#else
constexpr Mounts k_own_mounts = Mounts::same;
#endif
TargetProgram run_in(Mounts mounts, const std::string& script, const Files& files) {
  std::vector<std::string> arguments = {"unshare"};
  if (::geteuid() != 0) arguments.insert(arguments.end(), {"--user", "--map-root-user"});
  if (mounts == Mounts::own) arguments.push_back("--mount");
  arguments.insert(arguments.end(), {"sh", "-c", script, "sh", files.root()});
  return TargetProgram("/usr/bin/env", arguments);
}

struct Place {
  const char* name;
  Mounts mounts;
  const char* script;
  /// The libraries have no other path: only the kernel's links to mapped files lead to them.
  bool are_libraries_hidden = false;
};
std::ostream& operator<<(std::ostream& out, const Place& place) { return out << place.name; }

constexpr Place k_places[] = {
    {"RootOfItsOwn", Mounts::same, "exec chroot $1 /program 0 /plugin.so"},
    {"RootAndMountsOfItsOwn", Mounts::own, "exec chroot $1 /program 0 /plugin.so"},
    {"RootOnAFileSystemOfItsOwn", Mounts::own,
     "mount -t tmpfs none /mnt && cp -r $1/. /mnt && exec chroot /mnt /program 0 /plugin.so"},
    {"BoundFolder", Mounts::own, "mount --bind $1 /mnt && exec /mnt/program 0 /mnt/plugin.so"},
    {"RootThatIsBound", Mounts::own, "mount --bind $1 /mnt && exec chroot /mnt /program 0 /plugin.so"},
    {"OtherRootMount", Mounts::own,
     "mount --bind $1 $1 && cd $1 && mkdir old && pivot_root . old && exec /program 0 /plugin.so"},
    {"RootChangedByItself", Mounts::same, "TARGET_ROOT=$1/proc exec $1/program 0 $1/plugin.so"},
    {"RootChangedByItselfWithMountsOfItsOwn", Mounts::own, "TARGET_ROOT=$1/proc exec $1/program 0 $1/plugin.so"},
    {"RootChangedByItselfAwayFromAFileSystemOfItsOwn", Mounts::own,
     "mount -t tmpfs none /mnt && cp -r $1/. /mnt && TARGET_ROOT=/mnt/proc exec /mnt/program 0 /mnt/plugin.so", true},
    {"UnmountedUnderIt", Mounts::own,
     "mount -t tmpfs none /mnt && cp -r $1/. /mnt && { (until grep -q plugin.so /proc/$$/maps; do sleep 0.01; done; "
     "umount -l /mnt && mkdir $1/done) & } && exec /mnt/program 0 /mnt/plugin.so",
     true},
#ifdef HAS_OVERLAY
    {"OverlayFileSystem", Mounts::own,
     "mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work /mnt/all && "
     "mount -t overlay -o lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work none /mnt/all && "
     "exec chroot /mnt/all /program 0 /plugin.so"},
#endif
};

class EveryPlace : public testing::TestWithParam<Place> {};

// covers: HL07
TEST_P(EveryPlace, ItsFilesAreFound) {
  const Files files;
  const TargetProgram program = run_in(GetParam().mounts, GetParam().script, files);
  ASSERT_EQ(program.stacks().size(), 1u) << "it has not come to its stand";
  if (std::string(GetParam().script).find("done") != std::string::npos)
    while (::access((files.root() + "done").c_str(), F_OK) != 0) ::usleep(1000);
  const Names names = names_in(program.process());
  EXPECT_TRUE(has(names, "main")) << testing::PrintToString(names);
  EXPECT_EQ(has(names, "plugin_inner"), !GetParam().are_libraries_hidden || may_open_mappings())
      << testing::PrintToString(names);
  EXPECT_TRUE(has(names, "plugin_call")) << testing::PrintToString(names);
}

/// The places that this machine supports.
std::vector<Place> places() {
  std::vector<Place> all(std::begin(k_places), std::end(k_places));
  if (k_own_mounts == Mounts::same) std::erase_if(all, [](const Place& place) { return place.mounts == Mounts::own; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Places, EveryPlace, testing::ValuesIn(places()),
                         [](const auto& info) { return std::string(info.param.name); });

/// An absolute link leads to the debug file of the program.
TEST(FilesOfProcess, AreFoundWhereLinksOfItsOwnRootLead) {
  const Files files;
  (void)output_of("cd '" + files.root() +
                  "' && mkdir -p usr/lib symbols && ln -s /symbols usr/lib/debug && objcopy --only-keep-debug program "
                  "symbols/program.debug && objcopy --strip-all --add-gnu-debuglink=symbols/program.debug program");
  const TargetProgram program = run_in(k_own_mounts, "exec chroot $1 /program 0 /plugin.so", files);
  ASSERT_EQ(program.stacks().size(), 1u) << "it has not come to its stand";
  const Names names = names_in(program.process());
  EXPECT_TRUE(has(names, "main")) << testing::PrintToString(names);
}

/// Another file has the deleted file's name now.
void expect_names_of_deleted_files(const Files& files, const TargetProgram& program) {
  ASSERT_EQ(program.stacks().size(), 1u);
  for (const char* const command : {"rm program plugin.so", "cp /bin/true program && cp /bin/true plugin.so"}) {
    (void)output_of("cd '" + files.root() + "' && " + command);
    const Names names = names_in(program.process());
    EXPECT_TRUE(has(names, "main")) << testing::PrintToString(names);
    EXPECT_EQ(has(names, "plugin_inner"), may_open_mappings()) << testing::PrintToString(names);
    EXPECT_TRUE(has(names, "plugin_call")) << testing::PrintToString(names);
  }
}

// covers: HL07
TEST(FilesOfProcess, AreFoundThatAreDeleted) {
  const Files files;
  const TargetProgram program(files.root() + "program", {"0", files.root() + "plugin.so"});
  expect_names_of_deleted_files(files, program);
}

TEST(FilesOfProcess, AreFoundThatAreDeletedBelowARootOfItsOwn) {
  const Files files;
  const TargetProgram program = run_in(k_own_mounts, "exec chroot $1 /program 0 /plugin.so", files);
  expect_names_of_deleted_files(files, program);
}

/// Anybody who may trace the process may open the program's file, but not the files of libraries.
TEST(FilesOfProcess, OfADeletedProgramAreFoundByWhoMayNothingElse) {
  const Files files;
  int stands[2], is_deleted[2];
  ASSERT_TRUE(::pipe(stands) == 0 && ::pipe(is_deleted) == 0);
  char byte = 0;
  const pid_t reader = ::fork();
  if (reader == 0) {
    constexpr uid_t k_nobody = 65534;
    if (::geteuid() == 0 &&
        (::setresgid(k_nobody, k_nobody, k_nobody) != 0 || ::setresuid(k_nobody, k_nobody, k_nobody) != 0))
      ::_exit(2);
    const TargetProgram program(files.root() + "program", {"0", files.root() + "plugin.so"}, "/");
    if (::write(stands[1], "s", 1) != 1 || ::read(is_deleted[0], &byte, 1) != 1) ::_exit(3);
    const Names names = names_in(program.process());
    ::_exit(has(names, "main") && has(names, "plugin_call") && !has(names, "plugin_inner") ? 0 : 1);
  }
  ::close(stands[1]);
  EXPECT_EQ(::read(stands[0], &byte, 1), 1);
  (void)output_of("cd '" + files.root() + "' && rm program plugin.so");
  EXPECT_EQ(::write(is_deleted[1], "d", 1), 1);
  int status = 0;
  ::waitpid(reader, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ::close(stands[0]), ::close(is_deleted[0]), ::close(is_deleted[1]);
}

}  // namespace
}  // namespace jitunwind::test
