#include "jitunwind/sdk/dialects/jit_files/debug_lines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {
namespace {

/// The name that engines without a source file give.
constexpr std::string_view k_no_source = "unknown";
constexpr std::size_t k_most_files = std::size_t{1} << 16;

/// Values of DW_FORM_* that tables of files may use (DWARF 5, 6.2.4.1 and 7.5.6).
enum Form : std::uint64_t {
  k_data2 = 0x05,
  k_data4 = 0x06,
  k_data8 = 0x07,
  k_string = 0x08,
  k_block = 0x09,
  k_data1 = 0x0b,
  k_strp = 0x0e,
  k_udata = 0x0f,
  k_data16 = 0x1e,
  k_line_strp = 0x1f,
};
/// Values of DW_LNCT_*.
enum Content : std::uint64_t { k_path = 1, k_directory_index = 2 };
/// Values of DW_LNS_* and DW_LNE_*.
enum StandardOpcode : std::uint8_t {
  k_extended = 0,
  k_copy = 1,
  k_advance_pc = 2,
  k_advance_line = 3,
  k_set_file = 4,
  k_const_add_pc = 8,
  k_fixed_advance_pc = 9,
};
enum ExtendedOpcode : std::uint8_t { k_end_sequence = 1, k_set_address = 2 };

struct FileEntry {
  std::string_view name{};
  std::uint64_t directory = 0;
};

/// Reads one unit: its header and its line number program.
class LineProgram {
 public:
  LineProgram(ByteReader& unit, bool is_wide, const DebugLineSections& sections) noexcept
      : in_(unit), offset_size_(is_wide ? 8 : 4), sections_(sections) {}

  /// `room`: for bytes of names. Entries of a few bytes can each have the longest name.
  void run(std::vector<DebugLines::Row>& rows, std::vector<std::string>& files, std::uint64_t& room) {
    if (!read_header()) return;
    first_file_ = static_cast<std::uint32_t>(files.size());
    for (std::size_t i = 0; i < entries_.size() && files.size() < k_most_files; ++i) {
      std::string path = path_of(i);
      if (path.size() > room) break;
      room -= path.size();
      if (path == k_no_source) no_source_ = i;
      files.push_back(std::move(path));
    }
    files_end_ = static_cast<std::uint32_t>(files.size());
    while (in_.ok() && !in_.at_end() && rows.size() < DebugLines::k_most) step(rows);
  }

 private:
  bool read_header() {
    version_ = in_.u16();
    if (version_ < 2 || version_ > 5) return false;
    if (version_ == 5) in_.skip(2);  // sizes of addresses and of segment selectors
    const std::uint64_t length = in_.unsigned_of(offset_size_);
    const std::size_t program =
        in_.position() + static_cast<std::size_t>(std::min<std::uint64_t>(length, in_.remaining()));
    least_length_ = in_.u8();
    if (version_ >= 4) in_.skip(1);  // operations of an instruction
    in_.skip(1);                     // whether rows are statements
    line_base_ = static_cast<std::int8_t>(in_.u8());
    line_range_ = in_.u8();
    opcode_base_ = in_.u8();
    for (unsigned i = 1; i < opcode_base_; ++i) arguments_[i] = in_.u8();
    if (!in_.ok() || line_range_ == 0 || opcode_base_ == 0) return false;
    if (version_ == 5)
      read_tables();
    else
      read_old_tables();
    in_.seek(program);
    return in_.ok();
  }

  /// Reads the tables of versions before 5: directories and files are numbered from 1, and directory 0 is the
  /// compiler's own.
  void read_old_tables() {
    directories_.emplace_back();
    for (std::string_view name; !(name = in_.c_string()).empty();) directories_.push_back(name);
    entries_.emplace_back();
    for (std::string_view name; !(name = in_.c_string()).empty();) {
      entries_.push_back({name, in_.uleb()});
      (void)in_.uleb(), (void)in_.uleb();  // time, size
    }
  }
  void read_tables() {
    read_table([this](const FileEntry& entry) { directories_.push_back(entry.name); });
    read_table([this](const FileEntry& entry) { entries_.push_back(entry); });
  }
  template <class Take>
  void read_table(Take take) {
    struct Field {
      std::uint64_t content, form;
    };
    std::array<Field, 8> fields;
    const std::size_t count = in_.u8();
    if (count > fields.size()) return in_.fail(ErrorCode::bad_structure);
    for (std::size_t i = 0; i < count; ++i) {
      fields[i].content = in_.uleb();
      fields[i].form = in_.uleb();
    }
    std::uint64_t left = in_.uleb();
    if (count == 0) return;
    for (; left != 0 && in_.ok() && !in_.at_end(); --left) {
      FileEntry entry;
      for (const Field& field : std::span(fields).first(count)) read_field(field.content, field.form, entry);
      if (in_.ok()) take(entry);
    }
  }
  void read_field(std::uint64_t content, std::uint64_t form, FileEntry& entry) noexcept {
    std::string_view text;
    std::uint64_t number = 0;
    switch (form) {
      case k_string:
        text = in_.c_string();
        break;
      case k_line_strp:
      case k_strp:
        text = string_at(form == k_strp ? sections_.strings : sections_.line_strings, in_.unsigned_of(offset_size_));
        break;
      case k_udata:
        number = in_.uleb();
        break;
      case k_data1:
        number = in_.u8();
        break;
      case k_data2:
        number = in_.u16();
        break;
      case k_data4:
        number = in_.u32();
        break;
      case k_data8:
        number = in_.u64();
        break;
      case k_data16:
        in_.skip(16);
        break;
      case k_block:
        in_.skip(in_.uleb());
        break;
      default:
        in_.fail(ErrorCode::bad_encoding);
    }
    if (content == k_path) entry.name = text;
    if (content == k_directory_index) entry.directory = number;
  }
  std::string_view string_at(std::span<const std::byte> section, std::uint64_t offset) const noexcept {
    if (offset >= section.size()) return {};
    return ByteReader(section.subspan(static_cast<std::size_t>(offset)), sections_.big_endian).c_string();
  }

  std::string path_of(std::size_t number) const {
    const FileEntry& entry = entries_[number];
    const std::string_view name = entry.name.substr(0, k_longest_told_name);
    if (name.starts_with('/') || entry.directory >= directories_.size()) return std::string(name);
    const std::string_view directory =
        directories_[static_cast<std::size_t>(entry.directory)].substr(0, k_longest_told_name);
    return directory.empty() || name.empty() ? std::string(name) : std::string(directory) + "/" + std::string(name);
  }

  // The line number program (6.2.5).

  void step(std::vector<DebugLines::Row>& rows) {
    const std::uint8_t opcode = in_.u8();
    if (opcode >= opcode_base_) {
      const unsigned adjusted = opcode - unsigned{opcode_base_};
      advance(adjusted / line_range_);
      line_ += static_cast<std::uint32_t>(line_base_ + static_cast<int>(adjusted % line_range_));
      return add(rows);
    }
    switch (opcode) {
      case k_extended:
        return step_extended(rows);
      case k_copy:
        return add(rows);
      case k_advance_pc:
        return advance(in_.uleb());
      case k_advance_line:
        line_ += static_cast<std::uint32_t>(in_.sleb());
        return;
      case k_set_file:
        file_ = in_.uleb();
        return;
      case k_const_add_pc:
        return advance((255u - opcode_base_) / line_range_);
      case k_fixed_advance_pc:
        address_ += in_.u16();
        return;
      default:
        for (unsigned i = arguments_[opcode]; i != 0; --i) (void)in_.uleb();
    }
  }
  void step_extended(std::vector<DebugLines::Row>& rows) {
    const std::uint64_t size = in_.uleb();
    ByteReader operation(in_.bytes(size), sections_.big_endian);
    const std::uint8_t opcode = operation.u8();
    if (opcode == k_set_address && (size == 9 || size == 5)) address_ = operation.unsigned_of(operation.remaining());
    if (opcode != k_end_sequence) return;
    rows.push_back({address_, 0, DebugLines::k_none});
    address_ = 0;
    file_ = line_ = 1;
  }
  void advance(std::uint64_t operations) noexcept { address_ += operations * least_length_; }
  void add(std::vector<DebugLines::Row>& rows) const {
    if (file_ < files_end_ - first_file_)
      rows.push_back({address_, file_ == no_source_ ? 0 : line_, first_file_ + static_cast<std::uint32_t>(file_)});
  }

  ByteReader& in_;
  std::size_t offset_size_;
  const DebugLineSections& sections_;
  unsigned version_ = 0;
  std::uint8_t least_length_ = 0, line_range_ = 0, opcode_base_ = 0;
  int line_base_ = 0;
  std::array<std::uint8_t, 256> arguments_{};
  std::vector<std::string_view> directories_;
  std::vector<FileEntry> entries_;
  std::uint32_t first_file_ = 0, files_end_ = 0;
  std::uint64_t no_source_ = ~std::uint64_t{0};  // number of the file that stands for none
  Addr address_ = 0;
  std::uint64_t file_ = 1;
  std::uint32_t line_ = 1;
};

}  // namespace

DebugLines::DebugLines(const DebugLineSections& sections) {
  constexpr std::uint64_t k_names_per_byte = 32;
  std::uint64_t room = k_names_per_byte * sections.lines.size();
  ByteReader all(sections.lines, sections.big_endian);
  while (all.ok() && !all.at_end() && rows_.size() < k_most) {
    std::uint64_t length = all.u32();
    const bool is_wide = length == 0xffffffff;
    if (is_wide) length = all.u64();
    ByteReader unit(all.bytes(length), sections.big_endian);
    if (all.ok()) LineProgram(unit, is_wide, sections).run(rows_, files_, room);
  }
  // If a sequence begins where another one ends, the row that begins counts.
  std::ranges::stable_sort(rows_, [](const Row& a, const Row& b) {
    return a.at != b.at ? a.at < b.at : a.file == k_none && b.file != k_none;
  });
}

std::optional<SourceLine> DebugLines::find(Addr at) const {
  const auto behind = std::ranges::upper_bound(rows_, at, {}, &Row::at);
  if (behind == rows_.begin()) return std::nullopt;
  const Row& row = *std::prev(behind);
  return row.file == k_none || row.line == 0 ? std::nullopt : std::optional(SourceLine{files_[row.file], row.line});
}

SourceLines DebugLines::within(const AddrRange& code) const {
  std::vector<ToldLine> told;
  auto row = std::ranges::upper_bound(rows_, code.begin, {}, &Row::at);
  if (row != rows_.begin()) --row;
  for (; row != rows_.end() && row->at < code.end; ++row)
    if (row->file != k_none) told.push_back({row->at - std::min(row->at, code.begin), row->line, files_[row->file]});
  return SourceLines(told);
}

}  // namespace jitunwind
