#include <elf.h>

#include <algorithm>
#include <filesystem>

#include "jitunwind/sdk/jitstack/check/described_code_p.h"
#include "jitunwind/sdk/jitstack/stacks_p.h"
#include "jitunwind/sdk/targets/target_impl_p.h"
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

}  // namespace jitunwind::jitstack
