#include "jitunwind/unwind_core/targets/mapped_modules.h"

#include <algorithm>
#include <new>

#include "jitunwind/unwind_core/modules/file_sections_p.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"

namespace jitunwind {
namespace {

bool is_of_file(const Mapping& mapping) noexcept { return mapping.is_of_file() || mapping.path == k_kernels_object; }

/// Whether an object may begin there: at the start of its file, or at a part of the file that does not continue the
/// mapping before. Objects may lie in the middle of files, for example in archives. The segments of an object follow
/// each other in its file, and the first page of a segment may be the last one of the segment before.
bool may_begin_object(const Mapping& mapping, const Mapping* before) noexcept {
  if (!mapping.readable || !is_of_file(mapping)) return false;
  if (mapping.offset == 0 || !before || !before->same_file(mapping)) return true;
  return mapping.offset < before->offset || mapping.offset - before->offset > before->range.size();
}

AddrRange common(AddrRange a, AddrRange b) noexcept { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

}  // namespace

MappedModules::MappedModules(const Memory& memory, const Arch& arch, const Mappings& mappings,
                             const TargetFiles& files) noexcept
    : memory_(memory), arch_(arch), mappings_(mappings), files_(files) {}
MappedModules::~MappedModules() = default;

MappedObject* MappedModules::object_at(std::size_t index) const {
  const Mapping& mapping = mappings_.all()[index];
  if (!may_begin_object(mapping, index == 0 ? nullptr : &mappings_.all()[index - 1])) return nullptr;
  const auto known = objects_.find(mapping.range.begin);
  if (known != objects_.end()) return known->second.get();
  auto made = MappedObject::make(memory_, arch_, mapping, next_version_++);
  if (made && !made->begins_at_first(mappings_)) made.reset();
  return objects_.emplace(mapping.range.begin, std::move(made)).first->second.get();
}

/// Finds the nearest object below that covers the address, and whose program headers place this part of the file there.
/// Its last segment may be anonymous, and so may code that a program has moved to larger pages. If a file is mapped
/// several times, only one object has the segment, and parts of another file may lie between two of them. An object may
/// claim to be longer than its mappings, and to be where others are.
MappedModules::Place MappedModules::look_for_place(Addr at) const {
  constexpr std::size_t k_most = 64;  // mappings of one object
  const std::size_t from = mappings_.index_of(at);
  if (from == Mappings::k_none) return {};
  const Mapping& wanted = mappings_.all()[from];
  if (!wanted.path.empty() && !is_of_file(wanted)) return {};
  AddrRange around = wanted.range;
  for (std::size_t i = from + 1; i-- != 0 && from - i < k_most;) {
    MappedObject* const object = object_at(i);
    if (object && object->covers(at, around) && object->is_mapped_by(wanted, at))
      return {object, around, wanted.executable};
  }
  return {nullptr, around, wanted.executable};
}

MappedModules::Place MappedModules::place_of(Addr at) const noexcept try {
  if (!last_.around.contains(at)) last_ = look_for_place(at);
  return last_;
} catch (const std::bad_alloc&) {
  return {};
}

MappedObject* MappedModules::object_of(const Module& module) const noexcept {
  const auto known = objects_.find(module.range.begin);
  return known == objects_.end() ? nullptr : known->second.get();
}

bool MappedModules::find(Addr at, Module& out) const noexcept {
  const Place place = place_of(at);
  if (!place.object) return false;
  place.object->read_module(at, out);
  out.text = common(out.text, place.around);
  return true;
}

bool MappedModules::find_version(Addr at, ModuleVersion& out) const noexcept {
  const Place place = place_of(at);
  if (!place.object) return false;
  out = {place.around, place.object->version(), false, place.is_executable && place.object->has_code(at)};
  return true;
}

void MappedModules::add_file_sections(Module& module) const noexcept {
  MappedObject* const object = object_of(module);
  const ModuleFiles* const files = object ? object->files(files_) : nullptr;
  if (!files) return;
  add_debug_frame(*files, module);
  if (!module.eh_frame_hdr.empty()) return;
  if (const CopiedSection* const section = files->eh_frame(); section && !section->bytes.empty())
    module.eh_frame = {section->bytes.bytes(), section->address + module.load_bias};
}

Result<bool> MappedModules::find_symbol(const Module& module, Addr at, NameReach reach, std::span<char> into,
                                        ProcedureName& out) const noexcept {
  MappedObject* const object = object_of(module);
  if (!object) return false;
  const ModuleFiles* const files = object->files(files_);
  return name_of(files ? files->symbols() : nullptr, object->image(), module, at, reach, into, out);
}

void MappedModules::renew() noexcept {
  last_ = {};
  std::erase_if(objects_, [&](const auto& known) {
    const Mapping* const there = mappings_.find(known.first);
    return !known.second || !there || *there != known.second->first();
  });
}

}  // namespace jitunwind
