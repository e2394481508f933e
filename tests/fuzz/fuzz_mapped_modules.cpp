// Input: mappings and ELF headers. Two files have each: a byte, the page of the file that its header is on; a byte,
// the number of its segments; 8 bytes for each, of Segment. Then 3 bytes for each mapping, of take_mappings(). Checked:
// the owner of an address follows from these alone, whatever was asked before; an object has no part of a file that its
// headers do not place there; and an answer holds for the whole range that it is given for.
#include <elf.h>

#include <vector>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"
#include "tests/fuzz/walk_target.h"
#include "tests/support/elf_builder.h"

using namespace jitunwind;

namespace {

constexpr std::size_t k_files = 2, k_most_segments = 8, k_most_mappings = 24, k_pages = 16;
constexpr Addr k_first_page = 0x400;

struct File {
  std::uint64_t begin = 0;  ///< of its header
  std::vector<test::BuiltSegment> segments{};
  std::vector<std::byte> bytes{};
};

test::BuiltSegment take_segment(ByteReader& reader) {
  constexpr std::array<std::uint32_t, 4> k_types{PT_LOAD, PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME};
  const std::uint8_t kind = reader.u8();
  test::BuiltSegment segment{.type = k_types[kind & 3], .flags = kind >> 2 & 7u};
  segment.offset = reader.u16();
  const Addr within = kind & 32 ? 0 : segment.offset % k_page_size;
  segment.address = reader.u8() * k_page_size + within;
  segment.file_size = reader.u16();
  segment.memory_size = reader.u16();
  return segment;
}

File take_file(ByteReader& reader) {
  File file;
  file.begin = reader.u8() % 8 * k_page_size;
  const std::size_t count = reader.u8() % (k_most_segments + 1);
  test::ElfBuilder elf(true, false);
  for (std::size_t i = 0; i < count; ++i) elf.segments.push_back(take_segment(reader));
  file.segments = elf.segments;
  file.bytes.resize(file.begin);
  const auto image = elf.build();
  file.bytes.insert(file.bytes.end(), image.begin(), image.end());
  file.bytes.resize(file.begin + k_pages * k_page_size);
  return file;
}

/// Each mapping has a page; the number of pages less one, the rights, and the file, where 0 is none; and the page of
/// the file.
std::vector<Mapping> take_mappings(ByteReader& reader) {
  std::vector<Mapping> mappings;
  while (reader.remaining() >= 3 && mappings.size() < k_most_mappings) {
    Mapping mapping;
    mapping.range.begin = (k_first_page + reader.u8()) * k_page_size;
    const std::uint8_t what = reader.u8();
    mapping.range.end = mapping.range.begin + (what % 8 + 1) * k_page_size;
    mapping.readable = (what & 8) != 0;
    mapping.writable = (what & 16) != 0;
    mapping.executable = (what & 32) != 0;
    mapping.offset = reader.u8() % k_pages * k_page_size;
    if (const unsigned file = what >> 6; file != 0 && file <= k_files) mapping.path = file == 1 ? "/0" : "/1";
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

struct Process {
  std::array<File, k_files> files{};
  Mappings mappings{};

  const File* file_of(const Mapping& mapping) const {
    return mapping.path.empty() ? nullptr : &files[static_cast<std::size_t>(mapping.path[1] - '0')];
  }
  std::vector<BytesMemory::Piece> pieces() const {
    std::vector<BytesMemory::Piece> pieces;
    for (const Mapping& mapping : mappings.all())
      if (const File* const file = file_of(mapping); file && mapping.offset < file->bytes.size()) {
        const auto from = std::span(file->bytes).subspan(static_cast<std::size_t>(mapping.offset));
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(from.size(), mapping.range.size()));
        pieces.push_back({mapping.range.begin, from.first(size)});
      }
    return pieces;
  }
  /// Returns whether a segment of the file is loaded at `at` from where that is mapped, or is there and in no file.
  bool may_have(const Module& module, Addr at) const {
    const Mapping& mapping = *mappings.find(at);
    const File& file = files[static_cast<std::size_t>(module.path[1] - '0')];
    if (!mapping.path.empty() && mapping.path != module.path) return false;
    return std::ranges::any_of(file.segments, [&](const test::BuiltSegment& s) {
      const Addr begin = module.load_bias + s.address;
      const AddrRange pages{page_of(begin), page_of(begin + s.memory_size + k_page_size - 1)};
      const std::uint64_t offset = file.begin + s.offset + (at - begin);
      return s.type == PT_LOAD && pages.contains(at) &&
             (mapping.path.empty() || mapping.offset + (at - mapping.range.begin) == offset);
    });
  }
};

struct Answer {
  bool is_found = false;
  AddrRange range{}, text{};
  Addr bias = 0;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer ask(const MappedModules& modules, const Process& process, Addr at) {
  Module module;
  ModuleVersion version;
  if (!modules.find(at, module)) {
    fuzz::check(!modules.find_version(at, version), "what is no module has no version");
    return {};
  }
  fuzz::check(process.may_have(module, at), "the program headers have this part of the file there");
  fuzz::check(modules.find_version(at, version) && version.range.contains(at) && version.version == module.version,
              "a module has a version");
  for (const Addr other : {version.range.begin, version.range.end - 1}) {
    Module there;
    fuzz::check(modules.find(other, there) && there.version == module.version, "it holds for all around");
  }
  return {true, module.range, module.text, module.load_bias};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteReader reader(std::as_bytes(std::span(data, size)), false);
  Process process;
  for (File& file : process.files) file = take_file(reader);
  if (!reader.ok()) return 0;
  process.mappings = Mappings(take_mappings(reader));
  const BytesMemory bytes(process.pieces());
  const fuzz::MeteredMemory memory(bytes);
  const TargetFiles files = TargetFiles::none();
  MappedModules modules(memory, arch::x86_64, process.mappings, files);
  const MappedModules backwards(memory, arch::x86_64, process.mappings, files);
  std::vector<Addr> places;
  for (const Mapping& mapping : process.mappings.all())
    for (Addr at = mapping.range.begin; at < mapping.range.end; at += k_page_size) places.push_back(at + 0x7ff);
  std::vector<Answer> answers;
  for (const Addr at : places) answers.push_back(ask(modules, process, at));
  for (std::size_t i = places.size(); i-- != 0;)
    fuzz::check(ask(backwards, process, places[i]) == answers[i], "the order of questions changes nothing");
  modules.for_each_object([&](MappedObject& object) { (void)object.image(); });
  modules.renew();
  for (std::size_t i = 0; i < places.size(); ++i)
    fuzz::check(ask(modules, process, places[i]) == answers[i], "the same again gives the same");
  fuzz::check(memory.reads < 100'000, "the work is bounded");
  return 0;
}
