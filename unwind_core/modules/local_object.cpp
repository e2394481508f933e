#include "jitunwind/unwind_core/modules/local_object_p.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "jitunwind/unwind_core/memory/copied.h"
#include "jitunwind/unwind_core/modules/loaded_object_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

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

}  // namespace jitunwind
