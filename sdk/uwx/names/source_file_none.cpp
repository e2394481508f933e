// The replacement for builds without libdw's headers: there are no source positions.
#include "jitunwind/sdk/uwx/names/source_file_p.h"

namespace jitunwind::uwx {

SourceFile::SourceFile(const char*) noexcept {}
SourceFile::~SourceFile() = default;
SourcePosition SourceFile::find(Addr, int) noexcept { return {}; }

}  // namespace jitunwind::uwx
