// Source positions and inlined calls of an ELF file, by its debug information.
//
// libdw reads it. It is loaded when the first position is asked for: whoever walks and names needs neither it nor what
// it needs, and where it is missing there are no positions.
#pragma once

#include <utility>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::uwx {

/// Strings live as long as the file.
struct SourcePosition {
  const char* inlined = nullptr;  ///< function that the place is inlined from; null: none
  const char* file = nullptr;
  int line = 0;
  int context = 0;  ///< of the call around it; 0: no inlined call is left
};

/// Of one thread at a time. Allocates as libdw does.
class SourceFile {
 public:
  SourceFile() noexcept = default;
  /// Without anything to find where libdw or the file is missing.
  explicit SourceFile(const char* path) noexcept;
  ~SourceFile();
  SourceFile(SourceFile&& other) noexcept : debug_info_(std::exchange(other.debug_info_, nullptr)) {}
  SourceFile& operator=(SourceFile&& other) noexcept {
    std::swap(debug_info_, other.debug_info_);
    return *this;
  }

  /// `at` as in the file, of the instruction itself, not behind it. `context` 0: there; n: where the n-th inlined call
  /// around it was made. Nothing: not known.
  SourcePosition find(Addr at, int context) noexcept;

 private:
  void* debug_info_ = nullptr;
};

}  // namespace jitunwind::uwx
