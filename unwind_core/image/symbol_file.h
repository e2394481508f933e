// The names in an ELF file that need not be loaded, and in its separate debug file.
#pragma once

#include <span>
#include <utility>

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Reads the symbols when they are first asked for, and keeps them in memory of its own (mmap), independently of the
/// file. Calls no malloc.
class SymbolFile {
 public:
  SymbolFile() noexcept = default;
  ~SymbolFile();
  SymbolFile(SymbolFile&& other) noexcept : opened_(std::exchange(other.opened_, nullptr)) {}
  SymbolFile& operator=(SymbolFile&& other) noexcept {
    std::swap(opened_, other.opened_);
    return *this;
  }

  /// Errors: io, bad_elf, out_of_memory.
  static Result<SymbolFile> open(const char* path) noexcept;
  bool is_open() const noexcept { return opened_ != nullptr; }

  /// The address that the first byte of the loaded module has in the file: the page of the lowest segment.
  /// Precondition, as below: is_open().
  Addr first_address() const noexcept;
  /// Finds the symbol that covers an address as in the file, and writes its name as NameSource::find_name does.
  Found find(Addr at, std::span<char> into, ProcedureName& out) const noexcept;

 private:
  struct Opened;
  explicit SymbolFile(Opened* opened) noexcept : opened_(opened) {}

  Opened* opened_ = nullptr;
};

}  // namespace jitunwind
#pragma GCC visibility pop
