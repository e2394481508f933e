#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "jitunwind/adapters/perf/writers_p.h"
#include "jitunwind/sdk/dialects/perf_map.h"

namespace jitunwind {

std::string perf_name(std::string_view name) {
  if (name.empty()) return std::string(k_nameless);
  std::string text(name);
  const auto is_control = [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

Status MapWriter::open(std::uint64_t most_bytes) {
  return file_.open("/tmp/perf-" + std::to_string(::getpid()) + ".map", most_bytes, IfBegun::continue_it);
}

Status MapWriter::write(const CopiedProcedure& code) {
  std::array<char, 40> numbers;
  const int size =
      std::snprintf(numbers.data(), numbers.size(), "%" PRIx64 " %" PRIx64 " ", code.code.begin, code.code.size());
  std::string name = perf_name(code.name) + "\n";
  const std::array<iovec, 2> line{iovec{numbers.data(), static_cast<std::size_t>(size)}, {name.data(), name.size()}};
  return file_.append(line);
}

}  // namespace jitunwind
