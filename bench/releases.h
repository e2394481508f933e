// Releases of other unwinders, which bench/peers/packages lists and bench/peers/unpack unpacks: one program of a peer
// runs with the libraries of each.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Release {
  std::filesystem::path folder;  ///< what its packages hold
  std::string unwinder{};
  std::string suite{};                  ///< of Debian
  std::vector<std::string> packages{};  ///< "libgcc-s1 16.2.0-4"; none: they are not unpacked
  std::string version{};
  std::string c_library{};  ///< version of its own, which programs run with; none: they run with the system's

  bool is_unpacked() const { return !packages.empty(); }
  /// "libgcc 16", "elfutils 0.196, glibc 2.43"; of one that is not unpacked "libgcc of sid".
  std::string title() const;
  /// "LD_LIBRARY_PATH" of a program.
  std::string library_path() const;
  /// A shell's command that runs a program with these libraries, and with BENCH_RELEASE, which is the folder, in its
  /// environment; `tool` is a command that runs the program.
  std::string command(const std::filesystem::path& program, const std::string& tool = "") const;
};

/// Without unwinder and suite.
Release release_in(const std::filesystem::path& folder);

/// In the order of the list. `folder` is where they are unpacked.
std::vector<Release> read_releases(const std::filesystem::path& list, const std::filesystem::path& folder);

/// Output of a shell's command; none when it failed.
std::optional<std::string> output_of(const std::string& command);

/// "1:19.1.7-3~deb12u1" -> "19", "1.8.1-0.4" -> "1.8.1". A first number of two digits names the release alone.
std::string upstream_version(const std::string& debian_version);

}  // namespace bench
