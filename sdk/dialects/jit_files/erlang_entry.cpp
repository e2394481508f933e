#include "jitunwind/sdk/dialects/jit_files/erlang_entry.h"

#include <algorithm>
#include <string_view>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {
namespace {

enum Kind : std::uint32_t { k_emulator = 0, k_module = 1 };

/// These sizes include padding. Each structure ends with a text that follows its 16-bit length, inside the structure's
/// padding. The next structure begins at the padded size plus the length, although the text itself begins earlier.
constexpr std::size_t k_head = 32;   // kind, padding, address, ranges, size, length of the text: 26 bytes
constexpr std::size_t k_range = 16;  // start, end, lines, length: 14 bytes
constexpr std::size_t k_line = 12;   // start, line, length: 10 bytes

/// Returns the text without its NUL, and leaves the reader behind the structure, which began at `begin`.
std::string_view take_text(ByteReader& reader, std::size_t begin, std::size_t padded_size) noexcept {
  const std::size_t length = reader.u16();
  const auto bytes = reader.bytes(length);
  reader.seek(begin + padded_size + length);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, std::min(text.find('\0'), k_longest_told_name));
}

Result<ErlangEntry> read_emulator(ByteReader& reader) noexcept {
  ErlangEntry out;
  reader.skip(4);
  const std::uint32_t layout = reader.u32();
  reader.skip(4);
  out.emulator = {layout == 1, reader.u64()};
  if (layout > 1) return Error{ErrorCode::bad_structure, layout, "entry of Erlang's emulator"};
  return out;
}

/// Lines are read even if they are not kept, because the next range follows them.
ErlangEntry::Range read_range(ByteReader& reader, Addr base) {
  ErlangEntry::Range range;
  const std::size_t begin = reader.position();
  const std::uint32_t start = reader.u32();
  const std::uint32_t end = reader.u32();
  range.code = {base + start, base + end};
  std::uint32_t lines_left = reader.u32();
  range.name = take_text(reader, begin, k_range);
  std::vector<ToldLine> lines;
  for (; lines_left != 0 && reader.ok(); --lines_left) {
    const std::size_t line_begin = reader.position();
    const std::uint32_t at = reader.u32();
    const std::uint32_t line = reader.u32();
    const std::string_view file = take_text(reader, line_begin, k_line);
    if (reader.ok() && at >= start && at < end && lines.size() < SourceLines::k_most)
      lines.push_back({at - start, line, file});
  }
  if (reader.ok()) range.lines = SourceLines(lines);
  return range;
}

Result<ErlangEntry> read_module(ByteReader& reader) {
  ErlangEntry out;
  reader.skip(4);
  const Addr base = reader.u64();
  std::uint32_t ranges_left = reader.u32();
  out.code = {base, base + reader.u32()};
  out.module = take_text(reader, 0, k_head);
  for (; ranges_left != 0 && reader.ok(); --ranges_left) {
    ErlangEntry::Range range = read_range(reader, base);
    if (reader.ok() && range.code.begin >= base && range.code.begin < range.code.end && range.code.end <= out.code.end)
      out.ranges.push_back(std::move(range));
  }
  if (!reader.ok()) return reader.error("entry of an Erlang module");
  if (out.code.end <= base) return Error{ErrorCode::bad_structure, base, "Erlang module without code"};
  std::ranges::stable_sort(out.ranges, {}, [](const ErlangEntry::Range& range) { return range.code.begin; });
  return out;
}

}  // namespace

/// The emulator's entry is as long as the beginning of a module's: both use one structure.
bool is_erlang_entry(std::span<const std::byte> file, const Arch& arch) noexcept {
  if (arch.word_size != 8 || file.size() < k_head) return false;
  const std::uint32_t kind = ByteReader(file, arch.big_endian).u32();
  return kind == k_module || (kind == k_emulator && file.size() == k_head);
}

Result<ErlangEntry> read_erlang_entry(std::span<const std::byte> file, const Arch& arch) {
  if (!is_erlang_entry(file, arch)) return Error{ErrorCode::bad_structure, file.size(), "no entry of Erlang's"};
  ByteReader reader(file, arch.big_endian);
  return reader.u32() == k_emulator ? read_emulator(reader) : read_module(reader);
}

}  // namespace jitunwind
