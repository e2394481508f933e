// What is shown, and what is aimed at.
#pragma once

#include <string>
#include <vector>

#include "bench/contenders.h"
#include "bench/report.h"

namespace bench {

/// With targets beside these releases of others.
std::vector<TableOptions> tables(const Others& others);

struct Plot {
  std::string file;  ///< without folder
  std::string title;
  std::string x_title;
  std::string row_prefix;
};
std::vector<Plot> plots();

}  // namespace bench
