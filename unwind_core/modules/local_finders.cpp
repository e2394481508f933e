// The finders of modules of this process, and what they add of the modules' files.
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "jitunwind/unwind_core/memory/copied.h"
#include "jitunwind/unwind_core/modules/file_sections_p.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {
namespace {

constinit const CopiedMemory k_of_objects;

/// The headers and notes that are in it, where linkers put them.
struct FirstPage {
  alignas(ElfW(Phdr)) std::array<std::byte, k_page_size> bytes;  // stay as they are

  bool copy(Addr begin) noexcept { return copy_memory(begin, bytes) == bytes.size(); }
  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const noexcept {
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return std::span(bytes).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }
  std::span<const ElfW(Phdr)> headers() const noexcept {
    const auto& head = *reinterpret_cast<const ElfW(Ehdr)*>(bytes.data());
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr))) return {};
    const auto found = part(head.e_phoff, std::uint64_t{head.e_phnum} * sizeof(ElfW(Phdr)));
    if (head.e_phoff % alignof(ElfW(Phdr)) != 0 || found.empty()) return {};
    return {reinterpret_cast<const ElfW(Phdr)*>(found.data()), head.e_phnum};
  }
};

/// Run-time address - address in the file.
std::optional<Addr> bias_of(std::span<const ElfW(Phdr)> headers, Addr begin) noexcept {
  Addr lowest = ~Addr{0};
  for (const ElfW(Phdr) & header : headers)
    if (header.p_type == PT_LOAD && header.p_memsz != 0) lowest = std::min(lowest, page_of(header.p_vaddr));
  return lowest == ~Addr{0} ? std::nullopt : std::optional(begin - lowest);
}

constinit const CopiedMemory k_copied_memory;

class ModulesWithFiles : public ModuleFinder {
 public:
  void add_file_sections(Module& module) const noexcept override {
    LocalObject object(module, to_copy());
    ModuleFilesLease lease = find_module_files(object);
    // Rows refer to these bytes: they must stay.
    if (!lease.is_kept()) return;
    add_debug_frame(*lease.files(), module);
    if (module.eh_frame_hdr.empty() || module.memory) add_eh_frame(*lease.files(), object, module);
    module.file_sections = lease.take();
  }
  void release_file_sections(Module& module) const noexcept override {
    ModuleFilesLease::give_back(std::exchange(module.file_sections, nullptr));
  }

  Result<bool> find_symbol(const Module& module, Addr at, NameReach reach, std::span<char> into,
                           ProcedureName& out) const noexcept override {
    LocalObject object(module, to_copy());
    const ModuleFilesLease lease = find_module_files(object);
    const SymbolIndex* const symbols = lease.files() ? lease.files()->symbols() : nullptr;
    return name_of(symbols, symbols ? nullptr : object.image(), module, at, reach, into, out);
  }

 private:
  /// A finder of the same modules that copies what it reads.
  virtual const ModuleFinder& to_copy() const noexcept = 0;

  static void add_eh_frame(const ModuleFiles& files, LocalObject& object, Module& module) noexcept {
    const CopiedSection* const section = files.eh_frame();
    if (!section || section->bytes.empty()) return;
    const std::size_t size = section->bytes.bytes().size();
    const Addr at = section->address + module.load_bias;
    if (module.memory)
      module.eh_frame = {section->bytes.bytes(), at};
    else if (const ElfImage* const loaded = object.image(); loaded && loaded->has_bytes_at(section->address, size))
      module.eh_frame = bytes_of({at, at + size});
  }
};

enum class Use { of_frames, of_addresses };

template <Use use>
class LocalModules final : public ModulesWithFiles {
 public:
  constexpr LocalModules() = default;
  [[gnu::hot]] bool find(Addr at, Module& out) const noexcept override {
    if constexpr (use == Use::of_frames) return find_module(at, out);
    if (!find_copied_module(at, out)) return false;
    out.memory = &k_copied_memory;
    return true;
  }
  [[gnu::hot]] const Module* find_lasting(Addr at) const noexcept override {
    const Module* const module = find_lasting_module(at);
    return module && module->text.contains(at) ? module : nullptr;
  }
  std::size_t copy_path(const Module& module, std::span<char> into) const noexcept override {
    return module.is_lasting ? ModuleFinder::copy_path(module, into) : copy_module_path(module.range.begin, into);
  }

 private:
  const ModuleFinder& to_copy() const noexcept override { return modules_of_addresses(); }
};

constinit std::atomic<PhdrIteration> listing{nullptr};

PhdrIteration listing_function() noexcept {
  const PhdrIteration function = listing.load(std::memory_order_acquire);
  return function ? function : &::dl_iterate_phdr;
}

template <Use use>
class ListedModules final : public ModulesWithFiles {
 public:
  constexpr ListedModules() = default;
  bool find(Addr at, Module& out) const noexcept override {
    if (!find_module_by(listing_function(), at, out)) return false;
    if constexpr (use == Use::of_addresses) out.memory = &k_copied_memory;
    return true;
  }
  std::size_t copy_path(const Module& module, std::span<char> into) const noexcept override {
    return copy_path_by(listing_function(), module.range.begin, into);
  }

 private:
  const ModuleFinder& to_copy() const noexcept override { return listed_modules_of_addresses(); }
};

constinit const LocalModules<Use::of_frames> k_modules;
constinit const LocalModules<Use::of_addresses> k_modules_of_addresses;
constinit const ListedModules<Use::of_frames> k_listed_modules;
constinit const ListedModules<Use::of_addresses> k_listed_modules_of_addresses;

}  // namespace

// Its page is gone from the stack before anything else is done.
[[gnu::noinline]] bool copy_module(Addr begin, Addr at, Module& out) noexcept {
  FirstPage page;
  if (!page.copy(begin)) return false;
  const auto headers = page.headers();
  const auto bias = bias_of(headers, begin);
  if (!bias || !read_module({*bias, "", headers}, at, out)) return false;
  out.path = "";
  out.memory = &k_of_objects;
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_NOTE) continue;
    const auto notes = page.part(*bias + header.p_vaddr - begin, header.p_filesz);
    constexpr bool k_big_endian = std::endian::native == std::endian::big;
    const auto id = find_note(notes, k_big_endian, header.p_align, ELF_NOTE_GNU, NT_GNU_BUILD_ID);
    keep_build_id(id, out);
    if (out.build_id_size != 0) break;
  }
  return true;
}

std::span<const std::byte> LocalObject::build_id() noexcept {
  if (module_.build_id_size != 0) return std::span(module_.build_id).first(module_.build_id_size);
  const ElfImage* const loaded = image();
  return loaded ? loaded->build_id() : std::span<const std::byte>{};
}

const ElfImage* LocalObject::image() noexcept {
  if (is_looked_at_) return image_ ? &*image_ : nullptr;
  is_looked_at_ = true;
  if ((memory_ = make_mapped<MemoryParts>(k_of_objects, module_.range)))
    if (const auto parsed = ElfImage::parse_loaded(*memory_); parsed && is_of_it(*parsed)) image_ = *parsed;
  return image_ ? &*image_ : nullptr;
}

/// False: the image is of an object that has taken the module's place.
bool LocalObject::is_of_it(const ElfImage& image) const noexcept {
  return module_.build_id_size == 0 ||
         std::ranges::equal(image.build_id(), std::span(module_.build_id).first(module_.build_id_size));
}

const char* LocalObject::path() noexcept {
  if (path_.empty()) path_ = PathBuffer::make();
  if (path_.empty()) return nullptr;
  const std::size_t length = modules_.copy_path(module_, path_.buffer());
  return length == 0 || length >= path_.buffer().size() ? nullptr : path_.text();
}

bool LocalObject::is_still_at(Addr place, const ObjectIdentity& identity) noexcept {
  Module module;
  if (!modules_.find(place, module)) return false;
  LocalObject object(module, modules_);
  return identity_of(object) == identity;
}

[[gnu::hot]] const ModuleFinder& local_modules() noexcept { return k_modules; }
[[gnu::hot]] const ModuleFinder& modules_of_addresses() noexcept { return k_modules_of_addresses; }
[[gnu::hot]] const ModuleFinder& listed_modules() noexcept { return k_listed_modules; }
[[gnu::hot]] const ModuleFinder& listed_modules_of_addresses() noexcept { return k_listed_modules_of_addresses; }
void list_modules_by(PhdrIteration function) noexcept {
  listing.store(function == &::dl_iterate_phdr ? nullptr : function, std::memory_order_release);
}
[[gnu::hot]] bool has_listed_modules() noexcept { return listing.load(std::memory_order_acquire) != nullptr; }

}  // namespace jitunwind
