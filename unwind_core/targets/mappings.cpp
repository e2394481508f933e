#include "jitunwind/unwind_core/targets/mappings.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "jitunwind/unwind_core/sort_by_internal.h"

namespace jitunwind {
namespace {

/// Values of hexadecimal digits as the kernel writes them; other characters have more than 15.
constexpr auto k_digits = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(16);
  for (std::uint8_t i = 0; i < 10; ++i) values[static_cast<std::size_t>('0' + i)] = i;
  for (std::uint8_t i = 10; i < 16; ++i) values[static_cast<std::size_t>('a' + i - 10)] = i;
  return values;
}();

/// Takes a hexadecimal number and the character after it off the front. The loop is written by hand: a process with
/// many libraries has some thousand numbers, which std::from_chars() takes twice as long to read.
bool take_number(std::string_view& text, char behind, std::uint64_t& out) {
  constexpr std::size_t k_most_digits = 16;
  std::uint64_t number = 0;
  std::size_t at = 0;
  for (; at < text.size() && at <= k_most_digits; ++at) {
    const std::uint8_t digit = k_digits[static_cast<unsigned char>(text[at])];
    if (digit > 15) break;
    number = number << 4 | digit;
  }
  if (at == 0 || at > k_most_digits || at == text.size() || text[at] != behind) return false;
  out = number;
  text.remove_prefix(at + 1);
  return true;
}

/// proc_pid_maps(5): a newline in a path is "\012".
constexpr std::string_view k_newline = "\\012";
std::string unescaped(std::string_view path) {
  std::string text;
  for (std::size_t at; (at = path.find(k_newline)) != path.npos; path.remove_prefix(at + k_newline.size()))
    text.append(path.substr(0, at)).push_back('\n');
  return text.append(path);
}

/// A line is "begin-end rwxp offset major:minor inode   path", all but the inode in hex.
bool parse_line(std::string_view line, Mapping& out) {
  if (!take_number(line, '-', out.range.begin) || !take_number(line, ' ', out.range.end)) return false;
  if (line.size() < 5 || line[4] != ' ') return false;
  out.readable = line[0] == 'r';
  out.writable = line[1] == 'w';
  out.executable = line[2] == 'x';
  out.shared = line[3] == 's';
  line.remove_prefix(5);
  std::uint64_t major = 0, minor = 0;
  if (!take_number(line, ' ', out.offset) || !take_number(line, ':', major) || !take_number(line, ' ', minor))
    return false;
  out.device = gnu_dev_makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  const std::string_view inode = line.substr(0, line.find(' '));
  const auto [end, failure] = std::from_chars(inode.data(), inode.data() + inode.size(), out.inode);
  if (failure != std::errc() || end != inode.data() + inode.size()) return false;
  line.remove_prefix(inode.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.find('\\') == line.npos)
    out.set_shown_path(line);
  else
    out.set_shown_path(unescaped(line));
  return true;
}

constexpr std::string_view k_deleted = " (deleted)";

}  // namespace

void Mapping::set_shown_path(std::string_view shown) {
  deleted = shown.ends_with(k_deleted);
  if (deleted) shown.remove_suffix(k_deleted.size());
  path = shown;
}

std::string Mapping::shown_path() const { return deleted ? path + std::string(k_deleted) : path; }

Mappings::Mappings(std::vector<Mapping> mappings) : all_(std::move(mappings)) {
  std::erase_if(all_, [](const Mapping& mapping) { return mapping.range.empty(); });
  // The kernel lists them in order.
  const auto begin_of = [](const Mapping& mapping) { return mapping.range.begin; };
  if (!std::ranges::is_sorted(all_, {}, begin_of)) sort_by(all_, begin_of);
  Addr end = 0;
  std::erase_if(all_, [&](const Mapping& mapping) {
    if (mapping.range.begin < end) return true;
    end = mapping.range.end;
    return false;
  });
  if (all_.size() > k_most) all_.resize(k_most);
}

Mappings Mappings::parse(std::string_view maps) {
  constexpr std::size_t k_line = 64;  // typical length
  std::vector<Mapping> found;
  found.reserve(std::min(maps.size() / k_line + 1, k_most));
  while (!maps.empty() && found.size() < k_most) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    if (!parse_line(line, found.emplace_back())) found.pop_back();
  }
  return Mappings(std::move(found));
}

const Mapping* Mappings::kernels_object() const noexcept {
  const auto kernels = std::ranges::find(all_, k_kernels_object, &Mapping::path);
  return kernels != all_.end() ? &*kernels : nullptr;
}

std::size_t Mappings::index_of(Addr at) const noexcept {
  const auto behind =
      std::ranges::upper_bound(all_, at, {}, [](const Mapping& mapping) { return mapping.range.begin; });
  if (behind == all_.begin()) return k_none;
  const auto index = static_cast<std::size_t>(behind - all_.begin()) - 1;
  return all_[index].range.contains(at) ? index : k_none;
}

}  // namespace jitunwind
