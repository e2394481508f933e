#include "jitunwind/sdk/targets/sample_target_p.h"

#include <algorithm>
#include <bit>

#include "jitunwind/sdk/targets/attach_error_p.h"

namespace jitunwind {
namespace {

AddrRange range_of(const Sample& sample) noexcept {
  const Addr begin = sample.stack_address;
  return {begin, begin + std::min<Addr>(sample.stack.size(), ~begin)};
}

/// How many bits its highest address has, of those with at most `most`.
unsigned bits_shown(const Sample& sample, unsigned most) noexcept {
  unsigned bits = 0;
  const auto show = [&](Addr at) {
    if (const auto of = static_cast<unsigned>(std::bit_width(at)); of <= most) bits = std::max(bits, of);
  };
  show(sample.stack_address);
  for (const Mapping& mapping : sample.mappings) show(mapping.range.end - 1);
  return bits;
}

/// The sample's CPU. Linux gives programs on AArch64 addresses of 36 to 48 bits, as it was built, or 52 to those that
/// ask (Documentation/arm64/memory.rst), and bits above sign. Addresses with 48 bits show that no bit below signs,
/// those with more that none of 52 does. Where there are none, and who gives the CPU does not say which bits do, all
/// bits count: signed addresses end a walk.
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

}  // namespace

Result<Target, TargetError> Target::OfSample::make(Sample sample, const TargetFolders& folders) {
  if (!sample.arch && !host_arch()) return no_table("The sample", 0, true);
  const Arch arch = arch_of(sample);
  return Target(std::make_unique<OfSample>(std::move(sample), arch, TargetFiles(folders.root)));
}

Target::OfSample::OfSample(Sample sample, const Arch& arch, TargetFiles files)
    : process_(sample.process),
      registers_(sample.registers),
      mappings_(std::move(sample.mappings)),
      files_(std::move(files)),
      stack_range_(range_of(sample)),
      stack_({{sample.stack_address, sample.stack}}),
      memory_(stack_, arch, mappings_, files_) {
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
  stack_ = BytesMemory({{sample.stack_address, sample.stack}});
  const bool are_as_before = sample.mappings.empty();
  Mappings mappings(std::move(sample.mappings));
  if (are_as_before || mappings == mappings_) {
    // A sample has none of the writable memory that lists are in.
    space_->forget_memory(before);
    space_->forget_memory(stack_range_);
    return std::nullopt;
  }
  mappings_ = mappings;
  space_->renew(std::move(mappings));
  return std::nullopt;
}

}  // namespace jitunwind
