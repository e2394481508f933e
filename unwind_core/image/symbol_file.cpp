#include "jitunwind/unwind_core/image/symbol_file.h"

#include <elf.h>

#include <algorithm>

#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

struct SymbolFile::Opened {
  Opened(Mapped<ModuleFiles> opened, Addr first) noexcept : files(std::move(opened)), first_address(first) {}

  Mapped<ModuleFiles> files;
  Addr first_address;
};

SymbolFile::~SymbolFile() { (void)Mapped<Opened>(opened_); }

Result<SymbolFile> SymbolFile::open(const char* path) noexcept {
  auto files = ModuleFiles::open(path, nullptr);
  if (!files) return files.error();
  const ModuleFiles::BothFiles again = (*files)->open_again();
  if (!again.file.image) return Error{ErrorCode::io, 0, "file has changed"};
  Addr lowest = ~Addr{0};
  for (std::size_t i = 0; i < again.file.image->segment_count(); ++i)
    if (const ElfSegment segment = again.file.image->segment(i); segment.type == PT_LOAD)
      lowest = std::min(lowest, segment.address);
  if (lowest == ~Addr{0}) return Error{ErrorCode::bad_elf, 0, "file without segments"};
  auto opened = make_mapped<Opened>(std::move(*files), page_of(lowest));
  if (!opened) return Error{ErrorCode::out_of_memory, 0, "symbols of a file"};
  return SymbolFile(opened.release());
}

Addr SymbolFile::first_address() const noexcept { return opened_->first_address; }

Found SymbolFile::find(Addr at, std::span<char> into, ProcedureName& out) const noexcept {
  const auto found = opened_->files->find_symbol(at);
  if (!found) return false;
  write_name(found->name, into, out);
  out.start = found->start;
  return true;
}

}  // namespace jitunwind
