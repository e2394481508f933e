#include "jitunwind/adapters/gdb_jit/code_files_p.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <string_view>
#include <utility>

#include "jitunwind/unwind_core/emit/elf_writer_internal.h"

namespace jitunwind {
namespace {

using Procedures = std::span<const FileProcedure>;

/// The procedures of one section.
struct Run {
  AddrRange code{};
  std::size_t procedures = 0;
};

std::vector<Run> find_runs(Procedures sorted) {
  std::vector<Run> runs;
  for (const auto& [procedure, joined] : sorted) {
    if (runs.empty() || !joined) runs.push_back({procedure->code, 0});
    runs.back().code.end = std::max(runs.back().code.end, procedure->code.end);
    ++runs.back().procedures;
  }
  return runs;
}

constexpr char k_section_name_bytes[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
constexpr std::string_view k_section_names{k_section_name_bytes, sizeof k_section_name_bytes};  // includes the last NUL
constexpr std::size_t name_at(std::string_view name) { return k_section_names.find(name); }

struct Place {
  std::size_t offset = 0;
  std::size_t size = 0;
  std::size_t end() const noexcept { return offset + size; }
};

/// The places of all parts: header, sections with contents, section headers.
struct Layout {
  explicit Layout(const Arch& arch) noexcept : sizes(arch) {}

  ElfSizes sizes;
  std::vector<Run> runs;
  Place frames, symbols, strings, section_names, headers;
  std::size_t sections() const noexcept { return 1 + runs.size() + 4; }
};

constexpr std::size_t aligned(std::size_t offset) noexcept { return (offset + 7) & ~std::size_t{7}; }

Layout lay_out(const Arch& arch, Procedures sorted) {
  Layout layout(arch);
  layout.runs = find_runs(sorted);
  layout.frames = {layout.sizes.header, 4};  // the end mark
  layout.symbols.size = layout.sizes.symbol;
  layout.strings.size = 1;
  for (const auto& [procedure, joined] : sorted) {
    layout.frames.size += procedure->cfi.size();
    if (procedure->name.empty()) continue;
    layout.symbols.size += layout.sizes.symbol;
    layout.strings.size += procedure->name.size() + 1;
  }
  layout.symbols.offset = aligned(layout.frames.end());
  layout.strings.offset = layout.symbols.end();
  layout.section_names = {layout.strings.end(), k_section_names.size()};
  layout.headers = {aligned(layout.section_names.end()), layout.sections() * layout.sizes.section_header};
  return layout;
}

class FileWriter {
 public:
  FileWriter(const Arch& arch, const Layout& layout, std::span<std::byte> into) noexcept
      : layout_(layout), elf_(arch, into) {}

  void write(Procedures sorted) {
    ByteWriter& out = elf_.out();
    elf_.head({.type = ET_EXEC, .sections_at = layout_.headers.offset, .sections = layout_.sections()});
    for (const auto& [procedure, joined] : sorted) out.bytes(procedure->cfi);
    out.u32(0);
    out.pad(8, 0);
    symbols(sorted);
    out.u8(0);
    for (const auto& [procedure, joined] : sorted) {
      if (procedure->name.empty()) continue;
      elf_.text(procedure->name);
      out.u8(0);
    }
    elf_.text(k_section_names);
    out.pad(8, 0);
    section_headers();
  }

 private:
  void symbols(Procedures sorted) noexcept {
    elf_.symbol({});
    std::uint32_t name = 1;
    std::size_t next = 0;
    for (std::size_t run = 0; run < layout_.runs.size(); ++run) {
      for (std::size_t i = 0; i < layout_.runs[run].procedures; ++i) {
        const DebuggedProcedure& procedure = *sorted[next++].procedure;
        if (procedure.name.empty()) continue;
        const auto section = static_cast<std::uint16_t>(1 + run);
        elf_.symbol({procedure.code.begin, procedure.code.size(), name, section, STT_FUNC, STB_GLOBAL});
        name += static_cast<std::uint32_t>(procedure.name.size() + 1);
      }
    }
  }

  void section(std::string_view name, std::uint32_t type, std::uint64_t flags, Addr address, Place place,
               std::uint32_t link = 0, std::uint32_t first_global = 0, std::size_t entry_size = 0) noexcept {
    const auto name_offset = static_cast<std::uint32_t>(name.empty() ? 0 : name_at(name));
    elf_.section(
        {name_offset, type, flags, address, place.offset, place.size, link, first_global, /*alignment*/ 1, entry_size});
  }

  void section_headers() noexcept {
    section({}, SHT_NULL, 0, 0, {});
    for (const Run& run : layout_.runs)
      section(".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, run.code.begin,
              {layout_.sizes.header, static_cast<std::size_t>(run.code.size())});
    // The section is not SHF_ALLOC, because its address would be that of every other file's: GDB's time for sorting
    // sections by address would grow with the square of their number. Its pointers are absolute and need no address.
    section(".eh_frame", SHT_PROGBITS, 0, 0, layout_.frames);
    const auto strings = static_cast<unsigned>(layout_.sections() - 2);
    section(".symtab", SHT_SYMTAB, 0, 0, layout_.symbols, strings, 1, layout_.sizes.symbol);
    section(".strtab", SHT_STRTAB, 0, 0, layout_.strings);
    section(".shstrtab", SHT_STRTAB, 0, 0, layout_.section_names);
  }

  const Layout& layout_;
  ElfWriter elf_;
};

}  // namespace

std::vector<std::byte> make_symbol_file(const Arch& arch, std::span<const FileProcedure> procedures) {
  const Layout layout = lay_out(arch, procedures);
  std::vector<std::byte> file(layout.headers.end());
  FileWriter(arch, layout, file).write(procedures);
  return file;
}

unsigned CodeFiles::size_of(const File& file) noexcept {
  return std::min(static_cast<unsigned>(std::bit_width(file.procedures.size())), k_sizes) - 1;
}

void CodeFiles::close() noexcept {
  // Assignment frees the memory, which clear() would keep and lose when the library is unloaded.
  for (Files& files : files_) files = Files();
  where_ = decltype(where_)();
  by_address_.clear();
  withdrawn_ = decltype(withdrawn_)();
  interface_.close();
}

/// Takes smaller files first, as long as the merged file is not larger than a full one.
CodeFiles::Files CodeFiles::take_mergeable(std::size_t count) {
  Files taken;
  for (unsigned size = 0; size + 1 < k_sizes && (std::size_t{1} << size) <= count; ++size) {
    Files& candidates = files_[size];
    while (!candidates.empty() && count + candidates.back()->procedures.size() <= k_full) {
      count += candidates.back()->procedures.size();
      taken.push_back(std::move(candidates.back()));
      candidates.pop_back();
    }
  }
  return taken;
}

/// Records that the procedures are in this file.
void CodeFiles::enter(File& file) {
  // Neighbours become adjacent, so that one section covers each run of them.
  std::sort(file.procedures.begin(), file.procedures.end(),
            [](const auto& a, const auto& b) { return key(*a) < key(*b); });
  for (const auto& procedure : file.procedures) {
    where_[procedure->info] = &file;
    by_address_[key(*procedure)] = &file;
  }
}

bool CodeFiles::are_joined(const DebuggedProcedure& procedure, const DebuggedProcedure& next) const {
  if (next.code.begin > procedure.code.end + k_widest_gap) return false;
  return by_address_.upper_bound(key(procedure))->first == key(next);
}

/// Marks the file whose section extends over a new procedure of another file, and over those after it.
void CodeFiles::mark_file_around(const DebuggedProcedure& procedure) {
  const auto here = by_address_.find(key(procedure));
  if (here == by_address_.begin() || std::prev(here)->second == here->second) return;
  const auto after =
      std::find_if(here, by_address_.end(), [&](const auto& other) { return other.second != here->second; });
  File* const before = std::prev(here)->second;
  if (after != by_address_.end() && after->second == before) before->is_outdated = true;
}

void CodeFiles::publish(std::unique_ptr<File> file) {
  if (file->procedures.empty()) return;
  std::vector<FileProcedure> procedures;
  for (const auto& procedure : file->procedures) {
    const bool joined = !procedures.empty() && are_joined(*procedures.back().procedure, *procedure);
    procedures.push_back({procedure.get(), joined});
  }
  file->bytes = make_symbol_file(arch_, procedures);
  File& published = *file;
  files_[size_of(*file)].push_back(std::move(file));
  published.entry.symfile_addr = published.bytes.data();
  published.entry.symfile_size = published.bytes.size();
  interface_.add(published.entry);
}

/// GDB learns the new file before it drops the others, so that the remaining procedures are always known: its
/// breakpoints by name stay in the code, which other threads run meanwhile. Other debuggers drop the old files first.
/// LLDB requires this: unloading a file removes files that were loaded at the same addresses later.
void CodeFiles::replace(Files old, std::unique_ptr<File> by) {
  if (tracer_.kind() != TracerKind::gdb) old.clear();
  publish(std::move(by));
}

void CodeFiles::add(std::vector<std::unique_ptr<DebuggedProcedure>> procedures) {
  for (auto& [info, procedure] : withdrawn_)
    if (still_registered(procedure->key)) procedures.push_back(std::move(procedure));
  withdrawn_.clear();
  std::sort(procedures.begin(), procedures.end(), [](const auto& a, const auto& b) { return key(*a) < key(*b); });
  for (std::size_t at = 0; at < procedures.size();) {
    const std::size_t count = std::min(procedures.size() - at, k_full);
    auto file = std::make_unique<File>(interface_);
    const auto first = procedures.begin() + static_cast<std::ptrdiff_t>(at);
    std::move(first, first + static_cast<std::ptrdiff_t>(count), std::back_inserter(file->procedures));
    at += count;
    add_file(std::move(file));
  }
}

void CodeFiles::add_file(std::unique_ptr<File> file) {
  Files merged = take_mergeable(file->procedures.size());
  enter(*file);
  for (const auto& procedure : file->procedures) mark_file_around(*procedure);
  for (const auto& other : merged)
    std::move(other->procedures.begin(), other->procedures.end(), std::back_inserter(file->procedures));
  enter(*file);
  rewrite_marked(false);
  replace(std::move(merged), std::move(file));
}

bool CodeFiles::mark_files_of(std::span<unw_dyn_info_t* const> procedures) {
  bool marked = false;
  for (const unw_dyn_info_t* info : procedures) {
    const auto found = where_.find(info);
    if (found == where_.end()) continue;
    found->second->is_outdated = marked = true;
  }
  return marked;
}

bool CodeFiles::mark_files_of_gone() {
  bool marked = false;
  for (Files& files : files_) {
    for (const auto& file : files) {
      file->is_outdated = std::any_of(file->procedures.begin(), file->procedures.end(),
                                      [](const auto& procedure) { return !still_registered(procedure->key); });
      marked = marked || file->is_outdated;
    }
  }
  return marked;
}

void CodeFiles::rewrite_marked(bool withdraw) {
  Files outdated;
  for (Files& files : files_) {
    const auto rest = std::stable_partition(files.begin(), files.end(), [](const auto& f) { return !f->is_outdated; });
    std::move(rest, files.end(), std::back_inserter(outdated));
    files.erase(rest, files.end());
  }
  for (auto& old : outdated) {
    auto file = std::make_unique<File>(interface_);
    for (auto& procedure : old->procedures) {
      const bool stays = still_registered(procedure->key);
      if (withdraw || !stays) {
        where_.erase(procedure->info);
        by_address_.erase(key(*procedure));
      }
      if (!stays) continue;
      if (withdraw) {
        withdrawn_[procedure->info] = std::move(procedure);
      } else {
        file->procedures.push_back(std::move(procedure));
      }
    }
    enter(*file);
    Files replaced;
    replaced.push_back(std::move(old));
    replace(std::move(replaced), std::move(file));
  }
}

std::size_t CodeFiles::files() const noexcept {
  std::size_t count = 0;
  for (const Files& files : files_) count += files.size();
  return count;
}

std::size_t CodeFiles::bytes() const noexcept {
  std::size_t count = 0;
  for (const Files& files : files_)
    for (const auto& file : files) count += file->bytes.size();
  return count;
}

}  // namespace jitunwind
