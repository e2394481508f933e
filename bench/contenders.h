// Who is measured, and in what.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/releases.h"

namespace bench {

/// What a program can be asked to measure, by the first word of its command line.
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

/// Titles of those that do not depend on what others release. The reference is what others are compared with.
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
inline constexpr const char* k_onlooker = "other processes";

/// A program, and the release of others that it is run with.
struct Peer {
  std::string title;
  std::string program;
  std::vector<std::string> groups;
  std::string needs{};  ///< what was not there when the program was not built
  std::optional<Release> release{};
  std::size_t most_functions = 1'000'000;  ///< beyond that a run would take minutes

  bool measures(const std::string& group) const;
  /// A shell's command that runs the program, which is in `folder`, by a tool or itself.
  std::string command(const std::filesystem::path& folder, const std::string& tool = "") const;
};
/// Why the peer cannot be run; "": it can. A program that would load other libraries than those of its release measures
/// what its title does not say.
std::string what_is_missing(const Peer& peer, const std::filesystem::path& folder);
std::vector<Peer> peers(const std::vector<Release>& releases);

/// Titles of peers that run with one set of releases.
struct Others {
  std::string libgcc, nongnu, llvm, elfutils;
  std::string on_libgcc;  ///< this library, and a throw by the C++ run-time's unwinder
  std::string listening;  ///< a program that has never heard of this library, listened to
};
/// The newest release of each first, which targets are about; then those of each older suite.
std::vector<Others> others(const std::vector<Release>& releases);

}  // namespace bench
