// The tables that are shown, and the targets in them.
#pragma once

#include <string>
#include <vector>

#include "bench/contenders.h"
#include "bench/report.h"

namespace bench {

/// Returns the tables with targets against these releases of others.
std::vector<TableOptions> tables(const Others& others);

struct Plot {
  std::string file;  ///< without folder
  std::string title;
  std::string x_title;
  std::string row_prefix;
};
std::vector<Plot> plots();

}  // namespace bench
