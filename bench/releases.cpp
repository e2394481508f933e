#include "bench/releases.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>

namespace bench {

namespace {

constexpr const char* k_library_folder = "usr/lib/x86_64-linux-gnu";
constexpr const char* k_loader = "ld-linux-x86-64.so.2";

}  // namespace

Release release_in(const std::filesystem::path& folder) {
  Release release{folder};
  std::ifstream versions(folder / "versions");
  for (std::string line; std::getline(versions, line);) {
    const std::size_t space = line.find(' ');
    const std::string version = upstream_version(line.substr(space + 1));
    if (release.packages.empty()) release.version = version;
    if (line.substr(0, space) == "libc6") release.c_library = version;
    release.packages.push_back(line);
  }
  return release;
}

std::string upstream_version(const std::string& debian_version) {
  static const std::regex form("(?:\\d+:)?(\\d\\d+(?=\\.)|[^-]+).*");
  return std::regex_replace(debian_version, form, "$1");
}

std::string Release::title() const {
  if (!is_unpacked()) return unwinder + " of " + suite;
  return unwinder + " " + version + (c_library.empty() ? "" : ", glibc " + c_library);
}

std::string Release::library_path() const {
  return (folder / k_library_folder).string() + ":" + (folder / "lib/x86_64-linux-gnu").string();
}

std::string Release::command(const std::filesystem::path& program, const std::string& tool) const {
  const std::string run = tool.empty() ? "" : tool + " ";
  const std::string quoted = "'" + program.string() + "'";
  const std::string release = "BENCH_RELEASE='" + folder.string() + "' ";
  if (c_library.empty()) return release + "LD_LIBRARY_PATH='" + library_path() + "' " + run + quoted;
  return release + run + "'" + (folder / k_library_folder / k_loader).string() + "' --library-path '" + library_path() +
         "' " + quoted;
}

std::vector<Release> read_releases(const std::filesystem::path& list, const std::filesystem::path& folder) {
  std::vector<Release> all;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string unwinder, suite;
    if (line.rfind('#', 0) == 0 || !(words >> unwinder >> suite)) continue;
    all.push_back(release_in(folder / unwinder / suite));
    all.back().unwinder = unwinder;
    all.back().suite = suite;
  }
  return all;
}

std::optional<std::string> output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string output;
  std::array<char, 65536> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  if (pclose(pipe) != 0) return std::nullopt;
  return output;
}

}  // namespace bench
