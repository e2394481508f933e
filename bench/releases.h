// Releases of other unwinders. bench/peers/packages lists them and bench/peers/unpack unpacks them. A peer's program
// runs with the libraries of each release.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Release {
  std::filesystem::path folder;  ///< holds the unpacked packages
  std::string unwinder{};
  std::string suite{};                  ///< of Debian
  std::vector<std::string> packages{};  ///< "libgcc-s1 16.2.0-4"; empty if they are not unpacked
  std::string version{};
  std::string c_library{};  ///< the version of the release's own C library; empty if programs run with the system's

  bool is_unpacked() const { return !packages.empty(); }
  /// Returns "libgcc 16" or "elfutils 0.196, glibc 2.43"; "libgcc of sid" for a release that is not unpacked.
  std::string title() const;
  /// The value of "LD_LIBRARY_PATH" for a program.
  std::string library_path() const;
  /// Returns a shell command that runs a program with these libraries. BENCH_RELEASE in its environment is the folder.
  /// `tool` is a command that runs the program.
  std::string command(const std::filesystem::path& program, const std::string& tool = "") const;
};

/// Leaves `unwinder` and `suite` empty.
Release release_in(const std::filesystem::path& folder);

/// Returns the releases in the order of the list. `folder` is where they are unpacked.
std::vector<Release> read_releases(const std::filesystem::path& list, const std::filesystem::path& folder);

/// Returns the output of a shell command, or nothing when it failed.
std::optional<std::string> output_of(const std::string& command);

/// Returns the version of the original release: "1:19.1.7-3~deb12u1" -> "19", "1.8.1-0.4" -> "1.8.1". A first number of
/// two digits names the release alone.
std::string upstream_version(const std::string& debian_version);

}  // namespace bench
