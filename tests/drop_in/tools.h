// Running tools of Debian on the drop-in libraries and on libunwind 1.6.
#pragma once

#include <string>

#include "tests/support/command.h"

namespace jitunwind::test {

inline const std::string k_ours = "LD_LIBRARY_PATH='" DROP_IN_FOLDER "' ";
inline const std::string k_theirs;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace jitunwind::test
