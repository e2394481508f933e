// The files of the modules of this process, opened once and kept.
#pragma once

#include "unwind_core/image/module_files_p.h"

namespace jitunwind {

/// Files of one module: in the cache, or, where that is full, for as long as this lives.
struct ModuleFilesLease {
  const ModuleFiles* files = nullptr;  ///< null: there is no such file, or it is not the one loaded
  Mapped<ModuleFiles> own;             ///< empty when cached: then they stay for the rest of the process
};

/// What is in memory decides, not where it is: files are kept under the build id that the loaded object carries in its
/// PT_NOTE segment and are compared with it at every look-up, so that dlclose and dlopen of something else at the same
/// address cannot give old answers, and the same library anywhere else gives the same files. An object without build id
/// goes by device, inode, size and times of the file that its path names now, and by a comparison of its program
/// headers and first pages with it. Failures are not kept.
///
/// Nothing is ever removed: what one thread finds, another cannot take away. 4096 files have room, each some pages of
/// memory and a mapping of the file; what comes later is opened anew for every look-up.
///
/// Thread-safe, signal-safe, without locks. `loaded` null: not known, the path is believed.
ModuleFilesLease find_module_files(const char* path, const ElfImage* loaded) noexcept;

}  // namespace jitunwind
