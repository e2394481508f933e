// Jitdumps as files: each record is code with its bytes, its name and its call frame information.
#include <elf.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

#include "jitunwind/sdk/dialects/frames/dumped_frames.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/jitstack/check/check_output_p.h"
#include "jitunwind/sdk/jitstack/stacks_p.h"
#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind::jitstack {
namespace {

/// The parts of segments that the file has. Data that a loader would change are those of the file, too.
std::vector<Mapping> mappings_of(const ElfImage& image, const std::string& path) {
  std::vector<Mapping> mappings;
  for (std::size_t i = 0; i < image.segment_count(); ++i) {
    const ElfSegment segment = image.segment(i);
    if (segment.type != PT_LOAD || segment.file_size == 0) continue;
    const Addr before = segment.address - page_of(segment.address);
    const Addr end = segment.address + segment.file_size;
    if (segment.offset < before || end < segment.address || end > ~Addr{0} - k_page_size) continue;
    Mapping mapping;
    mapping.range = {segment.address - before, page_of(end + k_page_size - 1)};
    mapping.offset = segment.offset - before;
    mapping.path = path;
    mapping.readable = true;
    mapping.executable = (segment.flags & PF_X) != 0;
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

/// "it has 5000 bytes of 60000"; "": its segments are whole.
std::string what_is_cut(const ElfImage& image, std::uint64_t size) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < image.segment_count(); ++i) {
    const ElfSegment segment = image.segment(i);
    if (segment.type == PT_LOAD && segment.offset + segment.file_size >= segment.offset)
      end = std::max(end, segment.offset + segment.file_size);
  }
  return end <= size ? "" : "it has " + std::to_string(size) + " bytes of " + std::to_string(end);
}

}  // namespace

void remark_on_core(const std::string& path, Progress& progress) {
  if (path.empty()) return;
  const auto file = make_mapped<FileParts>(path.c_str());
  const auto image = file ? ElfImage::parse(*file) : Result<ElfImage>(Error{ErrorCode::out_of_memory, 0, path.c_str()});
  const std::string cut = image ? what_is_cut(*image, file->size()) : "";
  if (!cut.empty()) progress.say("'" + path + "' is cut off: " + cut + ". What is not there ends walks early.");
}

TargetError unfit(const std::string& path, const std::string& why) {
  return {TargetError::Reason::no_such_file, "'" + path + "' " + why + ".", ""};
}

Result<Target, TargetError> open_elf_file(const std::string& path) {
  const auto file = make_mapped<FileParts>(path.c_str());
  if (!file || !file->is_open()) return unfit(path, "cannot be read: " + why_unreadable(path));
  const auto image = ElfImage::parse(*file);
  if (!image) return unfit(path, "is no ELF file");
  const std::string cut = what_is_cut(*image, file->size());
  if (image->type() == ET_CORE) return unfit(path, "is a core file: --core");
  if (image->type() == ET_REL) return unfit(path, "is not linked: it is an object for the linker, without addresses");
  const Arch* const arch = find_arch(image->machine(), image->big_endian());
  if (!arch || !image->is_of(*arch)) return no_table("'" + path + "'", image->machine(), image->is_64());
  if (!cut.empty()) return unfit(path, "is cut off: " + cut);
  Sample sample;
  sample.arch = arch;
  sample.mappings = mappings_of(*image, std::filesystem::absolute(path).string());
  if (sample.mappings.empty()) return unfit(path, "has no segments");
  return Target::from_sample(std::move(sample));
}

namespace {

/// Addresses of a record's code that no description covers and that are asked about.
constexpr std::uint64_t k_most_misses_of_record = JitDumpReader::k_longest;

/// Code that was replaced by other code at its address is visited as well. Code that was moved is visited where it was
/// first.
class DumpSource final : public DescribedSource {
 public:
  DumpSource(std::string path, const Arch& arch) : path_(std::move(path)), arch_(arch) {}
  const Arch& arch() const override { return arch_; }
  const Memory& memory() const override { return memory_; }
  Found find_row(Addr at, FrameRow& out) override { return frames_.find_row(code_, at, arch_, out); }
  std::string name_of(Addr) override { return name_; }

  void visit(CodeVisitor& visitor) override {
    visitor_ = &visitor;
    std::ifstream file(path_, std::ios::binary | std::ios::ate);
    visitor.begin_module(path_, static_cast<std::uint64_t>(std::max<std::streamoff>(file.tellg(), 0)));
    file.seekg(0);
    JitDumpReader reader;
    std::vector<char> piece(k_piece);
    for (bool is_dump = true; is_dump && file;) {
      file.read(piece.data(), k_piece);
      const auto got = static_cast<std::size_t>(file.gcount());
      const auto take = [this](const JitDumpRecord& record) { visit(record); };
      is_dump = bool(reader.read(std::as_bytes(std::span(piece).first(got)), take));
      done_ += got;
    }
  }

 private:
  static constexpr std::size_t k_piece = std::size_t{1} << 16;

  void visit(const JitDumpRecord& record) {
    if (record.kind != JitDumpRecord::Kind::load || record.frames.empty()) return;
    code_ = record.code;
    name_ = record.name;
    frames_ = DumpedFrames(record);
    memory_ = BytesMemory({{record.code.begin, record.bytes}});
    const auto find = [this](Addr at) {
      ProcedureInfo info;
      const Found found = frames_.find_procedure(code_, at, arch_, info);
      return found && *found ? info.range : AddrRange{};
    };
    std::uint64_t misses = k_most_misses_of_record;
    (void)for_each_procedure(code_, misses, find,
                             [this](const AddrRange& procedure) { visitor_->visit({procedure}, done_); });
    visitor_->end_parts();
  }

  std::string path_;
  const Arch& arch_;
  CodeVisitor* visitor_ = nullptr;
  std::uint64_t done_ = 0;
  // These belong to the record that is visited.
  AddrRange code_{};
  std::string name_;
  DumpedFrames frames_;
  BytesMemory memory_{{}};
};

}  // namespace

Result<std::unique_ptr<DescribedSource>, TargetError> open_jitdump(const std::string& path) {
  std::array<char, 256> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  if (file.gcount() == 0) return unfit(path, "cannot be read: " + why_unreadable(path));
  JitDumpReader reader;
  const auto pass = [](const JitDumpRecord&) {};
  const auto got = static_cast<std::size_t>(file.gcount());
  if (!reader.read(std::as_bytes(std::span(head).first(got)), pass) || !reader.process())
    return unfit(path, "is no jitdump");
  const Arch* const arch = find_arch(reader.machine(), reader.big_endian());
  if (!arch) return no_table("'" + path + "'", reader.machine(), true);
  return std::unique_ptr<DescribedSource>(std::make_unique<DumpSource>(path, *arch));
}

}  // namespace jitunwind::jitstack
