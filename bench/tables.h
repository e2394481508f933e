// What is shown, and what is aimed at.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"

namespace bench {

/// The program whose times others are compared with, and the same one run a second time.
inline constexpr const char* k_reference = "jitunwind";
inline constexpr const char* k_again = "jitunwind again";
inline constexpr const char* k_own_runtime = "own runtime";
inline constexpr const char* k_libgcc = "libgcc " JITUNWIND_GCC_VERSION;
inline constexpr const char* k_listening = "listening";
inline constexpr const char* k_nongnu = "nongnu 1.6.2";
inline constexpr const char* k_llvm = "LLVM 19";
inline constexpr const char* k_limit = "limit";
inline constexpr const char* k_debugger = "debugger";
inline constexpr const char* k_lljit = "LLJIT";
inline constexpr const char* k_link_form = "link form";
inline constexpr const char* k_preloaded = "preloaded";
inline constexpr const char* k_compiler = "compiler";
inline constexpr const char* k_engine = "engine";
inline constexpr const char* k_large = "large";
inline constexpr const char* k_onlooker = "other processes";

std::vector<TableOptions> tables();

struct Plot {
  std::string file;  ///< without folder
  std::string title;
  std::string x_title;
  std::string row_prefix;
};
std::vector<Plot> plots();

}  // namespace bench
