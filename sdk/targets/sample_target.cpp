
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {
namespace {

AddrRange range_of(const Sample& sample) noexcept {
  const Addr begin = sample.stack_address;
  return {begin, begin + std::min<Addr>(sample.stack.size(), ~begin)};
}

/// Returns the bit width of the highest address that has no more than `most` bits.
unsigned bits_shown(const Sample& sample, unsigned most) noexcept {
  unsigned bits = 0;
  const auto show = [&](Addr at) {
    if (const auto of = static_cast<unsigned>(std::bit_width(at)); of <= most) bits = std::max(bits, of);
  };
  show(sample.stack_address);
  for (const Mapping& mapping : sample.mappings) show(mapping.range.end - 1);
  return bits;
}

/// Returns the sample's CPU. On AArch64 the bits above an address are signature bits. Linux gives programs addresses of
/// 36 to 48 bits, depending on the kernel's configuration, or of 52 bits on request (Documentation/arm64/memory.rst).
/// If the sample has an address of 48 bits, no bit below is a signature bit; if it has one of more bits, none of the
/// lower 52 is. If it has neither, and the caller does not give a mask, all bits count as the address, and a signed
/// address ends the walk.
Arch arch_of(const Sample& sample) noexcept {
  if (!sample.arch) return arch_of_this_machine();
  Arch arch = *sample.arch;
  const Arch* const table = find_arch(arch.elf_machine, arch.big_endian);
  if (arch.sign_state == k_no_reg || !table || arch.address_mask != table->address_mask) return arch;
  constexpr unsigned k_usual = 48, k_most = 52;
  const unsigned bits = bits_shown(sample, k_most);
  arch.address_mask = bits < k_usual ? ~Addr{0} : (Addr{1} << (bits == k_usual ? k_usual : k_most)) - 1;
  return arch;
}

bool is_of_build(const std::string& object, const std::string& build_id) noexcept {
  const auto image = ElfImage::parse(std::as_bytes(std::span(object)));
  return image && std::ranges::equal(image->build_id(), std::as_bytes(std::span(build_id)));
}

std::string kernels_object_of_this_machine() {
  const Mappings own = ProcessFolder::own().mappings();
  const Mapping* const kernels = own.kernels_object();
  if (!kernels) return {};
  return {reinterpret_cast<const char*>(kernels->range.begin), static_cast<std::size_t>(kernels->range.size())};
}

std::string kernels_object_in(const std::string& build_ids, const std::string& build_id) {
  constexpr std::uint64_t k_longest = std::uint64_t{1} << 20;
  const BuildIdPath name(std::as_bytes(std::span(build_id)));
  const std::string path = build_ids + "/.build-id/" + std::string(name.view()) + "/vdso";
  const auto file = make_mapped<FileParts>(path.c_str());
  if (!file || !file->is_open() || file->size() > k_longest) return {};
  const auto bytes = file->part(0, file->size());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<Target, TargetError> Target::OfSample::make(Sample sample, const TargetFolders& folders) {
  if (!sample.arch && !host_arch()) return no_table("The sample", 0, true);
  const Arch arch = arch_of(sample);
  return Target(std::make_unique<OfSample>(std::move(sample), arch, folders));
}

/// Finds the kernel's object (vdso), which no file of the target contains. This machine's object is used if it has the
/// mapping's build id, otherwise perf's copy.
void Target::OfSample::take_kernels_object() {
  const Mapping* const kernels = mappings_.kernels_object();
  Mapping mapping = kernels ? *kernels : Mapping();
  if (mapping == kernels_mapping_) return;
  kernels_mapping_ = std::move(mapping);
  const std::string& build_id = kernels_mapping_.build_id;
  kernels_object_ = build_id.empty() ? "" : kernels_object_of_this_machine();
  if (!is_of_build(kernels_object_, build_id) && !build_ids_.empty())
    kernels_object_ = kernels_object_in(build_ids_, build_id);
  if (!is_of_build(kernels_object_, build_id)) kernels_object_.clear();
}

BytesMemory Target::OfSample::memory_of(const Sample& sample) const {
  const auto object = std::as_bytes(std::span(kernels_object_));
  const AddrRange place = kernels_mapping_.range;
  const auto mapped = static_cast<std::size_t>(std::min<std::uint64_t>(object.size(), place.size()));
  return BytesMemory({{sample.stack_address, sample.stack}, {place.begin, object.first(mapped)}});
}

Target::OfSample::OfSample(Sample sample, const Arch& arch, const TargetFolders& folders)
    : process_(sample.process),
      registers_(sample.registers),
      mappings_(std::move(sample.mappings)),
      files_(folders.root),
      stack_range_(range_of(sample)),
      build_ids_(folders.build_ids),
      taken_((take_kernels_object(), memory_of(sample))),
      memory_(taken_, arch, mappings_, files_) {
  space_.emplace(arch, memory_, mappings_, files_);
  add({sample.thread, "", 0, true});
}

std::optional<TargetError> Target::OfSample::take_sample(Sample sample) {
  process_ = sample.process;
  registers_ = sample.registers;
  forget_threads();
  add({sample.thread, "", 0, true});
  const AddrRange before = stack_range_;
  stack_range_ = range_of(sample);
  const bool are_as_before = sample.mappings.empty();
  Mappings mappings(std::move(sample.mappings));
  if (are_as_before || mappings == mappings_) {
    taken_ = memory_of(sample);
    // A sample has no writable memory, and thus no lists.
    space_->forget_memory(before);
    space_->forget_memory(stack_range_);
    return std::nullopt;
  }
  mappings_ = mappings;
  take_kernels_object();
  taken_ = memory_of(sample);
  memory_.renew();
  space_->renew(std::move(mappings));
  return std::nullopt;
}

}  // namespace jitunwind
