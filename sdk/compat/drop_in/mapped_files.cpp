// Functions that libunwind 1.6's own libunwind-ptrace.so.0 and libunwind-coredump.so.0 import from
// libunwind-x86_64.so.8, which needs libjitunwind for them, as libunwind.so.8 does not: they find the file at an
// address of another process, and the table of its procedures.
#include <sys/mman.h>
#include <sys/stat.h>

#include <elf.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "jitunwind/sdk/compat/drop_in/release_1_6_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/targets/mappings.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace {

using jitunwind::Addr;
using jitunwind::AddrRange;
using jitunwind::ElfImage;
using jitunwind::ElfSegment;
using jitunwind::FilePath;
using jitunwind::Mapping;
using jitunwind::ReadableFile;
using jitunwind::release_1_6::FileTables;
using jitunwind::release_1_6::MappedFile;

constexpr std::size_t k_longest_path = 4096;  // PATH_MAX

std::optional<Mapping> mapping_at(pid_t process, Addr at) {
  const auto mappings = jitunwind::ProcessFolder(process).mappings();
  const Mapping* const found = mappings.find(at);
  return found ? std::optional(*found) : std::nullopt;
}

bool map_file(const FilePath& path, MappedFile& out) noexcept {
  const ReadableFile file = ReadableFile::regular(path);
  if (!file.is_open()) return false;
  struct stat status;
  void* bytes = MAP_FAILED;
  if (::fstat(file.number(), &status) == 0 && status.st_size > 0)
    bytes = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (bytes == MAP_FAILED) return false;
  out = {bytes, static_cast<std::size_t>(status.st_size)};
  return true;
}

std::span<const std::byte> bytes_of(const MappedFile& file) noexcept {
  return {static_cast<const std::byte*>(file.bytes), file.bytes ? file.size : 0};
}

/// Maps the file by the process's own root, which may be another one.
bool map_file_of(pid_t process, const char* path, std::span<char> path_out, MappedFile& out) noexcept {
  char root[32];
  std::snprintf(root, sizeof root, "/proc/%d/root", process);
  std::snprintf(path_out.data(), path_out.size(), "%s%s", root, path);
  if (!map_file({path, root}, out)) {
    std::snprintf(path_out.data(), path_out.size(), "%s", path);
    if (!map_file(path, out)) return false;
  }
  if (ElfImage::parse(bytes_of(out))) return true;
  ::munmap(out.bytes, out.size);
  out = {};
  return false;
}

template <class Use>
void for_each_segment(const ElfImage& image, Use use) noexcept {
  for (std::size_t i = 0; i < image.segment_count(); ++i) use(image.segment(i));
}

/// The bias: run-time address minus address in the file; the caller says that `begin` is at `offset` in the file. Code
/// is executable. If the offset leads to no executable segment it is unknown (libunwind-coredump.so.0 always gives 0),
/// and `begin` is the begin of the executable segment.
std::optional<Addr> load_bias(const ElfImage& image, Addr begin, std::uint64_t offset, Addr code) noexcept {
  std::optional<Addr> by_offset, by_begin;
  const std::uint64_t at = offset + (code - begin);
  for_each_segment(image, [&](const ElfSegment& s) {
    if (s.type != PT_LOAD || (s.flags & PF_X) == 0) return;
    if (at >= s.offset && at - s.offset < s.file_size) by_offset = code - (s.address + (at - s.offset));
    if (!by_begin) by_begin = begin - jitunwind::page_of(s.address);
  });
  return by_offset ? by_offset : by_begin;
}

AddrRange loaded_range(const ElfImage& image, Addr bias) noexcept {
  AddrRange range{~Addr{0}, 0};
  for_each_segment(image, [&](const ElfSegment& s) {
    if (s.type != PT_LOAD) return;
    range.begin = std::min(range.begin, s.address);
    range.end = std::max(range.end, s.range().end);
  });
  return {range.begin + bias, range.end + bias};
}

/// The table of .eh_frame_hdr, if it has the only form that UNW_INFO_FORMAT_REMOTE_TABLE can express, which linkers
/// make.
std::optional<jitunwind::FdeTable> table_of(const ElfImage& image, Addr bias) noexcept {
  std::optional<jitunwind::FdeTable> found;
  for_each_segment(image, [&](const ElfSegment& s) {
    if (s.type != PT_GNU_EH_FRAME) return;
    const auto hdr =
        parse_eh_frame_hdr({image.at_address(s.address, s.file_size), s.address + bias}, jitunwind::target_arch());
    if (!hdr) return;
    const jitunwind::FdeTable& table = hdr->table;
    const bool has_form = table.width == 4 && table.sign_extend && !table.self_relative;
    if (table.count != 0 && has_form && table.start_base == table.fde_base) found = table;
  });
  return found;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

/// Maps the ELF file that a process has mapped at `ip`. Returns 0 with `begin` of that mapping, its `offset` in the
/// file, and the file's path, truncated to fit; -UNW_ENOINFO: there is no such file.
int UNW_ARCH_OBJ(get_elf_image)(MappedFile* file, pid_t process, unw_word_t ip, unsigned long* begin,
                                unsigned long* offset, char* path, std::size_t path_size) {
  *file = {};
  std::optional<Mapping> mapping;
  std::string shown;
  try {
    mapping = mapping_at(process, ip);
    if (mapping) shown = mapping->shown_path();
  } catch (const std::bad_alloc&) {
    return -UNW_ENOMEM;
  }
  if (!mapping || !mapping->is_of_file()) return -UNW_ENOINFO;
  char opened[k_longest_path + 32];
  if (!map_file_of(process, shown.c_str(), opened, *file)) return -UNW_ENOINFO;
  *begin = mapping->range.begin;
  *offset = mapping->offset;
  if (path && path_size != 0) std::snprintf(path, path_size, "%s", opened);
  return UNW_ESUCCESS;
}

void UNW_ARCH_OBJ(get_exe_image_path)(char* path) { std::strcpy(path, "/proc/self/exe"); }

/// Fills in the table of tables->file, which is mapped from `begin` on and holds the code at `ip`. Returns 1, or
/// -UNW_ENOINFO: it has none.
int UNW_OBJ(dwarf_find_unwind_table)(FileTables* tables, unw_addr_space_t, char*, unw_word_t begin, unw_word_t offset,
                                     unw_word_t ip) {
  const auto image = ElfImage::parse(bytes_of(tables->file));
  if (!image) return -UNW_ENOINFO;
  const auto bias = load_bias(*image, begin, offset, ip);
  if (!bias) return -UNW_ENOINFO;
  const auto table = table_of(*image, *bias);
  if (!table) return -UNW_ENOINFO;
  const AddrRange range = loaded_range(*image, *bias);
  jitunwind::release_1_6::DynInfo& info = tables->eh_frame;
  info = {};
  info.start_ip = range.begin;
  info.end_ip = range.end;
  info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  info.u.rti.segbase = table->start_base;
  info.u.rti.table_len = table->count * 2 * table->width / sizeof(unw_word_t);
  info.u.rti.table_data = table->address;
  return 1;
}
JITUNWIND_LOCAL(dwarf_find_unwind_table)

#pragma GCC visibility pop
}
