// Names and sections of a module, from its files and its memory together.
#pragma once

#include <optional>

#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

/// ModuleFinder::find_symbol(): by `symbols` of the files; where there are none by what `loaded`, the object in memory,
/// exports. Either may be null.
inline bool name_of(const SymbolIndex* symbols, const ElfImage* loaded, const Module& module, Addr at, NameReach reach,
                    std::span<char> into, ProcedureName& out) noexcept {
  const Addr at_in_file = at - module.load_bias;
  std::optional<FoundSymbol> found;
  if (symbols) {
    found = symbols->find(at_in_file, reach);
  } else if (loaded) {
    // The kernel's object has no file, and others may be deleted or replaced: what they export is in memory.
    const SymbolTable exported{loaded, loaded->dynamic_symbols(module.load_bias)};
    found = find_symbol(std::span(&exported, 1), at_in_file, reach);
  }
  if (!found) return false;
  write_name(found->name, into, out);
  out.start = found->start + module.load_bias;
  return true;
}

/// Precondition: the files stay for as long as the module is used.
inline void add_debug_frame(const ModuleFiles& files, Module& module) noexcept {
  const CopiedSection* const section = files.debug_frame();
  if (!section) return;
  module.debug_frame = {section->bytes.bytes(), 0};
  module.unread = section->unread;
}

}  // namespace jitunwind
