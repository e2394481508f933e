// A folder of unpacked releases, as bench/peers/unpack leaves it, and the list of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/releases.h"
#include "tests/support/command.h"

namespace bench {

class Unpacked {
 public:
  explicit Unpacked(const std::string& list) { std::ofstream(folder_ / "packages") << list; }

  /// Unpacks the versions of UNWINDER/SUITE.
  void unpack(const std::string& release, const std::string& versions) const {
    std::filesystem::create_directories(folder_ / release);
    std::ofstream(folder_ / (release + "/versions")) << versions;
  }
  /// Unpacks the three releases of libgcc that targets and programs differ by.
  void unpack_libgcc() const {
    unpack("libgcc/sid", "libgcc-s1 16.2.0-4\n");
    unpack("libgcc/trixie", "libgcc-s1 14.2.0-19\n");
    unpack("libgcc/bookworm", "libgcc-s1 12.2.0-14+deb12u1\n");
  }
  std::vector<Release> releases() const { return read_releases(folder_ / "packages", folder_.path()); }
  const jitunwind::test::TemporaryFolder& folder() const { return folder_; }

 private:
  jitunwind::test::TemporaryFolder folder_;
};

}  // namespace bench
