#include <elf.h>

#include <algorithm>
#include <array>

#include "jitunwind/unwind_core/page_p.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/targets/mapped_object_p.h"

namespace jitunwind {
namespace {

/// Of one object, together: the largest programs have some 30 MiB of .eh_frame.
constexpr std::uint64_t k_most_frames = std::uint64_t{256} << 20;
constexpr std::size_t k_most_loaded = 64;
constexpr std::uint64_t k_longest_object = std::uint64_t{4} << 30;  // whose program headers are looked for in all of it

/// Run-time address - address in the file: of the segment that begins with the file's first page.
std::optional<Addr> bias_of(const ElfImage& image, Addr begin) noexcept {
  for (std::size_t i = 0; i < image.segment_count(); ++i)
    if (const ElfSegment s = image.segment(i); s.type == PT_LOAD && page_of(s.offset) == 0)
      return begin - page_of(s.address);
  return std::nullopt;
}

/// From the first page to the last byte in memory, as in the file.
AddrRange extent_of(const ElfImage& image) noexcept {
  AddrRange extent{~Addr{0}, 0};
  for (std::size_t i = 0; i < image.segment_count(); ++i)
    if (const ElfSegment s = image.segment(i); s.type == PT_LOAD && s.range().end > s.address)
      extent = {std::min(extent.begin, page_of(s.address)), std::max(extent.end, s.range().end)};
  return extent;
}

}  // namespace

std::unique_ptr<MappedObject> MappedObject::make(const Memory& memory, const Arch& arch, const Mapping& first,
                                                 std::uint64_t version) {
  std::unique_ptr<MappedObject> object(new MappedObject(memory, arch, first, version));
  return object->read_headers() ? std::move(object) : nullptr;
}

bool MappedObject::read_headers() noexcept {
  const Addr begin = first_.range.begin;
  std::array<std::byte, k_page_size> page;
  MemoryWindow window;
  auto head = ElfImage::parse_loaded(page, memory_.read(begin, page, window));
  if (head && head->segment_count() == 0) {
    parts_ = make_mapped<MemoryParts>(memory_, AddrRange{begin, begin + k_longest_object});
    if (!parts_) return false;
    head = ElfImage::parse_loaded(*parts_);
  }
  if (!head || head->machine() != arch_.elf_machine || head->big_endian() != arch_.big_endian ||
      head->is_64() != (arch_.word_size == 8))
    return false;
  const auto bias = bias_of(*head, begin);
  const AddrRange extent = extent_of(*head);
  // The header is where the lowest segment begins, or the image is none as parse_loaded() knows it.
  if (!bias || extent.empty() || *bias + extent.begin != begin) return false;
  bias_ = *bias;
  range_ = {begin, begin + extent.size()};
  if (range_.empty()) return false;
  parts_ = make_mapped<MemoryParts>(memory_, range_);
  if (!parts_) return false;
  const auto image = ElfImage::parse_loaded(*parts_);
  if (!image) return false;
  image_ = *image;
  for (std::size_t i = 0; i < image->segment_count() && segments_.size() < k_most_loaded; ++i) {
    const ElfSegment s = image->segment(i);
    if (s.type == PT_GNU_EH_FRAME) eh_frame_hdr_at_ = bias_ + s.address;
    if (s.type == PT_LOAD && s.memory_size != 0)
      segments_.push_back({{bias_ + s.address, bias_ + s.range().end}, (s.flags & PF_X) != 0});
  }
  return true;
}

bool MappedObject::covers(Addr at) const noexcept {
  return std::ranges::any_of(segments_, [&](const Segment& s) {
    return at >= page_of(s.range.begin) && at < page_of(s.range.end + k_page_size - 1);
  });
}

void MappedObject::read_module(Addr at, Module& out) noexcept {
  copy_frames();
  out = {};
  out.range = range_;
  out.load_bias = bias_;
  out.version = version_;
  out.path = first_.path.c_str();
  for (const Segment& s : segments_)
    if (s.executable && s.range.contains(at)) out.text = s.range;
  out.eh_frame_hdr = eh_frame_hdr_bytes_;
  out.eh_segment = eh_frame_bytes_;
}

/// As much of it as can be read from its beginning on.
Block MappedObject::copy(AddrRange range) const noexcept {
  const std::uint64_t size = std::min(range.size(), k_most_frames);
  if (size == 0) return {};
  Block block = Block::whole(static_cast<std::size_t>(size));
  if (block.empty()) return {};
  MemoryWindow window;
  const std::size_t got = memory_.read(range.begin, block.bytes(), window);
  if (got == block.bytes().size() || (got != 0 && block.resize(got))) return block;
  return {};
}

/// The header tells how long it is, and its table which FDE is the last: so no section table is needed, which is in the
/// file alone. Without a table .eh_frame may be all of its segment.
void MappedObject::copy_frames() noexcept {
  if (has_frames_ || eh_frame_hdr_at_ == 0) return;
  has_frames_ = true;
  AddrRange segment{};
  for (const Segment& s : segments_)
    if (s.range.contains(eh_frame_hdr_at_)) segment = s.range;
  if (segment.empty()) return;
  const Addr at = eh_frame_hdr_at_;
  const std::uint64_t size = segment.end - at;
  const Block head = copy({at, at + std::min<std::uint64_t>(size, k_max_eh_frame_hdr)});
  if (head.empty()) return;
  const auto parsed = parse_eh_frame_hdr({head.bytes(), at}, size, arch_);
  const FdeTable table = parsed ? parsed->table : FdeTable{};
  const Addr table_end = table.count == 0 ? at + head.bytes().size() : table.address + table.count * 2 * table.width;
  eh_frame_hdr_ = copy({at, table_end});
  eh_frame_hdr_bytes_ = {eh_frame_hdr_.bytes(), at};
  // What is broken is for whoever looks for a row to say.
  if (!parsed || parsed->eh_frame == 0) return;
  const Addr begin = parsed->eh_frame;
  AddrRange frames{begin, begin};
  for (const Segment& s : segments_)
    if (s.range.contains(begin)) frames.end = s.range.end;
  const Addr last = last_fde(table, arch_.big_endian, eh_frame_hdr_bytes_);
  MemoryWindow window;
  const auto length = frames.contains(last)
                          ? read_unsigned(memory_, window, last, 4, arch_.big_endian, "length of an FDE")
                          : Error{ErrorCode::no_info, last, "FDE"};
  // LSB 5.0 core, 10.6.1.1: what is longer says so by a length of all ones, and as long it may be.
  if (length && *length < 0xffff'fff0) frames.end = std::min(frames.end, last + 4 + *length);
  eh_frame_ = copy(frames);
  eh_frame_bytes_ = {eh_frame_.bytes(), begin};
}

const ModuleFiles* MappedObject::files(const TargetFiles& from) noexcept try {
  if (!has_looked_for_files_) {
    has_looked_for_files_ = true;
    if (auto opened = from.open(first_, &*image_)) files_ = std::move(*opened);
  }
  return files_.get();
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace jitunwind
