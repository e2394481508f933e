#include "jitunwind/sdk/dialects/perf_map.h"

#include <charconv>
#include <cstdint>

namespace jitunwind {
namespace {

/// Reads a hexadecimal number at the beginning of `line` and removes it and the blanks behind it. Some JITs write "0x"
/// before it.
bool take_number(std::string_view& line, std::uint64_t& out) noexcept {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto read = std::from_chars(line.data(), line.data() + line.size(), out, 16);
  if (read.ec != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
  const std::size_t blanks = line.find_first_not_of(" \t");
  if (blanks == 0) return false;
  line.remove_prefix(blanks == std::string_view::npos ? line.size() : blanks);
  return true;
}

}  // namespace

bool parse_perf_map_line(std::string_view line, NamedCode& out) noexcept {
  const auto is_own = [&] { return line.size() > 1 && line[0] == k_own_digit && line[1] != '0' && line[1] != 'x'; };
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  const bool has_own_start = is_own();
  if (!take_number(line, start)) return false;
  const bool has_own_size = is_own();
  if (!take_number(line, size)) return false;
  if (size == 0 || start + size < start) return false;
  out = {{start, start + size}, line.substr(0, line.find('\0')), has_own_start && has_own_size};
  return !out.name.empty();
}

void PerfMapReader::restart() noexcept {
  begun_.clear();
  is_too_long_ = false;
}

void PerfMapReader::end_line(std::string_view line, const std::function<void(const NamedCode&)>& tell) {
  NamedCode code;
  if (line.empty()) return;
  if (!is_too_long_ && line.size() <= k_longest_line && parse_perf_map_line(line, code))
    tell(code);
  else
    ++passed_by_;
}

void PerfMapReader::read(std::string_view piece, const std::function<void(const NamedCode&)>& tell) {
  for (std::size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    if (begun_.empty()) {
      end_line(piece.substr(0, end), tell);
    } else {
      begun_.append(piece.substr(0, is_too_long_ ? 0 : end));
      end_line(begun_, tell);
    }
    restart();
    piece.remove_prefix(end + 1);
  }
  if (begun_.size() + piece.size() > k_longest_line) is_too_long_ = true;
  if (!is_too_long_)
    begun_.append(piece);
  else
    begun_.assign(1, ' ');  // any text that is no valid line: the line was too long
}

}  // namespace jitunwind
