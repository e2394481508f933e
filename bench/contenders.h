// The programs that are measured, and the groups of measurements.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/releases.h"

namespace bench {

/// The groups of measurements that a program can make. The first word of its command line names one.
inline constexpr const char* k_walk = "walk";
inline constexpr const char* k_cold = "cold";
inline constexpr const char* k_registration = "registration";
inline constexpr const char* k_throw = "throw";
inline constexpr const char* k_cold_throw = "cold_throw";
inline constexpr const char* k_debuggers = "debugger";
inline constexpr const char* k_orc = "orc";
inline constexpr const char* k_links = "links";
inline constexpr const char* k_starts = "starts";
inline constexpr const char* k_large_code = "large";
inline constexpr const char* k_targets = "targets";

/// Titles that do not depend on the releases of others. Others are compared with the reference.
inline constexpr const char* k_reference = "jitunwind";
inline constexpr const char* k_own_runtime = "own runtime";
inline constexpr const char* k_limit = "limit";
inline constexpr const char* k_debugger = "debugger";
inline constexpr const char* k_lljit = "LLJIT";
inline constexpr const char* k_link_form = "link form";
inline constexpr const char* k_preloaded = "preloaded";
inline constexpr const char* k_compiler = "compiler";
inline constexpr const char* k_engine = "engine";
inline constexpr const char* k_large = "large";
inline constexpr const char* k_check = "check";
inline constexpr const char* k_published = "published";
inline constexpr const char* k_onlooker = "other processes";

/// A program, and the release of another unwinder that it runs with.
struct Peer {
  std::string title;
  std::string program;
  std::vector<std::string> groups;
  std::string needs{};  ///< the missing package, if the program was not built
  std::optional<Release> release{};
  std::size_t most_functions = 1'000'000;  ///< a run with more would take minutes

  bool measures(const std::string& group) const;
  /// Returns the shell command that runs the program in `folder`, directly or by `tool`.
  std::string command(const std::filesystem::path& folder, const std::string& tool = "") const;
};
/// Returns why the peer cannot be run, or "" when it can. A program that would load other libraries than those of its
/// release would measure something else than its title says.
std::string what_is_missing(const Peer& peer, const std::filesystem::path& folder);
std::vector<Peer> peers(const std::vector<Release>& releases);

/// The titles of the peers that run with one set of releases.
struct Others {
  std::string libgcc, nongnu, llvm, elfutils;
  std::string on_libgcc;  ///< this library, and a throw by the C++ run-time's unwinder
  std::string listening;  ///< a program that does not use this library, while the library listens to it
  std::string published;  ///< one that does not have this library, with functions that another program published
};
/// Returns the newest release of each first, to which targets refer, and then those of each older suite.
std::vector<Others> others(const std::vector<Release>& releases);

}  // namespace bench
