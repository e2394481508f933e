// Source positions and inlined calls of an ELF file, by its debug information.
//
// libdw reads it, and is loaded when the first position is requested. Walks and names need neither libdw nor its
// dependencies. If it is missing, there are no positions.
#pragma once

#include <utility>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::uwx {

/// Strings live as long as the file.
struct SourcePosition {
  const char* inlined = nullptr;  ///< the function that the place is inlined from; null: none
  const char* file = nullptr;
  int line = 0;
  int context = 0;  ///< that of the call around it; 0: no inlined call is left
};

/// Used by one thread at a time. Allocates as libdw does.
class SourceFile {
 public:
  SourceFile() noexcept = default;
  /// The object finds nothing if libdw or the file is missing.
  explicit SourceFile(const char* path) noexcept;
  ~SourceFile();
  SourceFile(SourceFile&& other) noexcept : debug_info_(std::exchange(other.debug_info_, nullptr)) {}
  SourceFile& operator=(SourceFile&& other) noexcept {
    std::swap(debug_info_, other.debug_info_);
    return *this;
  }

  /// `at`: address as in the file, of the instruction itself, not after it. `context` 0: its own position; n: that of
  /// the n-th inlined call around it. Empty: not known.
  SourcePosition find(Addr at, int context) noexcept;

 private:
  void* debug_info_ = nullptr;
};

}  // namespace jitunwind::uwx
