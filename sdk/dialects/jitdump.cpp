#include "jitunwind/sdk/dialects/jitdump.h"

#include <algorithm>
#include <utility>

#include "jitunwind/sdk/dialects/jitdump_format_internal.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {
namespace {

using namespace jitdump;

AddrRange range_of(Addr begin, std::uint64_t size) noexcept { return {begin, begin + size}; }

bool read_load(ByteReader& reader, JitDumpRecord& out) noexcept {
  reader.skip(8 + 8);
  const Addr at = reader.u64();
  const std::uint64_t size = reader.u64();
  reader.skip(8);
  out.name = reader.c_string().substr(0, k_longest_told_name);
  out.bytes = reader.bytes(size);
  out.code = range_of(at, size);
  return reader.ok() && out.code.end > out.code.begin;
}

bool read_move(ByteReader& reader, JitDumpRecord& out) noexcept {
  out.kind = JitDumpRecord::Kind::move;
  reader.skip(8 + 8);
  out.from = reader.u64();
  const Addr at = reader.u64();
  out.code = range_of(at, reader.u64());
  return reader.ok() && out.code.end > out.code.begin;
}

/// The file name "\xff" stands for that of the entry before.
bool read_lines(ByteReader& reader, JitDumpRecord& out, std::vector<JitDumpRecord::Line>& lines) {
  out.kind = JitDumpRecord::Kind::lines;
  const Addr at = reader.u64();
  out.code = {at, at};
  for (std::uint64_t left = reader.u64(); left != 0 && reader.ok() && !reader.at_end(); --left) {
    JitDumpRecord::Line line;
    line.at = reader.u64();
    line.line = reader.u32();
    reader.skip(4);
    line.file = reader.c_string();
    if (!reader.ok()) return false;
    if (line.file == "\xff" && !lines.empty()) line.file = lines.back().file;
    lines.push_back(line);
  }
  out.lines = lines;
  return reader.ok();
}

}  // namespace

SourceLines lines_of(const JitDumpRecord& record) {
  if (record.lines.empty()) return {};
  // LLVM and V8 count from the beginning of the ELF file that perf makes of the code; the code follows the ELF header.
  constexpr Addr k_elf_header = 0x40;
  const Addr first = std::ranges::min(record.lines, {}, &JitDumpRecord::Line::at).at;
  const Addr begin = record.code.begin + (first - record.code.begin == k_elf_header ? k_elf_header : 0);
  std::vector<ToldLine> told;
  for (const JitDumpRecord::Line& line : record.lines)
    if (line.at >= begin) told.push_back({line.at - begin, line.line, line.file});
  return SourceLines(told);
}

void WaitingLines::keep(const JitDumpRecord& record) {
  constexpr std::size_t k_most = std::size_t{1} << 16;
  if (lines_.size() != k_most) lines_[record.code.begin] = lines_of(record);
}

SourceLines WaitingLines::take(Addr code) {
  auto lines = lines_.extract(code);
  return lines ? std::move(lines.mapped()) : SourceLines();
}

bool is_jitdump(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

/// How many bytes the begun part takes: the header, a record's prefix, or a whole record, whose prefix has its size.
std::size_t JitDumpReader::wanted() const noexcept {
  if (!is_known_) return k_header;
  if (begun_.size() < k_prefix) return k_prefix;
  ByteReader reader(begun_, big_endian_);
  reader.skip(4);
  return std::max<std::size_t>(reader.u32(), k_prefix);
}

/// A file may be of another byte order, and its header may be longer than this one.
Status JitDumpReader::take_header() {
  ByteReader reader(begun_, false);
  big_endian_ = reader.u32() != k_magic;
  ByteReader again(begun_, big_endian_);
  const bool is_dump = again.u32() == k_magic && again.u32() == k_version;
  const std::uint32_t size = again.u32();
  machine_ = again.u32();
  is_own_ = again.u32() == k_own_padding;
  process_ = again.u32();
  begun_.clear();
  if (is_dump && size >= k_header && size <= k_longest) {
    is_known_ = true;
    skip_ = size - k_header;
    return Done{};
  }
  is_refused_ = true;
  process_.reset();
  return Error{ErrorCode::bad_structure, size, "header of a jitdump"};
}

void JitDumpReader::take_record(const Tell& tell) {
  ByteReader reader(begun_, big_endian_);
  const std::uint32_t kind = reader.u32();
  reader.skip(k_prefix - 4);
  JitDumpRecord record;
  std::vector<JitDumpRecord::Line> lines;
  bool is_right = true;
  switch (kind) {
    case k_load:
      is_right = read_load(reader, record);
      record.frames = frames_;
      record.header_size = std::exchange(frames_header_, 0);
      if (is_right) tell(record);
      frames_.clear();
      break;
    case k_move:
      if ((is_right = read_move(reader, record))) tell(record);
      break;
    case k_debug_info:
      if ((is_right = read_lines(reader, record, lines))) tell(record);
      break;
    case k_unwinding_info: {
      const std::uint64_t size = reader.u64();
      frames_header_ = reader.u64();
      reader.skip(8);  // what is mapped of it
      const auto bytes = reader.bytes(size);
      is_right = reader.ok() && frames_header_ <= size;
      if (!is_right) frames_header_ = 0;
      frames_.assign(bytes.begin(), is_right ? bytes.end() : bytes.begin());
      break;
    }
    default:
      break;
  }
  if (!is_right) ++passed_by_;
  begun_.clear();
}

Status JitDumpReader::read(std::span<const std::byte> piece, const Tell& tell) {
  if (is_refused_) return Done{};
  while (!piece.empty()) {
    if (skip_ != 0) {
      const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, piece.size()));
      skip_ -= skipped;
      piece = piece.subspan(skipped);
      continue;
    }
    const std::size_t taken = std::min(wanted() - begun_.size(), piece.size());
    begun_.insert(begun_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
    piece = piece.subspan(taken);
    if (begun_.size() < wanted()) {
      if (!is_known_ || begun_.size() < k_prefix || wanted() <= k_longest) continue;
      skip_ = wanted() - begun_.size();
      begun_.clear();
      ++passed_by_;
    } else if (is_known_) {
      take_record(tell);
    } else if (const Status header = take_header(); !header) {
      return header;
    }
  }
  return Done{};
}

}  // namespace jitunwind
