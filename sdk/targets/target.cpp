#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/target.h"
#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/sdk/targets/target_space_p.h"
#include "jitunwind/unwind_core/memory/own/spare_blocks_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {

Target::Target(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;
Target::~Target() = default;

Result<Target, TargetError> Target::attach(pid_t process, Hold hold) { return Process::make(process, true, hold); }
Result<Target, TargetError> Target::of_traced(pid_t process) {
  return Process::make(process, false, Hold::while_attached);
}

Result<Target, TargetError> Target::open_core(const std::string& path, const TargetFolders& folders) {
  return Core::make(path, folders);
}
Result<Target, TargetError> Target::from_sample(Sample sample, const TargetFolders& folders) {
  return OfSample::make(std::move(sample), folders);
}

pid_t Target::process() const noexcept { return impl_->process(); }
const std::vector<TargetThread>& Target::threads() const noexcept { return impl_->threads(); }
Result<RegisterFile> Target::registers(const TargetThread& thread) const noexcept { return impl_->registers(thread); }
Result<Addr> Target::registered_list(std::size_t number) const noexcept {
  MemoryWindow window;
  return impl_->space().heads().list_head(number, window);
}
std::optional<SourceLine> Target::source_line(const Frame& frame) const {
  Module module;
  const Addr at = frame.address().lookup();
  return space().modules.find(at, module) ? std::nullopt : impl_->space().find_line(at);
}
std::vector<AddrRange> Target::jit_code() const { return impl_->space().jit_code(); }
const Arch& Target::arch() const noexcept { return impl_->space().arch(); }
const AddressSpace& Target::space() const noexcept { return impl_->space().space(); }
const Mappings& Target::mappings() const noexcept { return impl_->space().mappings(); }
void Target::let_go() noexcept { impl_->let_go(); }
std::uint64_t Target::stopped_nanoseconds() const noexcept { return impl_->stopped_nanoseconds(); }
Result<Done, TargetError> Target::renew() {
  if (auto failed = impl_->renew()) return std::move(*failed);
  return Done{};
}
Result<Done, TargetError> Target::renew(Sample sample) {
  if (auto failed = impl_->take_sample(std::move(sample))) return std::move(*failed);
  return Done{};
}

Walk Target::walk(const TargetThread& thread, Guesses guesses) const noexcept {
  const auto registers = impl_->registers(thread);
  Cursor cursor(space(), registers ? *registers : RegisterFile(), Cursor::Top::interrupted);
  cursor.set_guesses(guesses);
  return Walk(cursor);
}

namespace {

/// Tables of targets that have ended; they are zeroed.
constinit SpareBlocks spare_tables;

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

/// The tables are not constructed here, which would touch all of their pages: they begin as zeros, which is what
/// constant initialisation gives this process's own tables.
TargetRows::TargetRows(const Arch& arch, const MappedModules& modules) noexcept : versions_(modules) {
  static_assert(alignof(Tables) <= k_page_size);
  if (!local_space().row_cache) return;
  memory_ = spare_tables.take(sizeof(Tables));
  if (memory_.empty()) memory_ = Block(sizeof(Tables));
  if (memory_.empty()) return;
  tables_ = reinterpret_cast<Tables*>(memory_.bytes().data());
  cache_.emplace(RowCache{CompactLayout(arch), tables_->changes, versions_, tables_->rules});
}

/// The counters of changes are scattered. If one was used, all memory is returned to the kernel.
TargetRows::~TargetRows() {
  static_assert(sizeof(Tables) % k_page_size == 0 && sizeof(Tables) <= SpareBlocks::k_largest);
  if (!tables_) return;
  const bool is_spare = tables_->changes.is_new() && tables_->rules.clear();
  tables_->changes.release();
  if (is_spare) spare_tables.give(std::move(memory_));
}

void TargetRows::forget() noexcept {
  constexpr std::uint64_t k_all = std::uint64_t{1} << 63;
  if (keeps_any()) tables_->changes.count(0, k_all);
}

void TargetRows::forget(const AddrRange& code) noexcept {
  if (keeps_any() && !code.empty()) tables_->changes.count(code.begin, code.end);
}

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
