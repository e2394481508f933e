// Releases of other unwinders: what they are called, and that programs run with their libraries.
#include "bench/releases.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/bench/unpacked.h"

namespace bench {
namespace {

TEST(Releases, AreCalledAsTheirAuthorsCallThem) {
  EXPECT_EQ(upstream_version("12.2.0-14+deb12u1"), "12");
  EXPECT_EQ(upstream_version("1:19.1.7-3~deb12u1"), "19");
  EXPECT_EQ(upstream_version("1.8.1-0.4"), "1.8.1");
  EXPECT_EQ(upstream_version("0.196-1"), "0.196");
  EXPECT_EQ(upstream_version("2.43-7"), "2.43");
}

TEST(Releases, AreReadFromTheListAndTheirFolders) {
  const Unpacked unpacked(
      "# UNWINDER SUITE PACKAGE...\nlibgcc sid libgcc-s1\nelfutils sid libdw1t64 libc6\n\nLLVM sid any\n");
  unpacked.unpack("libgcc/sid", "libgcc-s1 16.2.0-4\n");
  unpacked.unpack("elfutils/sid", "libdw1t64 0.196-1\nlibc6 2.43-7\n");
  const std::vector<Release> releases = unpacked.releases();
  ASSERT_EQ(releases.size(), 3u);
  EXPECT_EQ(releases[0].title(), "libgcc 16");
  EXPECT_EQ(releases[0].packages, std::vector<std::string>{"libgcc-s1 16.2.0-4"});
  EXPECT_EQ(releases[1].title(), "elfutils 0.196, glibc 2.43") << "programs run with that C library";
  EXPECT_EQ(releases[2].title(), "LLVM of sid");
  EXPECT_FALSE(releases[2].is_unpacked());
}

TEST(Releases, RunProgramsWithTheirLibraries) {
  const Unpacked unpacked("libgcc sid libgcc-s1\nelfutils sid libdw1t64 libc6\n");
  unpacked.unpack("libgcc/sid", "libgcc-s1 16.2.0-4\n");
  unpacked.unpack("elfutils/sid", "libdw1t64 0.196-1\nlibc6 2.43-7\n");
  const Release libgcc = unpacked.releases()[0], elfutils = unpacked.releases()[1];
  const std::string seen = output_of(libgcc.command("/usr/bin/env")).value_or("");
  EXPECT_NE(seen.find("LD_LIBRARY_PATH=" + libgcc.library_path() + "\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("BENCH_RELEASE=" + libgcc.folder.string() + "\n"), std::string::npos) << seen;
  EXPECT_EQ(output_of(libgcc.command("/bin/echo", "env -u LD_LIBRARY_PATH") + " by a tool").value_or(""),
            "by a tool\n");

  // A loader that prints its arguments.
  const std::filesystem::path loader = elfutils.folder / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
  std::filesystem::create_directories(loader.parent_path());
  std::ofstream(loader) << "#!/bin/sh\necho \"$@\"\n";
  std::filesystem::permissions(loader, std::filesystem::perms::owner_all);
  EXPECT_EQ(output_of(elfutils.command("/usr/bin/env") + " 1").value_or(""),
            "--library-path " + elfutils.library_path() + " /usr/bin/env 1\n");
}

}  // namespace
}  // namespace bench
