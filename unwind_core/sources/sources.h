// The sources of rows and names. Each is stateless, constant-initialised, never destroyed, and lives in the file of its
// name in this folder.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// `.eh_frame` through `.eh_frame_hdr`, or by a scan when that table is missing (LSB 5.0, 10.6).
const RowSource& eh_frame_source() noexcept;
/// `.debug_frame` of the module's file or its separate debug file (DWARF 5, 6.4).
const RowSource& debug_frame_source() noexcept;
/// `.ARM.exidx` of a module (EHABI32, 6). Its rows hold where a procedure calls others.
const RowSource& arm_exidx_source() noexcept;
/// Signal trampolines, recognised by their code bytes. All registers come from the kernel's ucontext_t.
const RowSource& signal_frame_source() noexcept;
/// Stubs of the procedure linkage table, recognised by their code bytes.
const RowSource& plt_stub_source() noexcept;
/// Guess for frames on a stack: the code is followed from the entry of the called procedure and to its return, and both
/// give the same row. If an interrupted pc is no code, the call in front of the return address must lead there. There
/// is no such guess on CPUs whose instructions are not read.
const RowSource& followed_code_source() noexcept;
/// Bold guess for an interrupted pc that is not in executable memory: a call through a bad pointer has just been made.
const RowSource& bad_call_source() noexcept;
/// Bold guess for an interrupted pc in unknown code: a procedure that has not touched the stack.
const RowSource& leaf_source() noexcept;
/// Bold guess for frames on a stack: there is a frame record where the frame pointer points.
const RowSource& frame_pointer_source() noexcept;

/// The sources that belong to one target.
struct OwnSources {
  const RowSource* registered;             ///< the procedures that are registered in it
  const RowSource* exidx = nullptr;        ///< arm_exidx_source(), if it may be a process of 32-bit ARM
  const RowSource* answers = nullptr;      ///< its answers about modules; null: the modules' tables are read
  const RowSource* jit_code = nullptr;     ///< files of its JIT compilers, if it has them
  const RowSource* jit_names = nullptr;    ///< names that its JIT compilers gave, if it has them
  const RowSource* followed = nullptr;     ///< in place of followed_code_source(), if it needs another one
  const RowSource* unread_code = nullptr;  ///< a last one, which only explains
};

/// The sources of a target in the order in which they are asked.
class SourceOrder {
 public:
  explicit SourceOrder(const OwnSources& own) noexcept;
  SourceOrder(const SourceOrder&) = delete;
  SourceOrder& operator=(const SourceOrder&) = delete;

  std::span<const RowSource* const> rows() const noexcept { return {all_.data(), rows_}; }
  /// Guesses, for code that none of rows() covers.
  std::span<const RowSource* const> guesses() const noexcept { return {all_.data() + rows_, size_ - rows_}; }

 private:
  std::array<const RowSource*, 13> all_{};
  std::size_t rows_ = 0;
  std::size_t size_ = 0;
};

/// Symbols of a module's file: .symtab, .gnu_debugdata, .dynsym.
const NameSource& elf_name_source() noexcept;
/// Uses these symbols, too. If none covers the address, the last one before it is used, which is usually the name of
/// other code.
const NameSource& preceding_elf_name_source() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
