#include <elf.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {
namespace {

using Reason = TargetError::Reason;

/// Names a program that decompresses a file which is compressed as a whole; null if the format is not known.
const char* how_to_decompress(std::span<const std::byte> head) {
  struct Format {
    std::string_view magic;
    const char* command;
  };
  constexpr std::array k_formats{Format{"\xfd"
                                        "7zXZ",
                                        "xz -d"},
                                 Format{"\x1f\x8b", "gzip -d"}, Format{"\x28\xb5\x2f\xfd", "zstd -d"},
                                 Format{"\x04\x22\x4d\x18", "lz4 -d"}};
  for (const Format& format : k_formats)
    if (head.size() >= format.magic.size() && std::memcmp(head.data(), format.magic.data(), format.magic.size()) == 0)
      return format.command;
  return nullptr;
}

TargetError not_elf(const std::string& path) {
  std::array<std::byte, 8> head{};
  if (const auto file = make_mapped<FileParts>(path.c_str())) (void)file->copy(0, head);
  if (const char* const command = how_to_decompress(head))
    return {Reason::no_core, "'" + path + "' is compressed.", "Decompress it: " + std::string(command) + "."};
  return {Reason::no_core, "'" + path + "' is no ELF file, so no core file.",
          "The kernel says in /proc/sys/kernel/core_pattern where it puts them; gcore makes one of a process."};
}

TargetError cannot_open(const std::string& path, const Error& error) {
  switch (error.code) {
    case ErrorCode::bad_structure:
      return {
          Reason::no_core,
          "'" + path + "' is " + (error.at == ET_REL ? "an object file" : "a program or a library") + ", no core file.",
          "Give the core file first, and the program behind it."};
    case ErrorCode::bad_elf:
      return not_elf(path);
    case ErrorCode::truncated:
      if (error.at < sizeof(Elf64_Ehdr)) return not_elf(path);
      return {Reason::no_core,
              "'" + path + "' is cut off before the first registers: it has " + std::to_string(error.at) + " bytes.",
              "The disk may have been full, or ulimit -c too small."};
    default:
      return {Reason::no_such_file, "'" + path + "' cannot be read: " + why_unreadable(path) + ".", ""};
  }
}

/// Finds the mapping of the program's file in the core: the one that contains the program's entry point (AT_ENTRY) or
/// its program headers (AT_PHDR).
const Mapping* program_of(const CoreFile& core) {
  for (const std::uint64_t tag : {std::uint64_t{AT_ENTRY}, std::uint64_t{AT_PHDR}})
    if (const Mapping* const mapping = core.mappings().find(core.auxiliary(tag)); mapping && mapping->is_of_file())
      return mapping;
  return nullptr;
}

TargetError other_program(const CoreFile& core, const std::string& of, const std::string& path) {
  return {Reason::core_of_other_program,
          "The core file is of '" + of + "' (" + core.arguments() + "), and '" + path +
              "' is another program, or another build of it.",
          "Leave the program out, or give the file that has the same build id (readelf -n)."};
}

/// Compares a file with the program that the core has mapped, as far as the core allows it.
bool is_program(const CoreFile& core, const Arch& arch, const Mapping& mapping, FileParts& file) {
  const TargetFiles none = TargetFiles::none();
  const MappedModules objects(core.memory(), arch, core.mappings(), none);
  return may_be_loaded_from(file, objects.find_object(mapping.range.begin), "");
}

/// Makes the target read its program from that file.
std::optional<TargetError> take_program(CoreFile& core, const Arch& arch, const std::string& path, TargetFiles& files) {
  const auto file = make_mapped<FileParts>(path.c_str());
  if (!file || !file->is_open())
    return TargetError{Reason::no_such_file, "The program '" + path + "' cannot be read: " + why_unreadable(path) + ".",
                       ""};
  if (const Mapping* const mapping = program_of(core)) {
    if (!is_program(core, arch, *mapping, *file)) return other_program(core, mapping->path, path);
  } else if (const auto image = ElfImage::parse(*file); core.auxiliary(AT_PHDR) != 0 && image) {
    if (!core.add_program(*image, path)) return other_program(core, core.program(), path);
  }
  if (const Mapping* const mapping = program_of(core)) files.replace(mapping->path, path);
  return std::nullopt;
}

TargetError nothing_mapped(const std::string& path, Addr at) {
  std::array<char, 32> address;
  std::snprintf(address.data(), address.size(), "%#llx", static_cast<unsigned long long>(at));
  return {Reason::no_such_file, "In the core file '" + path + "' nothing is mapped at " + address.data() + ".",
          "readelf -l shows its segments."};
}

/// Sets which bits of code addresses are not signature bits. The signature ends with bit 54; bit 55 distinguishes the
/// kernel's addresses from those of programs (Arm Architecture Reference Manual, "Address generation when pointer
/// authentication is implemented"). Returns false if `bits` has no such bits.
bool set_signing_bits(std::uint64_t bits, Arch& arch) noexcept {
  constexpr std::uint64_t k_below_55 = (std::uint64_t{1} << 55) - 1, k_least = 0xffff'ffff;
  const std::uint64_t address = k_below_55 & ~bits;
  if (bits > k_below_55 || (address & (address + 1)) != 0 || address < k_least || bits == 0) return false;
  arch.address_mask = address;
  return true;
}

TargetError impossible_bits(const std::string& path, const Arch& arch, std::uint64_t bits) {
  std::array<char, 32> mask;
  std::snprintf(mask.data(), mask.size(), "%#llx", static_cast<unsigned long long>(bits));
  return {Reason::no_core,
          "The core file '" + path + "' says that " + mask.data() +
              " are the bits by which addresses of code are signed, " + "which is impossible on " + arch.name + ".",
          "readelf -n shows the note, NT_ARM_PAC_MASK."};
}

}  // namespace

std::string why_unreadable(const std::string& path) {
  const ReadableFile file = ReadableFile::regular(path.c_str());
  char byte = 0;
  const bool is_none = file.is_open() ? file.read(&byte, 1) >= 0 : errno == EINVAL;
  return is_none ? "it is no file with contents" : std::strerror(errno);
}

Result<Target, TargetError> Target::Core::make(const std::string& path, const TargetFolders& folders) {
  auto core = CoreFile::open(path.c_str());
  if (!core) return cannot_open(path, core.error());
  const Arch* const known = find_arch((*core)->machine(), (*core)->big_endian());
  // A file that names a CPU but has another CPU's word size is of neither.
  if (!known || (known->word_size == 8) != (*core)->is_64())
    return no_table("The core file '" + path + "'", (*core)->machine(), (*core)->is_64());
  Arch arch = *known;
  const auto bits = (*core)->signing_bits();
  if (bits && !set_signing_bits(*bits, arch)) return impossible_bits(path, arch, *bits);
  if (!bits && arch.sign_state != k_no_reg) arch.address_mask = ~Addr{0};  // unknown: Arch
  TargetFiles files(folders.root);
  if (!folders.program.empty())
    if (auto other = take_program(**core, arch, folders.program, files)) return std::move(*other);
  for (const auto& [at, file] : folders.files) {
    const Mapping* const mapping = (*core)->mappings().find(at);
    if (!mapping) return nothing_mapped(path, at);
    if (!make_mapped<FileParts>(file.c_str())->is_open())
      return TargetError{Reason::no_such_file, "'" + file + "' cannot be read: " + why_unreadable(file) + ".", ""};
    if (mapping->is_of_file())
      files.replace(mapping->path, file);
    else
      (*core)->name_mapping(at, file);
  }
  return Target(std::make_unique<Core>(std::move(*core), arch, std::move(files)));
}

Target::Core::Core(std::unique_ptr<CoreFile> core, const Arch& arch, TargetFiles files)
    : core_(std::move(core)), files_(std::move(files)), memory_(core_->memory(), arch, core_->mappings(), files_) {
  space_.emplace(arch, memory_, core_->mappings(), files_);
  for (const CoreThread& thread : core_->threads())
    add({thread.id, thread.id == core_->process() ? core_->program() : "", thread.signal, true,
         fault_address(thread.siginfo, arch)});
}

Result<RegisterFile> Target::Core::registers(const TargetThread& thread) const noexcept {
  const auto number = number_of(thread.id);
  if (!number)
    return Error{ErrorCode::invalid_argument, static_cast<Addr>(thread.id), "thread that is not in the core file"};
  const CoreThread& known = core_->threads()[*number];
  auto registers = registers_from_prstatus(known.registers, space_->arch());
  if (!registers) return registers;
  // The frame has no values for registers that the core lacks.
  (void)add_fp_registers(known.fp_registers, space_->arch(), *registers);
  known.vector_words.add_to(space_->arch(), *registers);
  return registers;
}

}  // namespace jitunwind
